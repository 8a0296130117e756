"""Transactions: how many a second, how long a commit takes, and a topic copied exactly once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.bench import PARTITIONS, Bench, Figures
from compat_tests.exactly_once.copier import TRANSACTION_RECORDS
from compat_tests.waiting import until

RECORDS_EACH = 100
VALUE = bytes(1000)
WARM_UP = 50
SOURCE, TARGET, NAME = "original", "copy", "copier"


def transactional_produce(bench: Bench) -> Figures:
    """One librdkafka producer: transactions of 100 records of 1 kB, spread over all partitions, one after another."""
    topic = "in-transactions"
    bench.create_topic(topic, PARTITIONS)
    config = {"bootstrap.servers": bench.broker.bootstrap, "transactional.id": "bench", "linger.ms": 0}
    producer = Producer(config)
    producer.init_transactions(60)
    count = bench.count(2_000)

    def transaction() -> float:
        producer.begin_transaction()
        for number in range(RECORDS_EACH):
            producer.produce(topic, VALUE, partition=number % PARTITIONS)
        producer.flush(60)
        before = time.perf_counter()
        producer.commit_transaction(60)
        return time.perf_counter() - before

    for _ in range(WARM_UP):
        transaction()
    started = time.perf_counter()
    commits_s = [transaction() for _ in range(count)]
    elapsed_s = time.perf_counter() - started
    commits_s.sort()
    return {
        "transactions/s": count / elapsed_s,
        "commit p50 ms": commits_s[count // 2] * 1000,
        "commit p99 ms": commits_s[count * 99 // 100] * 1000,
    }


def exactly_once_copy(bench: Bench) -> Figures:
    """The copier of the tests, in a process of its own, from its first record to its last commit."""
    for topic in (SOURCE, TARGET):
        bench.create_topic(topic, PARTITIONS)
    count = bench.count(200_000)
    _write(bench, count)
    command = [sys.executable, "-m", "compat_tests.exactly_once.copier", bench.broker.bootstrap, SOURCE, TARGET, NAME]
    with TemporaryDirectory() as directory, (Path(directory) / "copier.log").open("wb") as log:
        copier = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            group = Consumer({"bootstrap.servers": bench.broker.bootstrap, "group.id": NAME})
            until(lambda: _copied(group) >= TRANSACTION_RECORDS, "the copier copies")
            before, started = _copied(group), time.perf_counter()
            until(lambda: _copied(group) >= count, "everything is copied", 600)
            elapsed_s = time.perf_counter() - started
        finally:
            copier.kill()
            copier.wait()
    return {"records/s": (count - before) / elapsed_s}


def _write(bench: Bench, count: int) -> None:
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap, "linger.ms": 5})
    for number in range(count):
        while True:
            try:
                producer.produce(SOURCE, VALUE[:100], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def _copied(group: Consumer) -> int:
    """What the group has committed of the original."""
    try:
        committed = group.committed([TopicPartition(SOURCE, index) for index in range(PARTITIONS)], 30)
    except KafkaException:  # no coordinator is ready to say
        return 0
    return sum(max(each.offset, 0) for each in committed)
