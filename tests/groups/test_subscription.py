"""Which subscriptions Apache Kafka 4.3.1 can load: as its JoinGroup was seen to answer, or never to."""

from random import Random
from typing import Any

import pytest

from pykbroker.client.consumer_protocol import encode_subscription
from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.subscription import is_loadable
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from pykbroker.state_machine import CoordinatorContext, Token

from .scenarios import join

ANSWERED = [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0", b"meta"]
NEVER_ANSWERED = [
    b"metadata",
    b"\0\0\0\0\0\1\0\5ab",
    b"\0\7" + b"z" * 50,
    b"\0\0\x7f\xff\xff\xff",
    b"\0\0\xff\xff\xff\xff",
]


@pytest.mark.parametrize("subscription", ANSWERED)
def test_what_ends_early_counts_as_no_subscription(subscription: bytes) -> None:
    assert is_loadable(subscription)


@pytest.mark.parametrize("subscription", NEVER_ANSWERED)
def test_lengths_that_cannot_be_are_not_loaded(subscription: bytes) -> None:
    assert not is_loadable(subscription)


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version_are_loaded_and_so_is_each_beginning_that_ends_at_a_field(version: int) -> None:
    owned = [ConsumerProtocolSubscriptionTopicPartition(topic="a", partitions=[0, 1])]
    subscription = ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"data", generation_id=3, rack_id="rack")
    if version >= 1:
        subscription.owned_partitions = owned
    data = version.to_bytes(2, "big") + encode(subscription, version)
    assert is_loadable(data)
    assert is_loadable(data + b"what a later version appends")
    assert is_loadable(encode_subscription(["a", "b"]))
    assert not is_loadable(data[: data.index(b"data") + 2])


def test_nobody_joins_with_what_could_not_be_loaded() -> None:
    shard = GroupShard(GroupConfig(initial_rebalance_delay_ms=0), Random(1))
    answers = []
    for number, kind in enumerate(("consumer", "connect")):
        request = join("a group", protocols={"range": NEVER_ANSWERED[0]}, type=kind)
        result = shard.handle(request, Token(number), 0, CoordinatorContext(api_version=3, client_id="client"), 0)
        responses: list[Any] = [each.response for each in (*result.completed, *shard.expire(1, 1).completed)]
        answers += [ErrorCode(response.error_code) for response in responses]
    assert answers == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.NONE], "what others mean by it is theirs"
