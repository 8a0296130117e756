"""Idempotent producers that send numbered records for as long as a test wants, and the look at what became of each."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from .apache_kafka.tools import Tool, tool_command
from .brokers import Bootstrap
from .waiting import until

Places = dict[int, tuple[int, int]]
"""By number: partition and offset."""

DELIVERY_S = 600
"""How long they try, longer than clients do by default: a node may take minutes to start on a loaded machine."""


class Steady(Protocol):
    """Whoever goes on until it is to finish."""

    def finish(self) -> None:
        """Returns when it has an answer to all that it sent. Raises AssertionError where that does not come about."""


class ConfluentProducer:
    """librdkafka's, on a thread, as fast as it may, or with a pause after each record.

    in_flight: 1 where leaders change. With more, librdkafka (2.16.0, its issue 4953) takes NOT_LEADER_OR_FOLLOWER for
    "not stored", and where the next leader refuses one request and takes a later one it sends all of them once more
    in a new epoch: a record is stored twice, or is acknowledged without its offset, whichever broker it talks to.
    """

    def __init__(
        self,
        broker: Bootstrap,
        topic: str,
        partitions: int,
        *,
        pause_s: float = 0,
        in_flight: int = 5,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """settings: further ones of librdkafka."""
        self.acknowledged: Places = {}
        self.sent = 0
        self._errors: list[Any] = []
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": in_flight,
                "linger.ms": 1,
                "message.timeout.ms": DELIVERY_S * 1000,
                "queue.buffering.max.messages": 5000,
                "reconnect.backoff.max.ms": 500,
                **(settings or {}),
            }
        )
        self._topic, self._partitions, self._pause_s = topic, partitions, pause_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._stopping.is_set():
            try:
                partition = self.sent % self._partitions
                self._producer.produce(self._topic, b"%d" % self.sent, partition=partition, on_delivery=self._delivered)
                self.sent += 1
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(0)
            if self._pause_s:
                self._stopping.wait(self._pause_s)
        self._producer.flush(DELIVERY_S)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors.append(error)
        else:
            self.acknowledged[int(message.value())] = (message.partition(), message.offset())

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(DELIVERY_S + 10)
        assert not self._thread.is_alive()
        assert not self._errors, self._errors[:3]
        assert len(self.acknowledged) == self.sent


class JavaProducer:
    """Apache Kafka's VerifiableProducer, which tells of each acknowledgement, as idempotent as Java's is by default."""

    def __init__(self, broker: Bootstrap, topic: str, directory: Path, *, records_per_second: int) -> None:
        self.acknowledged: Places = {}
        self._errors: list[str] = []
        properties = directory / "java-producer.properties"
        # The tool sets `retries` to 0, with which the client would not be idempotent.
        settings = ("retries=2147483647", "enable.idempotence=true", "reconnect.backoff.max.ms=500")
        properties.write_text("\n".join((*settings, f"delivery.timeout.ms={DELIVERY_S * 1000}")))
        command = tool_command(
            Tool.VERIFIABLE_PRODUCER,
            *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--command-config", str(properties)),
            *("--throughput", str(records_per_second)),
        )
        with (directory / "java-producer.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                told: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
                if told.get("name") == "producer_send_success":
                    self.acknowledged[int(told["value"])] = (told["partition"], told["offset"])
                elif told.get("name") == "producer_send_error":
                    self._errors.append(line)

    def finish(self) -> None:
        """It sends what it still has when it is terminated."""
        self._process.terminate()
        try:
            self._process.wait(DELIVERY_S)
        finally:
            self._process.kill()
        self._thread.join(10)
        assert not self._errors, self._errors[:3]


@contextmanager
def finished(*producers: Steady) -> Iterator[None]:
    """Around what happens while they send: they end with it, however it ends."""
    try:
        yield
    except BaseException:
        for producer in producers:
            _give_up(producer)
        raise
    for producer in producers:
        producer.finish()


def _give_up(producer: Steady) -> None:
    """Where the test has failed already, for another reason."""
    try:
        producer.finish()
    except (AssertionError, subprocess.TimeoutExpired):
        return


def read_numbers(
    broker: Bootstrap, topic: str, partitions: int, isolation_level: str = "read_uncommitted"
) -> list[tuple[int, int, int]]:
    """Number, partition and offset of each record, in the order of each partition: up to the ends as they are when the
    reader begins, and perhaps some behind them. A reader need not overtake a producer that goes on.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation_level,
        }
    )
    ends = [_end_offset(consumer, TopicPartition(topic, partition)) for partition in range(partitions)]
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    found: list[tuple[int, int, int]] = []
    ended: set[int] = set()

    def read_to_the_ends() -> bool:
        for record in consumer.consume(10_000, timeout=0.5):
            error, partition, offset, value = record.error(), record.partition(), record.offset(), record.value()
            assert partition is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(partition)
            elif value is not None and offset is not None:
                found.append((int(value), partition, offset))
                if offset >= ends[partition] - 1:
                    ended.add(partition)
        return len(ended) == partitions

    try:
        until(read_to_the_ends, f"the ends of all partitions of {topic}")
    finally:
        consumer.close()
    return sorted(found, key=lambda each: each[1:])


def _end_offset(consumer: Consumer, partition: TopicPartition) -> int:
    """A leader that was elected a moment ago may not know an end for clients until its followers have fetched from it:
    librdkafka gives up after a few tries, other clients ask again.
    """
    found: list[int] = []

    def is_known() -> bool:
        try:
            watermarks = consumer.get_watermark_offsets(partition, timeout=DELIVERY_S)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.OFFSET_NOT_AVAILABLE:
                raise
            return False
        assert watermarks is not None
        found.append(watermarks[1])
        return True

    until(is_known, f"the end of {partition}")
    return found[0]


def assert_stored(broker: Bootstrap, topic: str, partitions: int, acknowledged: Places, when: str) -> Places:
    """Each acknowledged number is where it was said to be, no number is there twice, and all are in their order."""
    found = read_numbers(broker, topic, partitions)
    stored = {number: (partition, offset) for number, partition, offset in found}
    twice = len(found) - len(stored)
    assert not twice, f"{when}: {twice} of {len(found)} are stored twice"
    lost = [
        (number, place, stored.get(number)) for number, place in acknowledged.items() if place != stored.get(number)
    ]
    assert not lost, f"{when}: {len(lost)} of {len(acknowledged)} (number, acknowledged, stored): {lost[:5]}"
    assert found == sorted(found, key=lambda each: (each[1], each[0])), f"{when}: out of order"
    return stored
