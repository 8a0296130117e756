"""Share consumers of librdkafka: each record goes to one of them, and comes again where it was not accepted."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

from .brokers import Broker
from .topics import fill_topic
from .waiting import until
from .wire import Wire

RECORDS = 300
PARTITIONS = 3
A_GROUP = 32
SET = 0


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> str:
    """A share group that begins at the first record."""
    name = unique("group")
    begin = IncrementalAlterConfigsRequestAlterableConfig(
        name="share.auto.offset.reset", config_operation=SET, value="earliest"
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=A_GROUP, resource_name=name, configs=[begin]
    )
    with Wire(broker.address) as wire:
        answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert [each.error_code for each in answer.responses] == [0]
    return name


@contextmanager
def consumers(broker: Broker, group: str, topic: str, count: int, **config: str) -> Iterator[list[ShareConsumer]]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 3}
    opened = [
        ShareConsumer(settings | {key.replace("_", "."): value for key, value in config.items()}) for _ in range(count)
    ]
    try:
        for each in opened:
            each.subscribe([topic])
        yield opened
    finally:
        for each in opened:
            each.close()


def polled(consumer: ShareConsumer) -> list[Message]:
    messages: list[Message] = list(consumer.poll(0.5) or ())
    assert all(each.error() is None for each in messages)
    return messages


def test_each_record_goes_to_one_of_several_consumers(broker: Broker, topic: str, group: str) -> None:
    fill_topic(broker, topic, PARTITIONS, RECORDS)
    read: Counter[bytes | None] = Counter()
    with consumers(broker, group, topic, 2) as both:

        def all_are_read() -> bool:
            for each in both:
                read.update(message.value() for message in polled(each))
            return len(read) == RECORDS

        until(all_are_read, "all records are read")
    assert set(read.values()) == {1}


def test_a_record_that_is_released_comes_again_and_one_that_is_rejected_does_not(
    broker: Broker, topic: str, group: str
) -> None:
    fill_topic(broker, topic, 1, 3)
    deliveries: list[bytes] = []
    with consumers(broker, group, topic, 1, share_acknowledgement_mode="explicit") as (consumer,):

        def is_done() -> bool:
            for message in polled(consumer):
                value = message.value()
                assert value is not None
                is_first = value not in deliveries
                deliveries.append(value)
                if value == b"1" and is_first:
                    consumer.acknowledge(message, AcknowledgeType.RELEASE)
                elif value == b"2":
                    consumer.acknowledge(message, AcknowledgeType.REJECT)
                else:
                    consumer.acknowledge(message)
            return len(deliveries) >= 4

        until(is_done, "the released record comes again")
        consumer.commit_sync()
        assert polled(consumer) == []
    assert sorted(deliveries) == [b"0", b"1", b"1", b"2"]
