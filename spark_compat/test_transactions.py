"""Spark reads committed records alone, up to the first open transaction, where it is told to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests.topics import create_topic
from spark_compat.streams import numbers, numbers_to_the_end, read_batch, read_stream, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

COMMITTED = {"kafka.isolation.level": "read_committed"}


class Transactions:
    def __init__(self, bootstrap: str, topic: str, transactional_id: str) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
        self.producer.init_transactions()
        self._topic = topic

    def begin(self, numbers: range) -> None:
        self.producer.begin_transaction()
        for number in numbers:
            self.producer.produce(self._topic, b"%d" % number, partition=number % 2)
        assert self.producer.flush() == 0


@pytest.fixture
def mixed(broker: Broker, topic: str, unique: Callable[[str], str], spark: SparkSession) -> tuple[str, Transactions]:
    """0-9 committed, 10-19 aborted, 20-29 outside any, 30-39 in a transaction that is open, 40-49 outside any."""
    create_topic(broker, topic, 2)
    first = Transactions(broker.bootstrap, topic, unique("first"))
    first.begin(range(10))
    first.producer.commit_transaction()
    first.begin(range(10, 20))
    first.producer.abort_transaction()
    write_numbers(spark, broker.bootstrap, topic, range(20, 30))
    first.begin(range(30, 40))
    write_numbers(spark, broker.bootstrap, topic, range(40, 50))
    return topic, first


def test_a_batch_ends_at_an_open_transaction(
    spark: SparkSession, broker: Broker, mixed: tuple[str, Transactions]
) -> None:
    topic, transactions = mixed
    before_the_end = [*range(10), *range(20, 30)]
    assert numbers(read_batch(spark, broker.bootstrap, topic, **COMMITTED)) == before_the_end
    assert numbers(read_batch(spark, broker.bootstrap, topic)) == list(range(50))
    transactions.producer.commit_transaction()
    assert numbers(read_batch(spark, broker.bootstrap, topic, **COMMITTED)) == [*before_the_end, *range(30, 50)]


def test_a_stream_goes_on_when_the_transaction_is_over(
    spark: SparkSession, broker: Broker, mixed: tuple[str, Transactions], tmp_path: Path
) -> None:
    topic, transactions = mixed
    stream = read_stream(spark, broker.bootstrap, topic, **COMMITTED)
    assert numbers_to_the_end(stream, tmp_path) == [*range(10), *range(20, 30)]
    transactions.producer.abort_transaction()
    assert numbers_to_the_end(stream, tmp_path) == list(range(40, 50))
