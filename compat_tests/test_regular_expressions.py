"""Consumers that subscribe by a regular expression which the broker resolves (KIP-848)."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

from .answers import TestAnswers
from .brokers import Broker
from .topics import create_topic
from .waiting import until
from .wire import Wire

Unique = Callable[[str], str]
REFRESH_S = 30
"""New topics are looked for ten seconds after the last time, by the next heartbeat."""


@pytest.fixture
def group(unique: Unique) -> str:
    return unique("group")


@pytest.fixture
def consumer(broker: Broker, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    yield consumer
    consumer.close()


def topics_of(consumer: Consumer) -> set[str]:
    consumer.poll(0.1)
    return {each.topic for each in consumer.assignment()}


def expressions(broker: Broker, group: str) -> list[str]:
    with Wire(broker.address) as wire:
        answer = wire.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    return [member.subscribed_topic_regex or "" for member in answer.groups[0].members]


def test_topics_that_match_are_assigned_and_new_ones_are_found(
    broker: Broker, unique: Unique, group: str, consumer: Consumer
) -> None:
    prefix = unique("matched")
    create_topic(broker, f"{prefix}-one", 2)
    create_topic(broker, f"not-{prefix}", 1)
    expression = f"^{prefix}-.*"
    consumer.subscribe([expression])
    until(lambda: topics_of(consumer) == {f"{prefix}-one"}, "the topic that matches is assigned")
    (sent,) = expressions(broker, group)
    assert expression in sent, "it is the broker that looks the topics up"
    create_topic(broker, f"{prefix}-two", 1)
    until(lambda: topics_of(consumer) == {f"{prefix}-one", f"{prefix}-two"}, "the new one too", REFRESH_S)


@pytest.mark.parametrize(
    "expression", ["(", "[a", "\\", "a**", "(?=a)", "a{1001}", "(a)\\1", "", "a|b", "(?i)A", "\\pL+"]
)
def test_both_brokers_take_the_same_expressions(
    broker: Broker, group: str, answers: TestAnswers, expression: str
) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_regex=expression,
        topic_partitions=[],
    )
    with Wire(broker.address) as wire:
        answer = wire.call(request, 1)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    answers.same(expression, ErrorCode(answer.error_code).name)
