"""Produce (key 0): append record batches to the partitions that this broker leads.

Served are versions 3 to 13: 7 brought zstd, 8 errors per record, 9 flexible encoding (KIP-482), 10 the current leader
beside NOT_LEADER_OR_FOLLOWER (KIP-951), 13 topic ids instead of names (KIP-516). A batch is checked by
`pykbroker.storage`; here it is decided who may append what, and when the answer is due.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

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
from pykbroker.server.logs.record_checks import NobodyWaits, proceed
from pykbroker.server.network.handlers import CloseConnection, RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.replica_manager import ReplicaManager
from pykbroker.server.replicas.waiters import PartitionChanges
from pykbroker.server.runtime.few_tasks import in_few_tasks
from pykbroker.server.runtime.turns import PORTION, Turn, portions
from pykbroker.storage.log.log import LogConfig
from pykbroker.storage.segments.record_errors import RecordValidationError
from pykbroker.storage.segments.validation import (
    MAX_RECORD_ERRORS,
    CheckedBatch,
    CheckSteps,
    Job,
    budget_of_request,
    check_at_once,
    client_batch_steps,
)

from .current_leader import LeaderNode, current_leader
from .transactional_produce import TransactionalProduce

_TOPIC_IDS_SINCE = 13
_ZSTD_SINCE = 7
_CURRENT_LEADER_SINCE = 10

# Where a batch of format 2 has its magic and the low byte of its attributes.
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
_CODEC_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL = 0x10

NONE = ErrorCode.NONE
_NO_LEADER = LeaderIdAndEpoch()
_STEPS_OF_APPEND = 20
_STEPS_OF_LEADER = 4
_STEPS_OF_LOOK = 2

_Place: TypeAlias = tuple[str, bytes, int]
"""A partition as the request names it."""

_Waiting: TypeAlias = tuple[Appended, PartitionProduceResponse]
"""What was appended, and the answer that waits for it."""


@handles(ProduceRequest, most_entries=20_000)
async def produce(context: RequestContext[Broker], request: ProduceRequest) -> ProduceResponse | None:
    turn = context.turn
    refusal, named_twice, records_bytes = await _look_over(request, turn)
    if refusal is not NONE:
        response = await _same_error(request, refusal, turn)
    else:
        appends = _Appends(context, request, named_twice, records_bytes)
        try:
            if request.transactional_id is not None:
                await appends.verify_transaction()
            response = await appends.run()
        except ApiError as error:
            response = await _same_error(request, error.code, turn)
        if appends.to_flush or appends.unreplicated:
            _wait_for_others(context)
        if appends.to_flush:
            await in_few_tasks(appends.to_flush, partial(_flush, context.node.partitions))
        if appends.unreplicated:
            await _await_replication(context, appends.unreplicated, request.timeout_ms)
    if request.acks != 0:
        return response
    if any(answer.error_code for topic in response.responses for answer in topic.partition_responses):
        # Nobody reads an answer; a closed connection tells the producer to look for the leader again.
        raise CloseConnection("a produce request without acknowledgement failed")
    return None


async def _look_over(request: ProduceRequest, turn: Turn) -> tuple[ErrorCode, set[_Place], int]:
    """Why all of it is refused, the partitions that are named twice, and how many bytes of records there are.

    Kafka would append one of two batches for a partition and drop the other without a word.
    """
    if request.acks not in (ACKS_ALL, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS, set(), 0
    may_be_transactional = request.transactional_id is not None
    is_one = len(request.topic_data) == 1 and len(request.topic_data[0].partition_data) == 1
    named: set[_Place] = set()
    twice: set[_Place] = set()
    records_bytes = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is not None:
                records_bytes += len(records)
                if not may_be_transactional and _is_transactional(records):
                    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, set(), 0
            if is_one:
                break
            place = (topic.name, topic.topic_id, data.index)
            if place in named:
                twice.add(place)
            named.add(place)
            if not len(named) % PORTION:
                await turn.took(PORTION)
    return NONE, twice, records_bytes


def _wait_for_others(context: RequestContext[Broker]) -> None:
    """What follows takes as long as others need: no other large request is to wait for it."""
    if context.admission is not None:
        context.admission.leave()


def _is_transactional(records: bytes | memoryview) -> bool:
    return len(records) > _ATTRIBUTES_AT and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)


async def _same_error(request: ProduceRequest, error_code: ErrorCode, turn: Turn) -> ProduceResponse:
    response = ProduceResponse()
    for topic in request.topic_data:
        answers: list[PartitionProduceResponse] = []
        for portion in portions(topic.partition_data):
            answers += [_failed(data.index, error_code) for data in portion]
            await turn.took(len(portion))
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    return response


def _failed(index: int, error_code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error_code, base_offset=-1, error_message=message)


class _LongCheck(NamedTuple):
    """A check with its next step, for `RecordChecks`, and for which log it is made."""

    steps: CheckSteps
    step: Job | None
    partition: Partition
    config: LogConfig


class _Appends:
    """The appends of one request, and those of them whose replication is still open."""

    def __init__(
        self, context: RequestContext[Broker], request: ProduceRequest, named_twice: set[_Place], records_bytes: int
    ) -> None:
        self._replicas = context.node.partitions
        self._context = context
        self._request = request
        self._version = context.header.api_version
        self._now_ms = context.node.clock.now_ms()
        self._named_twice = named_twice
        self._budget = budget_of_request(records_bytes)
        self._record_errors_left = MAX_RECORD_ERRORS
        self._named_nodes: set[int] = set()
        self.unreplicated: list[_Waiting] = []
        self.to_flush: list[_Waiting] = []
        self._transaction: TransactionalProduce | None = None

    async def verify_transaction(self) -> None:
        """To be done first, where the request may hold records of a transaction. Raises ApiError."""
        self._transaction = await TransactionalProduce.verify(
            self._context.node, self._request, self._version, self._find, self._context.turn
        )

    def _find(self, topic: TopicProduceData, data: PartitionProduceData) -> Partition | ErrorCode:
        if self._version >= _TOPIC_IDS_SINCE:
            return self._replicas.get_partition_by_id(topic.topic_id, data.index)
        return self._replicas.get_partition(topic.name, data.index)

    async def run(self) -> ProduceResponse:
        response, turn = ProduceResponse(), self._context.turn
        for topic in self._request.topic_data:
            answers: list[PartitionProduceResponse] = []
            for data in topic.partition_data:
                answer = self._append(topic, data)
                if isinstance(answer, _LongCheck):
                    answer = await self._append_in_turns(topic, data, answer)
                answers.append(answer)
                if turn.ends_with(_STEPS_OF_APPEND):
                    await turn.next()
            response.responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
            if self._version >= _CURRENT_LEADER_SINCE:
                await self._add_current_leaders(response, topic, answers)
        return response

    def _append(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse | _LongCheck:
        """Most batches are checked and appended at once."""
        index, records = data.index, data.records
        if self._named_twice and (topic.name, topic.topic_id, index) in self._named_twice:
            return _failed(index, ErrorCode.INVALID_REQUEST)
        if self._version >= _TOPIC_IDS_SINCE:
            partition = self._replicas.get_partition_by_id(topic.topic_id, index)
        else:
            partition = self._replicas.get_partition(topic.name, index)
        if isinstance(partition, ErrorCode):
            return _failed(index, partition)
        refusal = self._refusal(partition, records)
        if refusal is not NONE or records is None:
            return _failed(index, refusal)
        try:
            if self._transaction is not None:
                self._transaction.check(partition, records)
            checked = self._begin_check(partition, records)
            if isinstance(checked, _LongCheck):
                return checked
            return self._append_checked(partition, records, checked)
        except ApiError as error:
            return self._refused(partition, error)

    async def _append_in_turns(
        self, topic: TopicProduceData, data: PartitionProduceData, check: _LongCheck
    ) -> PartitionProduceResponse:
        assert data.records is not None
        while True:
            partition = check.partition
            try:
                checked = await self._finish_check(check)
                if self._find(topic, data) is partition and partition.log.config is check.config:
                    if self._transaction is not None:
                        self._transaction.check(partition, data.records)
                    return self._append_checked(partition, data.records, checked)
            except ApiError as error:
                return self._refused(partition, error)
            again = self._append(topic, data)  # it was checked for what is no more
            if not isinstance(again, _LongCheck):
                return again
            check = again

    def _begin_check(self, partition: Partition, records: bytes | memoryview) -> CheckedBatch | _LongCheck:
        config, budget = partition.log.config, self._budget
        if budget.left > 0:
            found = check_at_once(records, config, self._now_ms, budget)
            if isinstance(found, CheckedBatch):
                return found
            if found is not None:
                return _LongCheck(found, None, partition, config)
        steps = client_batch_steps(records, config, self._now_ms, budget)
        step = None
        if budget.left > 0:
            begun: Job | CheckedBatch | None = proceed(steps.__next__)
            if isinstance(begun, CheckedBatch):
                return begun
            step = begun
        return _LongCheck(steps, step, partition, config)

    async def _finish_check(self, check: _LongCheck) -> CheckedBatch:
        _wait_for_others(self._context)
        connection = self._context.connection
        # Who wants no answer may leave as soon as everything is sent.
        is_wanted = lambda: not (connection.has_left and self._request.acks)  # noqa: E731
        try:
            checked = await self._replicas.record_checks.finish(
                check.step, check.steps, self._budget, connection.fair_share, is_wanted
            )
        except NobodyWaits:
            raise CloseConnection("the producer has left while its records were checked") from None
        self._now_ms = self._context.node.clock.now_ms()
        return checked

    def _append_checked(
        self, partition: Partition, records: bytes | memoryview, checked: CheckedBatch
    ) -> PartitionProduceResponse:
        index = partition.index
        result = self._replicas.append(partition, records, self._now_ms, self._request.acks, checked=checked)
        answer = PartitionProduceResponse(
            index=index,
            base_offset=result.first_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
            current_leader=_NO_LEADER,
        )
        end_offset = result.last_offset + 1
        if not is_settled_at_once(partition, end_offset):
            self._note_unsettled(Appended(partition, end_offset), answer)
        return answer

    def _note_unsettled(self, appended: Appended, answer: PartitionProduceResponse) -> None:
        if appended.lacks_flush:
            self.to_flush.append((appended, answer))
        if self._request.acks == ACKS_ALL:
            error = appended.settled()
            if error is None:
                self.unreplicated.append((appended, answer))
            else:
                answer.error_code = error

    def _refusal(self, partition: Partition, records: bytes | memoryview | None) -> ErrorCode:
        """What a look at topic and batch header rules out; the rest is checked by the log."""
        if partition.topic in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if records is None:
            return ErrorCode.INVALID_RECORD
        refusal = partition.append_refusal(self._request.acks)
        if refusal is not NONE:
            return refusal
        if len(records) <= _ATTRIBUTES_AT or records[_MAGIC_AT] != 2:
            return NONE
        attributes = records[_ATTRIBUTES_AT]
        if attributes & _CODEC_MASK == _ZSTD and self._version < _ZSTD_SINCE:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return NONE

    def _refused(self, partition: Partition, error: ApiError) -> PartitionProduceResponse:
        """An error with a message is about the records, and the answer says where the log begins."""
        answer = _failed(partition.index, error.code, error.message)
        if error.message is not None:
            answer.log_start_offset = partition.log.log_start_offset
        if isinstance(error, RecordValidationError):
            named = error.record_errors[: self._record_errors_left]
            self._record_errors_left -= len(named)
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=each.batch_index, batch_index_error_message=each.message)
                for each in named
            ]
        return answer

    async def _add_current_leaders(
        self, response: ProduceResponse, topic: TopicProduceData, answers: list[PartitionProduceResponse]
    ) -> None:
        """KIP-951: spares the producer a Metadata request."""
        for answer in answers:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            name = topic.name or self._replicas.topic_name(topic.topic_id) or ""
            leader = current_leader(self._context, name, answer.index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
            if leader.node is not None:
                self._name_node(response, leader.node)
            await self._context.turn.took(_STEPS_OF_LEADER)

    def _name_node(self, response: ProduceResponse, node: LeaderNode) -> None:
        if node.node_id not in self._named_nodes:
            self._named_nodes.add(node.node_id)
            response.node_endpoints.append(
                NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            )


async def _flush(replicas: ReplicaManager, waiting: _Waiting) -> None:
    """`flush.messages` of the topic: the producer is not told before its records are on the disk."""
    appended, answer = waiting
    if not await replicas.flush(appended.partition, appended.end_offset):
        answer.error_code = _settled(replicas, appended) or ErrorCode.KAFKA_STORAGE_ERROR


async def _await_replication(context: RequestContext[Broker], unreplicated: list[_Waiting], timeout_ms: int) -> None:
    """Until every in-sync replica has the records; each answer keeps its offset, whatever becomes of it.

    What has changed is looked at, and not all that is open: of thousands of partitions each may change for itself.
    """
    replicas, turn = context.node.partitions, context.turn
    still_open: dict[Partition, list[_Waiting]] = {}
    for waiting in unreplicated:
        still_open.setdefault(waiting[0].partition, []).append(waiting)
    with PartitionChanges(still_open, timeout_ms=timeout_ms, client=context.connection) as changes:
        changed = list(still_open)
        while changed:
            for partition in changed:
                left = _still_open(replicas, still_open.pop(partition, ()))
                if left:
                    still_open[partition] = left
                await turn.took(_STEPS_OF_LOOK)
            if not still_open:
                return
            changed = await changes.next()
    for _, answer in chain.from_iterable(still_open.values()):
        answer.error_code = ErrorCode.REQUEST_TIMED_OUT


def _still_open(replicas: ReplicaManager, unreplicated: Iterable[_Waiting]) -> list[_Waiting]:
    """Gives the others their error code. Whose flush has failed waits for nothing more."""
    still_open = []
    for waiting in unreplicated:
        appended, answer = waiting
        if answer.error_code:
            continue
        error = _settled(replicas, appended)
        if error is None:
            still_open.append(waiting)
        else:
            answer.error_code = error
    return still_open


def _settled(replicas: ReplicaManager, appended: Appended) -> ErrorCode | None:
    """What was lost because its log directory failed is not answered as if another leader had it."""
    error, partition = appended.settled(), appended.partition
    if error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return error
    is_offline = replicas.get_partition(partition.topic, partition.index) is ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.KAFKA_STORAGE_ERROR if is_offline else error
