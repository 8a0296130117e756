"""Test suites of users: a broker inside the test process beside Apache Kafka that runs already.

Each of the hundred tests has a topic of its own, produces to it and consumes from it in a group, by confluent-kafka.
Both runs are a whole `pytest` with pykbroker's fixtures; for Apache Kafka with `--kafka-bootstrap-servers`.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.bench import Bench, Figures
from compat_tests.brokers import BrokerProcess, Pykbroker
from pykbroker.testing import Broker

AS_IT_COMES = {"group.initial.rebalance.delay.ms": "3000"}
TESTS = 100
_LIVES = 30
_TIMEOUT_S = 1800
_SEED_BYTES = 10**9
_SEED_RECORD_BYTES = 10_000
_FORKS = 30
_SUITE = """\
import pytest
from confluent_kafka import Consumer, Producer

@pytest.mark.parametrize("number", range({tests}))
def test_a_record_is_consumed(kafka_broker, kafka_topic, number):
    producer = Producer({{"bootstrap.servers": kafka_broker.bootstrap_servers}})
    producer.produce(kafka_topic, b"value")
    assert producer.flush(60) == 0
    consumer = Consumer({{
        "bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": kafka_topic, "auto.offset.reset": "earliest",
    }})
    consumer.subscribe([kafka_topic])
    assert consumer.poll(60).value() == b"value"
    consumer.close()
"""


def hundred_tests(bench: Bench) -> Figures:
    """Time the whole run of pytest, its own start and the broker's included."""
    tests = max(int(TESTS * bench.scale), 5)
    external = [] if _is_pykbroker(bench.broker) else ["--kafka-bootstrap-servers", bench.broker.bootstrap]
    with tempfile.TemporaryDirectory(prefix="pykbroker-suite-") as directory:
        Path(directory, "test_suite.py").write_text(_SUITE.format(tests=tests))
        Path(directory, "pytest.ini").write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *external]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        took = time.perf_counter() - began
    assert re.search(rf"^{tests} passed", done.stdout, re.MULTILINE), done.stdout
    return {"s": took, "ms each": took / tests * 1000}


def in_process_broker(bench: Bench) -> Figures:
    """Time a broker's life in this process, and the import. Apache Kafka has no such thing: its figures are 0."""
    if not _is_pykbroker(bench.broker):
        return {"start to first ack ms": 0.0, "stop ms": 0.0, "import s": 0.0}
    first_ack, stop = [], []
    for number in range(_LIVES + 1):
        began = time.perf_counter()
        broker = Broker()
        broker.open()
        broker.create_topic("first").produce("value")
        acknowledged = time.perf_counter()
        broker.close()
        if number:  # the first one imports the broker
            first_ack.append(acknowledged - began)
            stop.append(time.perf_counter() - acknowledged)
    return {
        "start to first ack ms": statistics.median(first_ack) * 1000,
        "stop ms": statistics.median(stop) * 1000,
        "import s": statistics.median(_import_s() for _ in range(5)),
    }


def forks_of_a_gigabyte(bench: Bench) -> Figures:
    """Fork a broker with a gigabyte in six partitions, which goes on meanwhile. Apache Kafka has no such thing."""
    if not _is_pykbroker(bench.broker):
        return dict.fromkeys(("fork ms", "fork worst ms", "fork to first ack ms", "fork to first ack worst ms"), 0.0)
    forked, first_ack = [], []
    with Broker() as broker:
        topic = broker.create_topic("seed", partitions=6)
        records = bench.count(_SEED_BYTES // _SEED_RECORD_BYTES)
        _produce(broker.bootstrap_servers, topic, records)
        for number in range(_FORKS + 1):
            _produce(broker.bootstrap_servers, topic, 100)  # so that there is something to be cut
            began = time.perf_counter()
            fork = broker.fork()
            opened = time.perf_counter()
            fork.topic(topic).produce("value")
            if number:  # the first one imports
                forked.append((opened - began) * 1000)
                first_ack.append((time.perf_counter() - began) * 1000)
            assert sum(fork.topic(topic).end_offsets().values()) == records + 100 * (number + 1) + 1
            fork.close()
    return {
        "fork ms": statistics.median(forked),
        "fork worst ms": max(forked),
        "fork to first ack ms": statistics.median(first_ack),
        "fork to first ack worst ms": max(first_ack),
    }


def _produce(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": 1_000_000, "linger.ms": 20})
    value = os.urandom(_SEED_RECORD_BYTES)
    for number in range(records):
        producer.produce(topic, value)
        if number % 1000 == 0:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0


def _import_s() -> float:
    program = "import time; began = time.perf_counter(); import pykbroker.testing; print(time.perf_counter() - began)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def _is_pykbroker(broker: BrokerProcess) -> bool:
    return isinstance(broker, Pykbroker)
