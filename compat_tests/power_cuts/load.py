"""Clients of a broker whose power is cut under them: what each was told, and whether it is so afterwards.

A producer with idempotence goes on through the cut, and delivers the rest later: everything is there once, in order.
Of a transaction that was committed all is there, of any other all or nothing. An offset that was committed stays.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from ..waiting import DEADLINE_S

PARTITIONS = 2
_ASK_S = 10.0
"""How long a call may take that meets the cut."""


class Client(ABC):
    """One thread, from `start` until `end`; then `check` compares."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.is_ending = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Raises what nobody expected."""
        self.is_ending.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), f"{type(self).__name__} has not ended"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as failure:
            self.failure = failure

    @abstractmethod
    def work(self) -> None:
        """Go on until `is_ending`."""

    @abstractmethod
    def check(self) -> int:
        """Compare what was told with what is there. Returns how many promises that were."""


def read(bootstrap: str, topic: str, isolation: str, take: Callable[[Message], bool], waiting: set[int]) -> None:
    """Read all partitions from the beginning. take: is told each record, and says whether its partition has no more.

    waiting: the partitions that are to come to an end.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    consumer.assign([Position(topic, partition, 0) for partition in range(PARTITIONS)])
    deadline = time.monotonic() + DEADLINE_S
    try:
        while waiting:
            assert time.monotonic() < deadline, f"the end of {topic} is not seen in partitions {waiting}"
            for message in consumer.consume(500, timeout=0.2):
                assert message.error() is None, message.error()
                if take(message):
                    waiting.discard(message.partition() or 0)
    finally:
        consumer.close()


class IdempotentProducer(Client):
    """Produces into all partitions. acknowledged: offsets of values, by partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.acknowledged: list[dict[bytes, int]] = [{} for _ in range(PARTITIONS)]
        self._sent = 0
        self._refusals: list[str] = []
        self.fatal: list[str] = []
        """Why librdkafka has given up, by its own account: it delivers nothing more then."""
        self._producer = Producer(
            {
                "error_cb": self._failed,
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": int(DEADLINE_S * 1000),
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    @property
    def acknowledgements(self) -> int:
        return sum(map(len, self.acknowledged))

    def work(self) -> None:
        while not self.is_ending.is_set():
            if self._sent - self.acknowledgements < 200:
                self._send()
            self._producer.poll(0.002)

    def _send(self) -> None:
        for partition in range(PARTITIONS):
            value = b"%d of %d " % (self._sent // PARTITIONS, partition)
            value += bytes(50 + self._sent % 7 * 300)
            self._producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
            self._sent += 1

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self._refusals.append(f"{message.partition()}: {error}")
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert isinstance(value, bytes)
        self.acknowledged[partition][value] = offset

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self.fatal.append(str(error))

    def check(self) -> int:
        """First what was acknowledged before, then what the producer still had: once each, in order. Of a producer that
        has given up, what it acknowledged is there once, and in order.
        """
        before = self.acknowledgements
        found = self._read()
        for partition, acknowledged in enumerate(self.acknowledged):
            assert set(acknowledged.items()) <= set(found[partition]), f"{self.topic}-{partition} has lost records"
        assert self._producer.flush(DEADLINE_S) == 0, "the producer can not go on"
        assert self.fatal or not self._refusals, f"{self._refusals[0]}, and {len(self._refusals)} in all"
        assert self.acknowledgements + len(self._refusals) == self._sent
        found = self._read()
        for partition, acknowledged in enumerate(self.acknowledged):
            there = found[partition]
            if self.fatal:
                assert len({value for value, _ in there}) == len(there), f"{self.topic}-{partition} has records twice"
                there = [each for each in there if each[0] in acknowledged]
            assert there == list(acknowledged.items()), f"{self.topic}-{partition} is not what was written"
        return before

    def _read(self) -> list[list[tuple[bytes, int]]]:
        """Values and offsets, by partition, up to the last one that was acknowledged."""
        ends = [max(acknowledged.values(), default=-1) for acknowledged in self.acknowledged]
        found: list[list[tuple[bytes, int]]] = [[] for _ in ends]

        def take(message: Message) -> bool:
            partition, offset, value = message.partition() or 0, message.offset() or 0, message.value() or b""
            assert isinstance(value, bytes)
            found[partition].append((value, offset))
            return offset >= ends[partition]

        waiting = {partition for partition, end in enumerate(ends) if end >= 0}
        read(self.bootstrap, self.topic, "read_uncommitted", take, waiting)
        return found


class TransactionalProducer(Client):
    """A transaction after another, each with a record in each partition. Every third is aborted."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()

    def _new_producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.topic,
                "transaction.timeout.ms": 10_000,
                "message.timeout.ms": 10_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def work(self) -> None:
        try:
            producer = self._new_producer()
            producer.init_transactions(_ASK_S)
            number = 0
            while not self.is_ending.is_set():
                self._transact(producer, b"%d" % number, is_aborted=number % 3 == 2)
                number += 1
        except KafkaException:
            """The cut: what became of the last transaction is not known."""

    def _transact(self, producer: Producer, name: bytes, *, is_aborted: bool) -> None:
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(self.topic, name, partition=partition)
        if is_aborted:
            self.aborted.add(name)
            producer.abort_transaction(_ASK_S)
        else:
            producer.commit_transaction(_ASK_S)
            self.committed.add(name)

    def check(self) -> int:
        """The next producer of the id ends what was open, and commits one more: so readers come to an end."""
        producer = self._new_producer()
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(self.topic, b"last", partition=partition)
        producer.commit_transaction(DEADLINE_S)
        copies: Counter[bytes] = Counter()
        places: dict[bytes, set[int | None]] = defaultdict(set)
        for message in self._read_committed():
            copies[message.value() or b""] += 1
            places[message.value() or b""].add(message.partition())
        whole = {name for name, count in copies.items() if count == PARTITIONS == len(places[name])}
        assert copies.keys() == whole, f"of transactions there is a part: {sorted(copies.keys() - whole)}"
        assert self.committed <= whole, f"committed, and gone: {sorted(self.committed - whole)}"
        assert not self.aborted & whole, f"aborted, and there: {sorted(self.aborted & whole)}"
        return len(self.committed)

    def _read_committed(self) -> list[Message]:
        """All that a reader of committed records sees, up to the last transaction in each partition."""
        found: list[Message] = []

        def take(message: Message) -> bool:
            found.append(message)
            return message.value() == b"last"

        read(self.bootstrap, self.topic, "read_committed", take, set(range(PARTITIONS)))
        return found


class OffsetCommitter(Client):
    """Commits an offset after another, for a group without members."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.tried = self.committed = 0

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"group of {self.topic}",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )

    def work(self) -> None:
        consumer = self._consumer()
        try:
            while not self.is_ending.is_set():
                self.tried += 1
                consumer.commit(offsets=[Position(self.topic, 0, self.tried)], asynchronous=False)
                self.committed = self.tried
        except KafkaException:
            """The cut: whether the last offset is committed is not known."""
        finally:
            consumer.close()

    def check(self) -> int:
        consumer = self._consumer()
        try:
            [position] = consumer.committed([Position(self.topic, 0)], timeout=DEADLINE_S)
            assert position.error is None, position.error
        finally:
            consumer.close()
        found = max(position.offset, 0)
        assert self.committed <= found <= self.tried, f"offset {found} is there, {self.committed} was committed"
        return self.committed
