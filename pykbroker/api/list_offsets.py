"""ListOffsets (key 2): the offset for a timestamp, and the special ones: latest, earliest, of the largest timestamp.

Served are versions 1 to 11: 2 brought isolation levels, 4 leader epochs (KIP-320), 7 the largest timestamp (KIP-734),
8 the earliest local, 9 the latest tiered and 11 the earliest pending upload offset, of which there is none without
tiered storage (KIP-405, KIP-1005, KIP-1023).
"""

from __future__ import annotations

from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchIsolation, ListedOffset, OffsetSpec
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.logs.record_checks import NobodyWaits, proceed
from pykbroker.server.network.handlers import CloseConnection, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.files.steps import Job, Steps

from .authorization import is_allowed

_STEPS_OF_PARTITION = 5
_UNITS_PER_STEP = 2
_CONSUMER = -1
_DEBUGGING_CONSUMER = -2
_READ_COMMITTED = 1
_LEADER_EPOCH_SINCE = 4
_OFFSET_NOT_AVAILABLE_SINCE = 5
_SPECIAL_TIMESTAMPS_SINCE = {
    OffsetSpec.LATEST: 1,
    OffsetSpec.EARLIEST: 1,
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}

# To get a member from its enumeration takes Python 3.11 as long as a call.
_LOG_END: Final = FetchIsolation.LOG_END
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


@handles(ListOffsetsRequest, needs=names((Operation.DESCRIBE, ResourceType.TOPIC)))
async def list_offsets(context: RequestContext[Broker], request: ListOffsetsRequest) -> ListOffsetsResponse:
    lookup = _Lookup(context, request)
    if len(request.topics) > 1 or (request.topics and len(request.topics[0].partitions) > 1):
        await lookup.note_repeated(request)
    answers: dict[str, ListOffsetsTopicResponse] = {}
    response = ListOffsetsResponse()
    turn = context.turn
    for topic in request.topics:
        if lookup.is_denied(topic.name):
            response.topics.append(await turn.through(_denied(topic)))
            continue
        for each in topic.partitions:
            if not lookup.is_first(topic.name, each):
                continue
            found = lookup.known(topic.name, each)
            if found is None:
                found = await lookup.find(topic.name, each)
            elif turn.ends_with(_STEPS_OF_PARTITION):
                await turn.next()
            answer = answers.get(topic.name)
            if answer is None:
                answer = answers[topic.name] = ListOffsetsTopicResponse(name=topic.name)
                response.topics.append(answer)
            answer.partitions.append(lookup.answer(each, found))
    return response


def _denied(topic: ListOffsetsTopic) -> LongWork[ListOffsetsTopicResponse]:
    """A topic that the client may not describe is answered as it was asked for."""
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    answer = ListOffsetsTopicResponse(name=topic.name)
    for portion in portions(topic.partitions):
        answer.partitions += [
            ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=error) for each in portion
        ]
        yield len(portion)
    return answer


class _Lookup:
    """Find offsets as far as this reader may see."""

    __slots__ = (
        "_answered",
        "_context",
        "_is_restricted",
        "_isolation",
        "_leader_only",
        "_repeated",
        "_replicas",
        "_version",
    )

    def __init__(self, context: RequestContext[Broker], request: ListOffsetsRequest) -> None:
        self._context = context
        self._is_restricted = context.node.authorizer is not None
        self._replicas = context.node.partitions
        self._version = context.header.api_version
        self._leader_only = request.replica_id != _DEBUGGING_CONSUMER
        self._repeated: set[tuple[str, int]] = set()
        self._answered: set[tuple[str, int]] = set()
        if request.replica_id != _CONSUMER:
            self._isolation = _LOG_END
        else:
            self._isolation = _TXN_COMMITTED if request.isolation_level == _READ_COMMITTED else _HIGH_WATERMARK

    async def note_repeated(self, request: ListOffsetsRequest) -> None:
        """A partition that is named twice is answered with an error."""
        turn = self._context.turn
        named: set[tuple[str, int]] = set()
        for topic in request.topics:
            for each in topic.partitions:
                key = topic.name, each.partition_index
                if key in named:
                    self._repeated.add(key)
                named.add(key)
                if turn.ends_with(1):
                    await turn.next()

    def is_denied(self, topic: str) -> bool:
        return self._is_restricted and not is_allowed(self._context, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def is_first(self, topic: str, asked: ListOffsetsPartition) -> bool:
        """Tell whether the partition has no answer so far: one that is named twice has one (`ReplicaManager`)."""
        key = topic, asked.partition_index
        if key not in self._repeated:
            return True
        if key in self._answered:
            return False
        self._answered.add(key)
        return True

    def answer(self, asked: ListOffsetsPartition, found: ListedOffset) -> ListOffsetsPartitionResponse:
        error = found.error_code
        if self._version < _OFFSET_NOT_AVAILABLE_SINCE and error is ErrorCode.OFFSET_NOT_AVAILABLE:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        answer = ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=error, timestamp=found.timestamp, offset=found.offset
        )
        if self._version >= _LEADER_EPOCH_SINCE:
            answer.leader_epoch = found.leader_epoch
        return answer

    def known(self, topic: str, asked: ListOffsetsPartition) -> ListedOffset | None:
        """Return what can be said at once: the latest or the earliest offset, or an error. None where records tell."""
        if self._repeated and (topic, asked.partition_index) in self._repeated:
            return ListedOffset(ErrorCode.INVALID_REQUEST)
        timestamp = asked.timestamp
        if timestamp < 0 and self._version < _SPECIAL_TIMESTAMPS_SINCE.get(timestamp, self._version + 1):
            return ListedOffset(ErrorCode.UNSUPPORTED_VERSION)
        partition = self._replicas.get_partition(topic, asked.partition_index)
        if isinstance(partition, ErrorCode):
            return ListedOffset(partition)
        return partition.known_offset(
            timestamp, self._isolation, asked.current_leader_epoch, leader_only=self._leader_only
        )

    async def find(self, topic: str, asked: ListOffsetsPartition) -> ListedOffset:
        while True:
            partition = self._replicas.get_partition(topic, asked.partition_index)
            if isinstance(partition, ErrorCode):
                return ListedOffset(partition)
            found = await self._find_in(partition, asked)
            # It may have been deleted meanwhile, and created anew.
            if self._replicas.get_partition(topic, asked.partition_index) is partition:
                return found

    async def _find_in(self, partition: Partition, asked: ListOffsetsPartition) -> ListedOffset:
        budget = CheckBudget(TURN_UNITS)
        steps = partition.list_offset_steps(
            asked.timestamp,
            self._isolation,
            budget,
            current_leader_epoch=asked.current_leader_epoch,
            leader_only=self._leader_only,
        )
        try:
            found: Job | ListedOffset | None = proceed(steps.__next__)
            await self._context.turn.took(_STEPS_OF_PARTITION + (TURN_UNITS - budget.left) // _UNITS_PER_STEP)
            if isinstance(found, ListedOffset):
                return found
            return await self._finish(found, steps, budget)
        except CorruptLog as damage:
            self._replicas.quarantine(partition, damage)
        except FileError as failure:
            self._replicas.failures.in_log(partition.log, failure)
        return ListedOffset(ErrorCode.KAFKA_STORAGE_ERROR)

    async def _finish(self, step: Job | None, steps: Steps[ListedOffset], budget: CheckBudget) -> ListedOffset:
        """Look at records, in turns and in threads."""
        connection = self._context.connection
        is_wanted = lambda: not connection.has_left  # noqa: E731
        try:
            return await self._replicas.timestamp_lookups.finish(step, steps, budget, connection.fair_share, is_wanted)
        except NobodyWaits:
            raise CloseConnection("the client has left while a timestamp was looked for") from None
