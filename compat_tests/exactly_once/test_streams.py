"""Kafka Streams with `exactly_once_v2`, unchanged: counts go up one by one, whatever is killed in between."""

import sys
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.brokers import Broker
from compat_tests.conftest import FreshBroker
from compat_tests.topics import create_topic
from compat_tests.waiting import DEADLINE_S, until

from .supervised import Supervised

pytestmark = [pytest.mark.java, pytest.mark.flaky(reruns=0)]

SOURCE, TARGET, PARTITIONS = "to-count", "counts", 2
KEYS, PORTION = 20, 1_000


def test_every_record_is_counted_once(fresh_broker: FreshBroker, tmp_path: Path) -> None:
    pytest.importorskip("py4j", reason="Py4J, which comes with pyspark, drives Kafka Streams")
    broker = fresh_broker()
    create_topic(broker, SOURCE, PARTITIONS)
    create_topic(broker, TARGET, PARTITIONS)
    module = "compat_tests.exactly_once.counting_stream"
    command = [sys.executable, "-m", module, broker.bootstrap, SOURCE, TARGET, str(tmp_path / "state")]
    with Supervised(command, tmp_path / "streams.log") as application:
        counts = Counts(broker)
        for number, disturb in enumerate((broker.kill, application.kill, lambda: None), start=1):
            write_portion(broker)
            # Some of the portion is counted, and a transaction is likely to be open.
            counts.await_total((number - 1) * PORTION + PORTION // 10, application)
            disturb()
            if disturb == broker.kill:
                broker.start()
        counts.await_total(3 * PORTION, application)
    for key, seen in counts.by_key.items():
        assert seen == list(range(1, 3 * PORTION // KEYS + 1)), key
    assert len(counts.by_key) == KEYS


def write_portion(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(PORTION):
        producer.produce(SOURCE, b"value", b"key-%d" % (number % KEYS))
    assert producer.flush(DEADLINE_S) == 0


class Counts:
    """What a reader of committed records has seen of each key, in order."""

    def __init__(self, broker: Broker) -> None:
        self.by_key: dict[bytes, list[int]] = defaultdict(list)
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._consumer.subscribe([TARGET])

    def await_total(self, count: int, application: Supervised) -> None:
        try:
            until(lambda: self._read() >= count, f"{count} records counted", DEADLINE_S)
        except AssertionError as late:
            raise AssertionError(f"{late}; {sum(map(len, self.by_key.values()))}\n{application.log_text()}") from None

    def _read(self) -> int:
        for message in self._consumer.consume(500, timeout=0.2):
            if message.error() is None:
                self.by_key[message.key()].append(int.from_bytes(message.value(), "big"))
        return sum(map(len, self.by_key.values()))
