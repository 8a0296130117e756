"""Subscriptions and assignments in the bytes of the classic protocol: read once, in linear time, up to a bound."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from pykbroker.groups.consumer.embedded_protocol import MOST_ENTRIES, read_assignment, read_subscription
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

from .topics import ChangingTopics

VERSION = 1
TOPICS = ChangingTopics(topic=3)


def subscription_of_one_topic(times: int) -> bytes:
    owned = [ConsumerProtocolSubscriptionTopicPartition(topic="topic", partitions=[number]) for number in range(times)]
    message = ConsumerProtocolSubscription(topics=["topic"], owned_partitions=owned)
    return VERSION.to_bytes(2, "big") + encode(message, VERSION)


def assignment_of_one_topic(times: int) -> bytes:
    named = [ConsumerProtocolAssignmentTopicPartition(topic="topic", partitions=[number]) for number in range(times)]
    return VERSION.to_bytes(2, "big") + encode(ConsumerProtocolAssignment(assigned_partitions=named), VERSION)


def test_a_topic_that_is_named_many_times_has_all_partitions_that_stand_there() -> None:
    topic_id = TOPICS.topic_id("topic")
    assert topic_id is not None
    assert read_subscription(subscription_of_one_topic(3), TOPICS).owned == {topic_id: frozenset((0, 1, 2))}
    assert read_assignment(assignment_of_one_topic(3), TOPICS) == ({topic_id: frozenset((0, 1, 2))}, False)


@pytest.mark.parametrize(
    ("read", "made"), [(read_subscription, subscription_of_one_topic), (read_assignment, assignment_of_one_topic)]
)
def test_four_times_as_much_takes_four_times_as_long(read: Callable[..., object], made: Callable[[int], bytes]) -> None:
    """Half a megabyte held the event loop for ten seconds: what was known of the topic was copied at each entry, and
    four times as much took sixteen times as long. The processor's time at its best of seven is compared, with room.
    """
    few, many = (_cpu_s(read, made(times)) for times in (5_000, 20_000))
    assert many < 10 * few


def test_there_is_a_bound() -> None:
    with pytest.raises(MalformedMessage, match="more than a message may hold"):
        read_subscription(subscription_of_one_topic(MOST_ENTRIES // 2 + 1), TOPICS)
    with pytest.raises(MalformedMessage, match="more than a message may hold"):
        read_assignment(assignment_of_one_topic(MOST_ENTRIES // 2 + 1), TOPICS)


def _cpu_s(read: Callable[..., object], data: bytes) -> float:
    def once() -> float:
        start = time.thread_time()
        read(data, TOPICS)
        return time.thread_time() - start

    return min(once() for _ in range(7))
