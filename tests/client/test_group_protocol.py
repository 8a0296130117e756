"""The bytes that consumers of a group exchange, and the range assignor."""

import pytest

from pykbroker.client.assignor import Subscriber, range_assignment
from pykbroker.client.consumer_protocol import (
    decode_assignment,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from pykbroker.client.errors import NotConsumerProtocol
from pykbroker.protocol.topic_partition import TopicPartition


def partitions(*texts: str) -> list[TopicPartition]:
    return [TopicPartition(text[0], int(text[1:])) for text in texts]


def test_subscriptions_and_assignments_survive_the_round_trip() -> None:
    assert decode_topics(encode_subscription(["a", "b"])) == ["a", "b"]
    given = partitions("a0", "a3", "b1")
    assert decode_assignment(encode_assignment(given)) == given
    assert decode_assignment(b"") == []


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    # Version 3 is the newest known: owned partitions, generation and rack stand behind the user data.
    newer = b"\0\7" + b"\0\0\0\1\0\1a" + b"\xff\xff\xff\xff" + b"\0\0\0\0" + b"\0\0\0\5" + b"\xff\xff" + b"to come"
    assert decode_topics(newer) == ["a"]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0\0\0\0\1", b"\0\1\0\0\0\1\0\5a"])
def test_what_is_no_subscription_is_malformed(data: bytes) -> None:
    with pytest.raises(NotConsumerProtocol):
        decode_topics(data)


def test_ranges_are_consecutive_and_the_first_members_take_what_is_left_over() -> None:
    members = [Subscriber("m2", ["a", "b"]), Subscriber("m1", ["a", "b"]), Subscriber("m3", ["a"])]
    assert range_assignment(members, {"a": 4, "b": 1}) == {
        "m1": partitions("a0", "a1", "b0"),
        "m2": partitions("a2"),
        "m3": partitions("a3"),
    }


def test_static_members_are_ordered_by_their_instance() -> None:
    members = [Subscriber("z", ["a"], "i1"), Subscriber("a", ["a"], "i2"), Subscriber("b", ["a"])]
    assert range_assignment(members, {"a": 3}) == {"z": partitions("a0"), "a": partitions("a1"), "b": partitions("a2")}


def test_a_topic_without_partitions_is_given_to_nobody() -> None:
    assert range_assignment([Subscriber("m", ["gone"])], {}) == {"m": []}
