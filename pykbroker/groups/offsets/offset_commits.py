"""OffsetCommit and TxnOffsetCommit: who may commit offsets for a group, and the records of committed offsets.

Offsets that are committed in a transaction are pending until it ends. The model is Kafka's `OffsetMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.state_machine import CoordinatorContext

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.group import Group
from ..common.records import NO_TIMESTAMP, CoordinatorRecord, offset_commit_record
from ..common.topics import TopicsView

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NONE: Final = ErrorCode.NONE
DEFAULT_RETENTION_TIME = -1
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9
FIRST_TXN_VERSION_OF_CONSUMER_GROUPS = 6
"""Before that, TxnOffsetCommit knew of no epochs of members, and told all that is wrong with them as a generation's."""


OnOffsetCommit: TypeAlias = Callable[[str, str, Step], None]
"""Called with the ids of group and member when an OffsetCommit is allowed."""


class OffsetCommits:
    def __init__(
        self, config: GroupConfig, groups: Mapping[str, Group], topics: TopicsView, on_commit: OnOffsetCommit
    ) -> None:
        self._config = config
        self._groups = groups
        self._topics = topics
        self._on_commit = on_commit

    def commit(self, request: OffsetCommitRequest, context: CoordinatorContext, step: Step) -> OffsetCommitResponse:
        """Commit offsets at once. Every topic of the request has its name; from v10 on it has its id, too."""
        error_code = self._validate(request, context)
        if error_code is not _NONE:
            return refused_commit(request, error_code)
        self._on_commit(request.group_id, request.member_id, step)
        topics = []
        group_id, timestamp_ms, records = request.group_id, step.timestamp_ms, step.records
        expire_timestamp_ms = _expire_timestamp_ms(request.retention_time_ms, timestamp_ms)
        for topic in request.topics:
            partitions = []
            name, topic_id = topic.name, topic.topic_id
            for partition in topic.partitions:
                error_code, index = _NONE, partition.partition_index
                if partition.committed_metadata:  # few have any
                    error_code = self._validate_partition(partition)
                if error_code is _NONE:
                    key = OffsetCommitKey(group=group_id, topic=name, partition=index)
                    value = _value(partition, timestamp_ms, expire_timestamp_ms, topic_id)
                    records.append(CoordinatorRecord(key, value))
                partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=error_code))
            topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=partitions))
        step.because(group_id, f"offsets committed by {request.member_id or context.client_id}")
        return OffsetCommitResponse(topics=topics)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, context: CoordinatorContext, step: Step
    ) -> TxnOffsetCommitResponse:
        """Commit offsets that count when the producer's transaction is committed; the records are the producer's.

        Every topic of the request has its name; from v6 on it has its id, too.
        """
        error_code = self._validate_in_transaction(request, context.api_version)
        if error_code is not _NONE:
            return refused_txn_commit(request, error_code)
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                error_code = self._validate_partition(partition)
                if error_code is _NONE:
                    value = _value(partition, step.timestamp_ms, NO_TIMESTAMP, topic.topic_id)
                    step.append(offset_commit_record(request.group_id, topic.name, partition.partition_index, value))
                partitions.append(
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        if step.records:
            step.producer = request.producer_id, request.producer_epoch
        step.because(request.group_id, f"offsets committed in a transaction of {request.transactional_id}")
        return TxnOffsetCommitResponse(topics=topics)

    # Who may commit

    def _validate(self, request: OffsetCommitRequest, context: CoordinatorContext) -> ErrorCode:
        """The error of the whole request. One partition that is another member's by now fences the whole commit."""
        member_id, epoch = request.member_id, request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if epoch < 0:
                return _NONE  # A client that only stores offsets makes a group by doing so.
            is_new = context.api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
            return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
        instance_id, version = request.group_instance_id, context.api_version
        error_code = group.validate_offset_commit(member_id, instance_id, epoch, version)
        if error_code is not _NONE:
            return error_code
        partitions = (
            (topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if self._validate_partition(partition) is _NONE
        )
        return group.validate_committed_partitions(member_id, epoch, partitions)

    def _validate_in_transaction(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        """The error of the whole request. Before v6 it has no topic ids: those by which members' partitions are known
        come from the metadata."""
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        member_id, epoch = request.member_id, request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        knows_epochs = api_version >= FIRST_TXN_VERSION_OF_CONSUMER_GROUPS
        if group is None:
            if epoch < 0:
                return _NONE
            return ErrorCode.GROUP_ID_NOT_FOUND if knows_epochs else ErrorCode.ILLEGAL_GENERATION
        error_code = group.validate_txn_offset_commit(member_id, request.group_instance_id, epoch)
        if error_code is ErrorCode.STALE_MEMBER_EPOCH and not knows_epochs:
            return ErrorCode.ILLEGAL_GENERATION
        if error_code is not _NONE:
            return error_code
        partitions = (
            (self._id_of(topic), partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if self._validate_partition(partition) is _NONE
        )
        error_code = group.validate_committed_partitions(member_id, epoch, partitions)
        return error_code if knows_epochs or error_code is _NONE else ErrorCode.ILLEGAL_GENERATION

    def _id_of(self, topic: TxnOffsetCommitRequestTopic) -> bytes:
        return topic.topic_id if topic.topic_id != NO_UUID else self._topics.topic_id(topic.name) or NO_UUID

    def _validate_partition(
        self, partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
    ) -> ErrorCode:
        metadata = partition.committed_metadata
        if metadata and _java_length(metadata) > self._config.offset_metadata_max_chars:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        # Any number is stored, as in Kafka: kafkajs commits -2 and begins at the earliest record where it finds that.
        return _NONE


def refused_commit(request: OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse:
    """The error in every partition: OffsetCommit has no field for an error of the whole request."""
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


def refused_txn_commit(request: TxnOffsetCommitRequest, error_code: ErrorCode) -> TxnOffsetCommitResponse:
    """The error in every partition: TxnOffsetCommit has no field for an error of the whole request."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _value(
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int,
    topic_id: bytes,
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )


def _expire_timestamp_ms(retention_time_ms: int, timestamp_ms: int) -> int:
    return NO_TIMESTAMP if retention_time_ms == DEFAULT_RETENTION_TIME else timestamp_ms + retention_time_ms


def _java_length(text: str) -> int:
    """The length as Java counts it: characters beyond U+FFFF are two."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)
