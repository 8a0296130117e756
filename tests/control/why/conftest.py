"""One broker for the questions, stock clients that are closed behind each test, and waiting for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

from pykbroker.testing import Broker, Cluster

T = TypeVar("T")
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"auto.create.topics.enable": False}) as broker:
        yield broker


@pytest.fixture
def name() -> str:
    return f"why-{uuid4().hex[:8]}"


@pytest.fixture
def topic(broker: Broker, name: str) -> str:
    return str(broker.create_topic(name, partitions=2))


def eventually(ask: Callable[[], T], is_it: Callable[[T], object]) -> T:
    """Return the first answer that is as wanted; the last one is shown where none is."""
    end = time.monotonic() + PATIENCE_S
    while True:
        answer = ask()
        if is_it(answer):
            return answer
        assert time.monotonic() < end, f"it stays so:\n{answer}"
        time.sleep(0.02)


class Clients:
    """Stock clients of a broker. All of them read from the beginning, where nothing else is said."""

    def __init__(self, broker: Broker | Cluster, closing: ExitStack) -> None:
        self._broker = broker
        self._closing = closing

    def confluent(self, group: str, topics: list[str], **config: Any) -> Consumer:
        """A consumer of confluent-kafka, subscribed; config with underscores for dots."""
        given = {key.replace("_", "."): value for key, value in config.items()}
        defaults = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "client.id": "app"}
        where = {"bootstrap.servers": self._broker.bootstrap_servers, "group.id": group}
        consumer = Consumer({**where, **defaults, **given})
        self._closing.callback(consumer.close)
        if topics:
            consumer.subscribe(topics)
        return consumer

    def python(self, *topics: str, group: str | None = None, **config: Any) -> KafkaConsumer:
        """A consumer of kafka-python. A member's polls are long until it has read: one that ends while the member joins
        may lose its assignment (kafka-python 3.0.12)."""
        defaults = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "client_id": "py"}
        consumer = KafkaConsumer(
            *topics, bootstrap_servers=self._broker.bootstrap_servers, group_id=group, **{**defaults, **config}
        )
        self._closing.callback(consumer.close)
        return consumer

    def joined_python(self, topic: str, group: str, **config: Any) -> KafkaConsumer:
        """A member by kafka-python that has read a record."""
        self._broker.topic(topic).produce(b"first", partition=0)
        consumer = self.python(topic, group=group, **config)
        assert consumer.poll(30_000)
        return consumer

    def producer(self, **config: Any) -> Producer:
        given = {key.replace("_", "."): value for key, value in config.items()}
        return Producer({"bootstrap.servers": self._broker.bootstrap_servers, "client.id": "writer", **given})


@pytest.fixture
def clients(broker: Broker) -> Iterator[Clients]:
    with ExitStack() as closing:
        yield Clients(broker, closing)


def polled(consumer: Any, is_it: Callable[[], bool]) -> None:
    """Poll until something is so."""
    eventually(lambda: consumer.poll(0.05) if isinstance(consumer, Consumer) else consumer.poll(50), lambda _: is_it())
