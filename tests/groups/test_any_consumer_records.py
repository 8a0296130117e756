"""Whatever records of consumer groups stand in a log, in whatever order: the shard loads, and serves what is there."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.records import BadRecord, CoordinatorRecord, decode_record
from pykbroker.groups.common.requests import DeleteGroup, DescribeConsumerGroup, ListSomeGroups
from pykbroker.groups.common.topics import FixedTopics
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.descriptions import ConsumerGroupAsOfNow
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.long_work import whole
from pykbroker.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.messages.groups import LeaveGroupRequest, MemberIdentity
from pykbroker.state_machine import CoordinatorContext, Token

EVENTS, ORDERS, NOWHERE = b"e" * 16, b"o" * 16, b"n" * 16
TOPICS = FixedTopics({"events": (EVENTS, 3), "orders": (ORDERS, 2)})
GROUP = "g"
SEEDS = 120
EPOCHS = (-(2**31), -2, -1, 0, 1, 2, 5, 2**30 - 1, 2**31 - 2, 2**31 - 1)


class Chance:
    """Records and requests of a few groups, members and topics, sensible ones and others."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def record(self) -> CoordinatorRecord:
        rng = self.rng
        group, member, epoch = rng.choice("gh"), rng.choice("abc"), rng.choice(EPOCHS)
        pairs: list[tuple[Any, Any]] = [
            (ConsumerGroupMetadataKey(group_id=group), ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=5)),
            (ConsumerGroupPartitionMetadataKey(group_id=group), ConsumerGroupPartitionMetadataValue()),
            (ConsumerGroupMemberMetadataKey(group_id=group, member_id=member), self._metadata()),
            (
                ConsumerGroupTargetAssignmentMetadataKey(group_id=group),
                ConsumerGroupTargetAssignmentMetadataValue(
                    assignment_epoch=epoch, assignment_timestamp=rng.choice([0, -5, 10**15])
                ),
            ),
            (ConsumerGroupTargetAssignmentMemberKey(group_id=group, member_id=member), self._target()),
            (ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member), self._current(epoch)),
            (ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member), self._current(epoch)),
            (OffsetCommitKey(group=group, topic="events"), OffsetCommitValue(offset=3, commit_timestamp=5)),
        ]
        key, value = rng.choice(pairs)
        return CoordinatorRecord(key, None if rng.random() < 0.3 else value)

    def _metadata(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.rng.choice([None, "i", "j"]),
            subscribed_topic_names=self.rng.choice([[], ["events"], ["orders", "events", "orders"]]),
            subscribed_topic_regex=self.rng.choice([None, "", "(", "eve.*"]),
            rebalance_timeout_ms=self.rng.choice([-1, 5, -9]),
            server_assignor=self.rng.choice([None, "range", "of another configuration"]),
        )

    def _target(self) -> ConsumerGroupTargetAssignmentMemberValue:
        return ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=self._topic(), partitions=self._partitions())
                for _ in range(self.rng.randint(0, 3))
            ]
        )

    def _current(self, epoch: int) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=self.rng.choice([-1, 0, epoch]),
            state=self.rng.choice([0, 1, 2, 3, -1]),
            assigned_partitions=self._owned(),
            partitions_pending_revocation=self._owned(),
        )

    def _owned(self) -> list[TopicPartitions]:
        epochs = self.rng.choice([None, [], [1, 2]])
        return [
            TopicPartitions(topic_id=self._topic(), partitions=self._partitions(), assignment_epochs=epochs)
            for _ in range(self.rng.randint(0, 3))
        ]

    def _topic(self) -> bytes:
        return self.rng.choice([EVENTS, ORDERS, NOWHERE])

    def _partitions(self) -> list[int]:
        return [self.rng.choice([-1, 0, 0, 1, 1, 2, 4]) for _ in range(self.rng.randint(0, 3))]

    def request(self, group: object) -> GroupRequest:
        rng = self.rng
        member_id = rng.choice("abcd")
        requests: list[GroupRequest] = [
            *[self._heartbeat(member_id, group)] * 5,
            DescribeConsumerGroup(group_id=rng.choice("gh")),
            ListSomeGroups(request=ListGroupsRequest(), group_ids=["g", "h", "i"]),
            DescribeGroupsRequest(groups=["g"]),
            DeleteGroup(group_id="g"),
            LeaveGroupRequest(
                group_id=GROUP,
                members=[
                    MemberIdentity(member_id=rng.choice(["", member_id]), group_instance_id=rng.choice([None, "i"]))
                ],
            ),
        ]
        return rng.choice(requests)

    def _heartbeat(self, member_id: str, group: object) -> ConsumerGroupHeartbeatRequest:
        rng = self.rng
        known = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        epoch = rng.choice([0, -1, -2, 1, 2, *([known.member_epoch] * 4 if known is not None else [])])
        owned = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self._topic(), partitions=[0, 1])]
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=rng.choice([None, None, "i"]),
            rebalance_timeout_ms=rng.choice([-1, 100, -9]) if epoch else 100,
            subscribed_topic_names=rng.choice([None, [], ["events"], ["orders", "nowhere"]]) if epoch else ["events"],
            topic_partitions=rng.choice([None, [], owned]) if epoch else [],
        )


def ensure_one_owner_each(shard: GroupShard) -> None:
    for group in shard.groups.values():
        if not isinstance(group, ConsumerGroup):
            continue
        for topic_id, partition in ((topic, index) for topic in (EVENTS, ORDERS) for index in range(3)):
            owner = group.owner_of(topic_id, partition)
            if owner is not None:
                member = group.members[owner]
                assert partition in {**member.assigned.get(topic_id, {}), **member.pending_revocation.get(topic_id, {})}


@pytest.mark.parametrize("seeds", [range(start, start + SEEDS // 4) for start in range(0, SEEDS, SEEDS // 4)], ids=str)
def test_any_records_leave_a_shard_that_serves(seeds: range) -> None:
    for seed in seeds:
        chance = Chance(seed)
        shard = GroupShard(GroupConfig(), Random(1), TOPICS)
        for _ in range(chance.rng.randint(1, 25)):
            decoded = decode_record(*chance.record().encode())
            try:
                shard.replay(decoded.key, decoded.value)
            except BadRecord:
                continue
        now_ms = 1_000
        written = list(shard.start_timers(now_ms, now_ms).records)
        for _ in range(25):
            now_ms += chance.rng.choice([0, 10, 1_500, 50_000])
            written += shard.expire(now_ms, now_ms).records
            request = chance.request(shard.groups.get(GROUP))
            result = shard.handle(request, Token(1), now_ms, CoordinatorContext(api_version=1), now_ms)
            (completion,) = result.completed
            if isinstance(found := completion.response, ConsumerGroupAsOfNow):
                for member_id in whole(found.member_ids()):
                    found.describe_member(member_id)
            written += result.records
            ensure_one_owner_each(shard)
        for record in written:
            assert decode_record(*record.encode()) == record, f"seed {seed}"
