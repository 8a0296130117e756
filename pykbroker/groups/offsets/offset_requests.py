"""OffsetFetch and OffsetDelete. The model is Kafka's `OffsetMetadataManager`."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.state_machine import Token

from ..classic.classic_group import EMPTY, ClassicGroup
from ..common.context import Step
from ..common.records import offset_commit_record
from ..consumer.consumer_fencing import validate_fetch
from ..consumer.consumer_group import ConsumerGroup
from ..consumer.group_types import Group
from ..requests import AllOffsets, FetchAllOffsets
from .offsets import CommittedOffset, CommittedOffsets
from .pending_offsets import PendingOffsets

NO_OFFSET = -1
NO_LEADER_EPOCH = -1


class OffsetRequests:
    def __init__(self, groups: dict[str, Group], offsets: CommittedOffsets, pending: PendingOffsets) -> None:
        self._groups = groups
        self._offsets = offsets
        self._pending = pending

    # OffsetDelete

    def delete(self, request: OffsetDeleteRequest, token: Token, step: Step) -> None:
        group = self._groups.get(request.group_id)
        error_code = _validate_delete(request.group_id, group)
        if group is None or error_code is not ErrorCode.NONE:
            step.answer(token, OffsetDeleteResponse(error_code=error_code))
            return
        topics = [self._delete_topic(group, topic, step) for topic in request.topics]
        step.because(f"group {group.group_id}: offsets deleted by request")
        step.answer(token, OffsetDeleteResponse(topics=topics))

    def _delete_topic(self, group: Group, topic: OffsetDeleteRequestTopic, step: Step) -> OffsetDeleteResponseTopic:
        subscribed = group.is_subscribed_to(topic.name)
        error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            if not subscribed and self._is_there(group.group_id, topic.name, index):
                step.append(offset_commit_record(group.group_id, topic.name, index, None))
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error_code))
        return OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)

    def _is_there(self, group_id: str, topic: str, index: int) -> bool:
        """What is pending is deleted too: its transaction commits nothing any more."""
        is_committed = self._pending.committed(group_id, topic, index) is not None
        return is_committed or self._pending.is_pending(group_id, topic, index)

    # OffsetFetch

    def fetch_all(self, request: FetchAllOffsets, token: Token, step: Step) -> None:
        """Topics with a committed offset; a first one that is pending does not count yet."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        error_code = ErrorCode.NONE
        if isinstance(group, ConsumerGroup):
            error_code = validate_fetch(group, request.member_id, request.member_epoch)
        if group is None or error_code is not ErrorCode.NONE:
            step.answer(token, AllOffsets(error_code))
            return
        table = {name: dict(offsets) for name, offsets in self._offsets.of_group(group_id)}
        step.answer(token, AllOffsets(ErrorCode.NONE, table, self._pending.as_of_now(group_id)))

    def fetch(self, request: OffsetFetchRequest, token: Token, step: Step) -> None:
        """Takes and gives the form of v8+, a list of groups, whose topics are named."""
        groups = [self._fetch_group(group, request.require_stable) for group in request.groups]
        step.answer(token, OffsetFetchResponse(groups=groups))

    def _fetch_group(self, asked: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        group = self._groups.get(asked.group_id)
        if isinstance(group, ConsumerGroup):
            error_code = validate_fetch(group, asked.member_id, asked.member_epoch)
            if error_code is not ErrorCode.NONE:
                return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error_code)
        assert asked.topics is not None
        topics = []
        for topic in asked.topics:
            partitions = [
                self._fetch_partition(asked.group_id, topic.name, topic.topic_id, index, require_stable)
                for index in topic.partition_indexes
            ]
            topics.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)

    def _fetch_partition(
        self, group_id: str, topic: str, topic_id: bytes, index: int, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        """A group that is not there has no offsets, which is not an error; nor has a topic those of an earlier one of
        its name."""
        if require_stable and self._pending.is_pending(group_id, topic, index):
            return unstable_offset(index)
        committed = self._pending.committed(group_id, topic, index)
        if committed is None or group_id not in self._groups or _differs(committed.topic_id, topic_id):
            return _no_offset(index)
        return told_offset(index, committed)


def told_offset(index: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def unstable_offset(index: int) -> OffsetFetchResponsePartitions:
    """Whoever reads what transactions write waits for their end (KIP-447)."""
    return _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _validate_delete(group_id: str, group: Group | None) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group, ClassicGroup) and group.state is not EMPTY and not group.uses_consumer_protocol:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def _no_offset(index: int, error_code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error_code,
    )


def _differs(topic_id: bytes, other: bytes) -> bool:
    """Where either is not known, the name decides."""
    return topic_id != other and NO_UUID not in (topic_id, other)
