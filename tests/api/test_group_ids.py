"""A group without a name is refused before anybody looks for its coordinator, and a SyncGroup without a protocol before
that; as Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from pykbroker.api.consumer_group_heartbeat import consumer_group_heartbeat
from pykbroker.api.heartbeat import heartbeat
from pykbroker.api.join_group import join_group
from pykbroker.api.leave_group import leave_group
from pykbroker.api.offset_commit import offset_commit
from pykbroker.api.offset_delete import offset_delete
from pykbroker.api.sync_group import sync_group
from pykbroker.api.txn_offset_commit import txn_offset_commit
from pykbroker.metadata.features import GROUP_VERSION
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykbroker.protocol.schema import Message

from .api_node import ApiNode, Handler

TOPIC = "apples"
INVALID, ELSEWHERE = ErrorCode.INVALID_GROUP_ID, ErrorCode.NOT_COORDINATOR
INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def join(group: str) -> Message:
    return JoinGroupRequest(group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)


def sync(group: str) -> Message:
    return SyncGroupRequest(group_id=group, member_id="m", protocol_type="consumer", protocol_name="range")


def sync_without_a_protocol(group: str) -> Message:
    return SyncGroupRequest(group_id=group, member_id="m", protocol_type="consumer")


def beat(group: str) -> Message:
    return HeartbeatRequest(group_id=group, member_id="m")


def leave(group: str) -> Message:
    return LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="m")])


def commit(group: str) -> Message:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])])


def delete(group: str) -> Message:
    topic = OffsetDeleteRequestTopic(name=TOPIC, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    return OffsetDeleteRequest(group_id=group, topics=[topic])


def beat_newly(group: str) -> Message:
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id="m", rebalance_timeout_ms=1000)


def commit_in_transaction(group: str) -> Message:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=group,
        producer_id=1,
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )


@pytest.mark.parametrize(
    ("handler", "ask", "version", "without_a_name", "with_one"),
    [
        (join_group, join, 9, INVALID, ELSEWHERE),
        (sync_group, sync, 5, INVALID, ELSEWHERE),
        (sync_group, sync_without_a_protocol, 5, INCONSISTENT, INCONSISTENT),
        (sync_group, sync_without_a_protocol, 4, INVALID, ELSEWHERE),
        (heartbeat, beat, 4, INVALID, ELSEWHERE),
        (leave_group, leave, 5, INVALID, ELSEWHERE),
        (offset_commit, commit, 8, ELSEWHERE, ELSEWHERE),
        (offset_delete, delete, 0, INVALID, ELSEWHERE),
        (consumer_group_heartbeat, beat_newly, 1, ErrorCode.INVALID_REQUEST, ELSEWHERE),
        (txn_offset_commit, commit_in_transaction, 2, INVALID, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (txn_offset_commit, commit_in_transaction, 5, INVALID, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_where_no_group_has_a_coordinator_yet(
    tmp_path: Path,
    handler: Handler,
    ask: Callable[[str], Message],
    version: int,
    without_a_name: ErrorCode,
    with_one: ErrorCode,
) -> None:
    node = ApiNode(tmp_path)
    node.create_topic(TOPIC)
    node.replay(FeatureLevelRecord(name=GROUP_VERSION, feature_level=1))

    async def error_of(group: str) -> int:
        answer = await node.call(handler, ask(group), version)
        if isinstance(ask(group), OffsetCommitRequest | TxnOffsetCommitRequest):
            return int(answer.topics[0].partitions[0].error_code)
        return int(answer.error_code)

    assert trio.run(error_of, "") == without_a_name
    assert trio.run(error_of, "a-group") == with_one
