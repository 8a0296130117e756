"""OffsetCommit and TxnOffsetCommit: who may commit an offset for a group, and what is kept of it.

What is committed in a transaction is pending until the transaction ends. The model is Kafka's `OffsetMetadataManager`.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykbroker.protocol.messages.group_records import OffsetCommitValue
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.state_machine import Token

from ..classic.classic_group import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE, ClassicGroup
from ..classic.rebalance import Rebalance
from ..common.config import GroupConfig
from ..common.context import GroupRequestContext, Step
from ..common.records import NO_TIMESTAMP, offset_commit_record
from ..common.topics import TopicsView
from ..consumer.consumer_fencing import validate_commit, validate_commit_in_transaction, validate_commit_of_partition
from ..consumer.consumer_group import ConsumerGroup
from ..consumer.group_types import Group, find_classic

DEFAULT_RETENTION_TIME = -1
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9


class OffsetCommits:
    def __init__(self, config: GroupConfig, groups: dict[str, Group], rebalance: Rebalance, topics: TopicsView) -> None:
        self._config = config
        self._groups = groups
        self._rebalance = rebalance
        self._topics = topics

    def commit(self, request: OffsetCommitRequest, token: Token, context: GroupRequestContext, step: Step) -> None:
        """Topics are named in the request, ids (v10) beside the names."""
        error_code = self._validate(request, context)
        if error_code is not ErrorCode.NONE:
            step.answer(token, refused_commit(request, error_code))
            return
        self._keep_session(request, step)
        topics = []
        expire_timestamp_ms = _expire_timestamp_ms(request.retention_time_ms, step.timestamp_ms)
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                error_code = self._validate_partition(partition)
                if error_code is ErrorCode.NONE:
                    value = _value(partition, step.timestamp_ms, expire_timestamp_ms, topic.topic_id)
                    step.append(offset_commit_record(request.group_id, topic.name, partition.partition_index, value))
                partitions.append(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                )
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        step.because(f"group {request.group_id}: offsets committed by {request.member_id or context.client_id}")
        step.answer(token, OffsetCommitResponse(topics=topics))

    def commit_in_transaction(self, request: TxnOffsetCommitRequest, token: Token, step: Step) -> None:
        """The records are the producer's: they count when its transaction is committed."""
        error_code = self._validate_in_transaction(request)
        if error_code is not ErrorCode.NONE:
            step.answer(token, refused_txn_commit(request, error_code))
            return
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                error_code = self._validate_partition(partition)
                if error_code is ErrorCode.NONE:
                    value = _value(partition, step.timestamp_ms, NO_TIMESTAMP, NO_UUID)
                    step.append(offset_commit_record(request.group_id, topic.name, partition.partition_index, value))
                partitions.append(
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        if step.records:
            step.producer = request.producer_id, request.producer_epoch
        step.because(f"group {request.group_id}: offsets committed in a transaction of {request.transactional_id}")
        step.answer(token, TxnOffsetCommitResponse(topics=topics))

    # Who may commit

    def _validate(self, request: OffsetCommitRequest, context: GroupRequestContext) -> ErrorCode:
        generation_id = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if generation_id < 0:
                return ErrorCode.NONE  # Whoever only stores offsets makes a group by doing so.
            is_new = context.api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
            return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
        if isinstance(group, ConsumerGroup):
            return self._validate_in_consumer_group(group, request, context)
        if generation_id < 0 and group.state is EMPTY:
            return ErrorCode.NONE
        if generation_id < 0 and not request.member_id and request.group_instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID  # A group with members takes offsets from members only.
        error_code = _validate_member(group, request.member_id, request.group_instance_id, generation_id)
        if error_code is ErrorCode.NONE and group.state is COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return error_code

    def _validate_in_consumer_group(
        self, group: ConsumerGroup, request: OffsetCommitRequest, context: GroupRequestContext
    ) -> ErrorCode:
        """One partition that is another's by now fences the whole commit."""
        member_id, epoch = request.member_id, request.generation_id_or_member_epoch
        error_code = validate_commit(group, member_id, epoch, context.api_version)
        if error_code is not ErrorCode.NONE:
            return error_code
        codes = (
            validate_commit_of_partition(group, member_id, epoch, topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if self._validate_partition(partition) is ErrorCode.NONE
        )
        return next((code for code in codes if code is not ErrorCode.NONE), ErrorCode.NONE)

    def _validate_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """A producer need not say in whose name it commits; where it does, it is fenced with its consumer (KIP-447).

        That a rebalance is under way does not matter.
        """
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        generation_id = request.generation_id
        group = self._groups.get(request.group_id)
        if group is None:
            return ErrorCode.NONE if generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
        if isinstance(group, ConsumerGroup):
            return self._validate_in_transaction_of_consumer(group, request)
        if generation_id < 0:
            names_nobody = not request.member_id and request.group_instance_id is None
            if names_nobody or group.state is EMPTY:
                return ErrorCode.NONE
        return _validate_member(group, request.member_id, request.group_instance_id, generation_id)

    def _validate_in_transaction_of_consumer(self, group: ConsumerGroup, request: TxnOffsetCommitRequest) -> ErrorCode:
        """The request names topics only; the member's partitions are known by their topics' ids."""
        member_id, epoch = request.member_id, request.generation_id
        error_code = validate_commit_in_transaction(group, member_id, request.group_instance_id, epoch)
        if error_code is not ErrorCode.NONE:
            return error_code
        for topic in request.topics:
            topic_id = self._topics.topic_id(topic.name) or NO_UUID
            for partition in topic.partitions:
                if self._validate_partition(partition) is not ErrorCode.NONE:
                    continue
                if validate_commit_of_partition(group, member_id, epoch, topic_id, partition.partition_index):
                    return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def _validate_partition(
        self, partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
    ) -> ErrorCode:
        if _java_length(partition.committed_metadata or "") > self._config.offset_metadata_max_chars:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        # Any number is stored, as in Kafka: kafkajs commits -2 and begins at the earliest record where it finds that.
        return ErrorCode.NONE

    def _keep_session(self, request: OffsetCommitRequest, step: Step) -> None:
        group = find_classic(self._groups, request.group_id)
        if group is None or group.state not in (STABLE, PREPARING_REBALANCE):
            return
        member = group.members.get(request.member_id)
        if member is not None:
            self._rebalance.keep_session(group, member, step)


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


def refused_txn_commit(request: TxnOffsetCommitRequest, error_code: ErrorCode) -> TxnOffsetCommitResponse:
    """Nor has TxnOffsetCommit."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _validate_member(group: ClassicGroup, member_id: str, instance_id: str | None, generation_id: int) -> ErrorCode:
    error_code = group.validate_member(member_id, instance_id)
    if error_code is ErrorCode.NONE and generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return error_code


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
