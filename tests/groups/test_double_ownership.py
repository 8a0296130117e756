"""No partition is two members' at a time: what keeps it from being given away too early (KIP-848, KAFKA-16147)."""

from __future__ import annotations

import pytest

from pykbroker.groups.common.context import Step
from pykbroker.groups.common.deadlines import RevocationTimeout
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import UNREVOKED_PARTITIONS, ConsumerGroupMember
from pykbroker.groups.consumer.heartbeat_validation import validate_epoch
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequestTopicPartitions

from .test_consumer_shard import GROUP, T, Talk


def member(**fields: object) -> ConsumerGroupMember:
    return ConsumerGroupMember(member_id="m", **fields)  # type: ignore[arg-type]


def test_what_a_member_has_to_give_up_is_still_its_own() -> None:
    group = ConsumerGroup(GROUP)
    group.put(member(state=UNREVOKED_PARTITIONS, assigned={T: {0: 1}}, pending_revocation={T: {1: 1}}))
    assert [group.owner_of(T, partition) for partition in (0, 1, 2)] == ["m", "m", None]
    group.put(member(assigned={T: {0: 1}}))
    assert [group.owner_of(T, partition) for partition in (0, 1, 2)] == ["m", None, None]


def test_a_new_member_gets_a_partition_when_its_owner_has_said_that_it_gave_it_up() -> None:
    talk = Talk()
    first = talk.join("a").member_epoch
    second = talk.join("b").member_epoch
    talk.beat("a", first)  # it learns what it has to give up
    assert talk.group.members["a"].pending_revocation
    talk.beat("b", second)
    assert not talk.group.members["b"].assigned
    (kept,) = talk.group.members["a"].assigned.values()
    owned = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=T, partitions=sorted(kept))
    talk.beat("a", first, topic_partitions=[owned])
    talk.beat("b", second)
    assert talk.group.members["b"].assigned


KNOWN = member(member_epoch=7, previous_member_epoch=5, assigned={T: {0: 5, 1: 7}})


@pytest.mark.parametrize("owned", [{}, {T: {0}}, {T: {0, 1}}])
def test_a_member_whose_answer_was_lost_may_say_its_epoch_of_before(owned: dict[bytes, set[int]]) -> None:
    validate_epoch(KNOWN, 5, owned)


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [
        (5, {T: {2}}),  # it was never given that
        (5, {b"u" * 16: {0}}),
        (5, None),  # what it has it does not say
        (4, {}),
        (6, {}),
        (8, {T: {0}}),
    ],
)
def test_a_member_of_another_epoch_is_fenced(epoch: int, owned: dict[bytes, set[int]] | None) -> None:
    with pytest.raises(ApiError) as refused:
        validate_epoch(KNOWN, epoch, owned)
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_time_to_give_up_partitions_is_that_of_the_epoch_in_which_a_member_was_told() -> None:
    talk = Talk()
    epoch = talk.join("a").member_epoch
    late = RevocationTimeout(GROUP, "a", epoch - 1)
    talk.shard.consumer.expire(talk.group, late, Step(talk.now_ms, talk.now_ms))
    assert list(talk.group.members) == ["a"]
    due = RevocationTimeout(GROUP, "a", epoch)
    talk.shard.consumer.expire(talk.group, due, Step(talk.now_ms, talk.now_ms))
    assert not talk.group.members
