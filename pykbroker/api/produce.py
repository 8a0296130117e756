"""Produce (key 0): append record batches to the partitions that this broker leads.

Served are versions 3 to 13: 7 brought zstd, 8 errors per record, 9 flexible encoding (KIP-482), 10 the current leader
beside NOT_LEADER_OR_FOLLOWER (KIP-951), 13 topic ids instead of names (KIP-516). This module says which partitions may
be named and how each is answered, as Kafka's `KafkaApis.handleProduceRequest`; the appends are in
`server.replicas.record_appends`, the wait for replicas in `server.replicas.delayed_produce`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final, NoReturn, TypeAlias

from pykbroker.metadata.topic_names import INTERNAL_TOPICS
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from pykbroker.replication.appended import Appended, is_settled_at_once
from pykbroker.replication.partition import ACKS_ALL, Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.logs.record_checks import NobodyWaits
from pykbroker.server.network.handlers import CloseConnection, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.replicas.delayed_produce import DelayedProduce
from pykbroker.server.replicas.record_appends import LongCheck, ProduceAppends
from pykbroker.server.runtime.turns import PORTION, Turn, portions
from pykbroker.storage.log.log import AppendResult
from pykbroker.storage.segments.record_errors import FrameError, RecordValidationError
from pykbroker.storage.segments.validation import MAX_RECORD_ERRORS, budget_of_request, check_frame, check_start

from .current_leader import CurrentLeaders
from .transaction_requests import check_transactional_id
from .transactional_produce import TransactionalProduce, Unverified

_TOPIC_IDS_SINCE = 13
_ZSTD_SINCE = 7
_CURRENT_LEADER_SINCE = 10

# Where a batch of format 2 has its magic and the low byte of its attributes.
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
_CODEC_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL = 0x10

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER

_NOT_FAILED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Refusals that Kafka does not count as failed appends: the client is wrong, or the disk."""

_ACKS: Final = (ACKS_ALL, 0, 1)
_NO_LEADER = LeaderIdAndEpoch()
_STEPS_OF_APPEND = 20
_STEPS_OF_LEADER = 4

_Place: TypeAlias = tuple[str, bytes, int]
"""A partition as the request names it."""


@handles(
    ProduceRequest,
    needs=names((Operation.WRITE, ResourceType.TOPIC), (Operation.WRITE, ResourceType.TRANSACTIONAL_ID)),
    most_entries=20_000,
)
async def produce(context: RequestContext[Broker], request: ProduceRequest) -> ProduceResponse | None:
    turn = context.turn
    try:
        if context.node.authorizer is not None:
            await _check_transactional_id(context, request)
        named_twice, records_bytes = await _look_over(request, turn)
        appends = _Appends(context, request, named_twice, records_bytes)
        if request.transactional_id is not None:
            await appends.verify_transaction()
        response = await appends.run()
    except ApiError as error:
        response = await _same_error(request, error, turn)
    except NobodyWaits:
        raise CloseConnection("the producer has left while its records were checked") from None
    else:
        if appends.delayed is not None:
            if context.admission is not None:
                context.admission.leave()
            await appends.delayed.complete(request.timeout_ms, context.connection, turn)
    if request.acks != 0:
        return response
    if any(answer.error_code for topic in response.responses for answer in topic.partition_responses):
        # Nobody reads an answer; a closed connection tells the producer to look for the leader again.
        raise CloseConnection("a produce request without acknowledgement failed")
    return None


async def _check_transactional_id(context: RequestContext[Broker], request: ProduceRequest) -> None:
    """Raises `ApiError` where the request has transactional records, and the producer may not use its id.

    `_look_over` refuses such records where the request has no id at all.
    """
    transactional_id = request.transactional_id
    if transactional_id is None:
        return
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None and _is_transactional(data.records):
                check_transactional_id(context, transactional_id)
                return
        await context.turn.took(len(topic.partition_data))


async def _look_over(request: ProduceRequest, turn: Turn) -> tuple[set[_Place], int]:
    """The partitions that are named twice, and how many bytes of records there are.

    Kafka would append one of two batches for a partition and drop the other without a word. Raises `ApiError` where
    all of the request is refused.
    """
    may_be_transactional = request.transactional_id is not None
    is_one = len(request.topic_data) == 1 and len(request.topic_data[0].partition_data) == 1
    named: set[_Place] = set()
    twice: set[_Place] = set()
    records_bytes = 0
    is_transactional = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is not None:
                records_bytes += len(records)
                if not is_transactional:
                    check_start(records)
                    is_transactional = _is_transactional(records)
                if is_transactional and not may_be_transactional:
                    raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            if is_one:
                break
            place = (topic.name, topic.topic_id, data.index)
            if place in named:
                twice.add(place)
            named.add(place)
            if not len(named) % PORTION:
                await turn.took(PORTION)
    return twice, records_bytes


def _is_transactional(records: bytes | memoryview) -> bool:
    return len(records) > _ATTRIBUTES_AT and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)


async def _same_error(request: ProduceRequest, error: ApiError, turn: Turn) -> ProduceResponse:
    response = ProduceResponse()
    rows = _Rows(response)
    for topic in request.topic_data:
        answers: list[PartitionProduceResponse] = []
        for portion in portions(topic.partition_data):
            answers += [_failed(data.index, error.code, error.message) for data in portion]
            await turn.took(len(portion))
        rows.add(topic, answers)
    return response


class _Rows:
    """The topics of a response: one that the request names twice has one row, as in Kafka."""

    __slots__ = ("_by_topic", "_response")

    def __init__(self, response: ProduceResponse) -> None:
        self._response = response
        self._by_topic: dict[tuple[str, bytes], TopicProduceResponse] = {}

    def add(self, topic: TopicProduceData, answers: list[PartitionProduceResponse]) -> None:
        """Add the answers for the topic's partitions; a topic without any has no row."""
        if not answers:
            return
        key = topic.name, topic.topic_id
        row = self._by_topic.get(key)
        if row is not None:
            row.partition_responses += answers
            return
        row = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        self._by_topic[key] = row
        self._response.responses.append(row)


def _failed(index: int, error_code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error_code, base_offset=-1, error_message=message)


class _Appends:
    """The appends of one request, and the answer for each of its partitions. delayed: where some have to wait."""

    def __init__(
        self, context: RequestContext[Broker], request: ProduceRequest, named_twice: set[_Place], records_bytes: int
    ) -> None:
        broker, replicas = context.node, context.node.partitions
        self._context = context
        self._request = request
        self._version = version = context.header.api_version
        self._named_twice = named_twice
        self._uses_topic_ids = version >= _TOPIC_IDS_SINCE
        self._get_partition: Callable[[Any, int], Partition | ErrorCode] = (
            replicas.get_partition_by_id if self._uses_topic_ids else replicas.get_partition
        )
        if broker.authorizer is not None:
            self._get_partition = partial(self._get_allowed_partition, broker.authorizer, self._get_partition)
        self._appends = ProduceAppends(
            replicas.appends,
            replicas.record_checks,
            broker.clock,
            request.acks,
            budget_of_request(records_bytes),
            context.connection,
            context.admission,
        )
        self.delayed: DelayedProduce | None = None
        self._record_errors_left = MAX_RECORD_ERRORS

    def _get_allowed_partition(
        self,
        authorizer: NodeAuthorizer,
        get_partition: Callable[[Any, int], Partition | ErrorCode],
        topic: str | bytes,
        index: int,
    ) -> Partition | ErrorCode:
        """Find the partition for who may write to it. Others hear nothing of the topic, unless they have its id."""
        name = topic if isinstance(topic, str) else self._context.node.partitions.topic_name(topic)
        if name is not None and not authorizer.allows(
            self._context.connection, Operation.WRITE, ResourceType.TOPIC, name
        ):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return get_partition(topic, index)

    async def verify_transaction(self) -> None:
        """The coordinator is asked first, where records may be of a transaction. Raises `ApiError`."""
        self._appends.transaction = await TransactionalProduce.verify(
            self._context.node, self._request, self._version, self._find, self._context.turn
        )

    def _find(self, topic: TopicProduceData, data: PartitionProduceData) -> Partition | ErrorCode:
        return self._get_partition(topic.topic_id if self._uses_topic_ids else topic.name, data.index)

    async def run(self) -> ProduceResponse:
        response, turn = ProduceResponse(), self._context.turn
        rows = _Rows(response)
        for topic in self._request.topic_data:
            answers: list[PartitionProduceResponse] = []
            lacks_leader = False
            for data in topic.partition_data:
                answer = self._append(topic, data)
                if isinstance(answer, LongCheck):
                    answer = await self._append_in_turns(topic, data, answer)
                answers.append(answer)
                lacks_leader = lacks_leader or answer.error_code == _NOT_LEADER
                if turn.ends_with(_STEPS_OF_APPEND):
                    await turn.next()
            rows.add(topic, answers)
            if lacks_leader and self._version >= _CURRENT_LEADER_SINCE:
                await self._add_current_leaders(response, topic, answers)
        return response

    def _append(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse | LongCheck:
        index, records = data.index, data.records
        if self._named_twice and (topic.name, topic.topic_id, index) in self._named_twice:
            return _failed(index, ErrorCode.INVALID_REQUEST)
        partition = self._get_partition(topic.topic_id if self._uses_topic_ids else topic.name, index)
        if isinstance(partition, ErrorCode):
            return _failed(index, partition)
        if partition.topic in INTERNAL_TOPICS:
            return _failed(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if records is None:
            return _failed(index, ErrorCode.INVALID_RECORD)
        try:
            if self._request.acks not in _ACKS:
                self._refuse_acks(partition, records)
            if self._version < _ZSTD_SINCE:
                self._ensure_known_codec(partition, records)
            result = self._appends.append(partition, records)
        except ApiError as error:
            return self._refused(partition, error)
        return result if isinstance(result, LongCheck) else self._appended(partition, result)

    async def _append_in_turns(
        self, topic: TopicProduceData, data: PartitionProduceData, check: LongCheck
    ) -> PartitionProduceResponse:
        assert data.records is not None
        find = partial(self._find, topic, data)
        while True:
            try:
                result = await self._appends.finish(check, data.records, find)
            except ApiError as error:
                return self._refused(check.partition, error)
            if result is not None:
                return self._appended(check.partition, result)
            again = self._append(topic, data)
            if not isinstance(again, LongCheck):
                return again
            check = again

    def _appended(self, partition: Partition, result: AppendResult) -> PartitionProduceResponse:
        """Return the answer of an append, at once behind it."""
        answer = PartitionProduceResponse(
            index=partition.index,
            base_offset=result.first_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
            current_leader=_NO_LEADER,
        )
        end_offset = result.last_offset + 1
        if not is_settled_at_once(partition, end_offset):
            if self.delayed is None:
                self.delayed = DelayedProduce(self._context.node.partitions, self._request.acks)
            self.delayed.add(Appended(partition, end_offset), answer)
        return answer

    def _refused(self, partition: Partition, error: ApiError) -> PartitionProduceResponse:
        """Records at fault are told with a reason. Where the log refused them otherwise, the answer has its start.

        As Kafka's `ReplicaManager.appendToLocalLog`. A refusal by the transaction's coordinator has a reason alone, and
        so has a batch that is too large, which Kafka refuses without a word: clients refuse others by the same error.
        """
        partition.traffic.produce_requests += 1
        is_failed = error.code not in _NOT_FAILED
        if is_failed:
            partition.traffic.failed_produce += 1
        answer = _failed(partition.index, error.code)
        if isinstance(error, Unverified) or error.code is ErrorCode.MESSAGE_TOO_LARGE:
            answer.error_message = error.message
        elif is_failed and not isinstance(error, FrameError):
            answer.log_start_offset = partition.log.log_start_offset
        if isinstance(error, RecordValidationError):
            answer.error_message = error.message
            answer.log_start_offset = partition.log.log_start_offset
            named = error.record_errors[: self._record_errors_left]
            self._record_errors_left -= len(named)
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=each.batch_index, batch_index_error_message=each.message)
                for each in named
            ]
        return answer

    def _refuse_acks(self, partition: Partition, records: bytes | memoryview) -> NoReturn:
        """Raises `ApiError`: what is wrong with the batch or its transaction comes first, as in Kafka."""
        check_frame(records)
        if self._appends.transaction is not None:
            self._appends.transaction.check(partition, records)
        if self._version < _ZSTD_SINCE and records[_ATTRIBUTES_AT] & _CODEC_MASK == _ZSTD:
            raise FrameError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        raise Unverified(ErrorCode.INVALID_REQUIRED_ACKS)

    def _ensure_known_codec(self, partition: Partition, records: bytes | memoryview) -> None:
        """The request's version must know the batch's codec. Raises `ApiError`, of the leader's own first."""
        if len(records) <= _ATTRIBUTES_AT or records[_MAGIC_AT] != 2:
            return
        if records[_ATTRIBUTES_AT] & _CODEC_MASK == _ZSTD:
            raise FrameError(partition.append_refusal(self._request.acks) or ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    @cached_property
    def _leaders(self) -> CurrentLeaders[LeaderIdAndEpoch, NodeEndpoint]:
        return CurrentLeaders(self._context, LeaderIdAndEpoch, NodeEndpoint)

    async def _add_current_leaders(
        self, response: ProduceResponse, topic: TopicProduceData, answers: list[PartitionProduceResponse]
    ) -> None:
        for answer in answers:
            if answer.error_code != _NOT_LEADER:
                continue
            answer.current_leader = self._leaders.of(topic.name, topic.topic_id, answer.index)
            response.node_endpoints = self._leaders.nodes
            await self._context.turn.took(_STEPS_OF_LEADER)
