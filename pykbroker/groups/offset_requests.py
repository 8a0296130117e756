"""OffsetCommit, OffsetFetch and OffsetDelete. The model is Kafka's `OffsetMetadataManager`."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
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
from pykbroker.state_machine import Token

from .classic_group import COMPLETING_REBALANCE, EMPTY, ClassicGroup
from .config import GroupConfig
from .context import GroupRequestContext, Step
from .offsets import CommittedOffset, CommittedOffsets
from .rebalance import Rebalance
from .records import offset_commit_record

NO_OFFSET = -1
NO_LEADER_EPOCH = -1
DEFAULT_RETENTION_TIME = -1
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9


class OffsetRequests:
    def __init__(
        self, config: GroupConfig, groups: dict[str, ClassicGroup], offsets: CommittedOffsets, rebalance: Rebalance
    ) -> None:
        self._config = config
        self._groups = groups
        self._offsets = offsets
        self._rebalance = rebalance

    def commit(self, request: OffsetCommitRequest, token: Token, context: GroupRequestContext, step: Step) -> None:
        """Topics are named in the request, ids (v10) beside the names."""
        error_code = self._validate(request, context)
        if error_code is not ErrorCode.NONE:
            step.answer(token, refused_commit(request, error_code))
            return
        self._keep_session(request, step)
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                error_code = self._validate_partition(partition)
                if error_code is ErrorCode.NONE:
                    committed = _committed_offset(request, topic.topic_id, partition, step)
                    step.append(
                        offset_commit_record(
                            request.group_id, topic.name, partition.partition_index, committed.record_value()
                        )
                    )
                partitions.append(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                )
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        step.because(f"group {request.group_id}: offsets committed by {request.member_id or context.client_id}")
        step.answer(token, OffsetCommitResponse(topics=topics))

    def _validate(self, request: OffsetCommitRequest, context: GroupRequestContext) -> ErrorCode:
        generation_id = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if generation_id < 0:
                return ErrorCode.NONE  # Whoever only stores offsets makes a group by doing so.
            is_new = context.api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
            return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
        if generation_id < 0 and group.state is EMPTY:
            return ErrorCode.NONE
        if generation_id < 0 and not request.member_id and request.group_instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID  # A group with members takes offsets from members only.
        error_code = group.validate_member(request.member_id, request.group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
        if generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is COMPLETING_REBALANCE else ErrorCode.NONE

    def _validate_partition(self, partition: OffsetCommitRequestPartition) -> ErrorCode:
        if _java_length(partition.committed_metadata or "") > self._config.offset_metadata_max_chars:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        # Kafka stores any number. Below "no offset" none has a meaning, and no client sends one.
        return ErrorCode.INVALID_REQUEST if partition.committed_offset < NO_OFFSET else ErrorCode.NONE

    def _keep_session(self, request: OffsetCommitRequest, step: Step) -> None:
        group = self._groups.get(request.group_id)
        member = group.members.get(request.member_id) if group is not None else None
        if group is not None and member is not None:
            self._rebalance.keep_session(group, member, step)

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

    def _delete_topic(
        self, group: ClassicGroup, topic: OffsetDeleteRequestTopic, step: Step
    ) -> OffsetDeleteResponseTopic:
        subscribed = group.is_subscribed_to(topic.name)
        error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            if not subscribed and self._offsets.get(group.group_id, topic.name, index) is not None:
                step.append(offset_commit_record(group.group_id, topic.name, index, None))
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error_code))
        return OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)

    # OffsetFetch

    def fetch(self, request: OffsetFetchRequest, token: Token, step: Step) -> None:
        """Takes and gives the form of v8+, a list of groups. `require_stable` asks about transactions only."""
        step.answer(token, OffsetFetchResponse(groups=[self._fetch_group(group) for group in request.groups]))

    def _fetch_group(self, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """A group that is not there has no offsets, which is not an error."""
        topics = []
        if asked.group_id not in self._groups:
            return _nothing_committed(asked)
        if asked.topics is None:
            for name, offsets in self._offsets.of_group(asked.group_id):
                partitions = [_fetched(index, committed) for index, committed in offsets.items()]
                topics.append(OffsetFetchResponseTopics(name=name, partitions=partitions))
        else:
            for topic in asked.topics:
                partitions = [
                    _fetched(index, self._offsets.get(asked.group_id, topic.name, index))
                    for index in topic.partition_indexes
                ]
                topics.append(
                    OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
                )
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def refused_commit(request: OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse:
    """OffsetCommit has no error for the whole: every partition carries it."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _committed_offset(
    request: OffsetCommitRequest, topic_id: bytes, partition: OffsetCommitRequestPartition, step: Step
) -> CommittedOffset:
    retention_ms = request.retention_time_ms
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=step.timestamp_ms,
        expire_timestamp_ms=None if retention_ms == DEFAULT_RETENTION_TIME else step.timestamp_ms + retention_ms,
        topic_id=topic_id,
    )


def _validate_delete(group_id: str, group: ClassicGroup | None) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not EMPTY and not group.uses_consumer_protocol:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def _nothing_committed(asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[_fetched(index, None) for index in topic.partition_indexes],
        )
        for topic in asked.topics or []
    ]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _fetched(index: int, committed: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=NO_LEADER_EPOCH, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _java_length(text: str) -> int:
    """The length as Java counts it: characters beyond U+FFFF are two."""
    return len(text) + sum(character > "\uffff" for character in text)
