"""Fetch (key 1): read from partitions, at once or when there is enough to read.

Served are versions 4 to 18: 7 brought fetch sessions (KIP-227), 9 leader epochs (KIP-320), 12 flexible encoding and
diverging epochs (KIP-595), 13 topic ids (KIP-516), 15 the replica's state (KIP-903), 16 node endpoints (KIP-951).
Records stay in their files: the answer carries `LogSlice` objects, which the transport sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Final

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from pykbroker.replication.fetch_session import (
    MOST_PARTITIONS_OF_ONE,
    CachedPartition,
    FetchAnswer,
    PartitionAnswers,
    WatchedContext,
)
from pykbroker.replication.isr import NO_BROKER_EPOCH
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchIsolation, FetchPartitionData
from pykbroker.replication.session_watch import SessionWatch
from pykbroker.server.network.handlers import ConnectionState, RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.waiters import PartitionChanges, SessionChanges
from pykbroker.server.runtime.turns import Turn
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.segments.verification import Check, NotVerified

from .current_leader import current_leader

_REPLICA_STATE_SINCE = 15
_TOPIC_IDS_SINCE = 13
_FETCH_FROM_FOLLOWER_SINCE = 11
_CURRENT_LEADER_SINCE = 16
_READ_AT_ONCE: Final = 100
"""In less than one turn: what changes between the read and the wait for it would be missed."""
_PORTION: Final = 100
_STEPS_OF_READ: Final = 6
_STEPS_OF_ANSWER: Final = 3
_READ_UNCOMMITTED = 0
_READ_COMMITTED = 1

_NOT_HERE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""As in Kafka, a partition that does not exist does not cut the wait for the others short."""

_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

# Shared by all answers: making them costs more than the rest of a partition's answer. None is ever changed.
_NO_DIVERGENCE = EpochEndOffset()
_NO_LEADER = LeaderIdAndEpoch()
_NO_SNAPSHOT = SnapshotId()

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NONE: Final = ErrorCode.NONE
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


@handles(FetchRequest, most_entries=MOST_PARTITIONS_OF_ONE)
async def fetch(context: RequestContext[Broker], request: FetchRequest) -> FetchResponse:
    broker = context.node
    version = context.header.api_version
    if request.max_bytes < 0 or request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return await _refused(context, request, ErrorCode.INVALID_REQUEST)
    read = _Read(context, request, version)
    names, now_ms = broker.partitions.topic_name, broker.clock.monotonic_ms()
    session = await context.turn.through(
        broker.fetch_sessions.new_context_in_portions(
            request, version, names, now_ms, from_follower=read.replica_id >= 0
        )
    )
    watched = session.watched
    if watched is None:
        answers = await read.until_enough(session.partitions())
    else:
        _note_speaker(context.connection, watched.watch)
        answers = await read.until_enough_of(watched, session.partitions())
    await read.note_sent(answers)
    answer = await context.turn.through(session.finish_in_portions(answers, broker.clock.monotonic_ms()))
    return await _response(context, answer)


class _Read:
    """The parameters of one request, and the reads that it takes to answer it."""

    def __init__(self, context: RequestContext[Broker], request: FetchRequest, version: int) -> None:
        broker = context.node
        self._client = context.connection
        self._context = context
        self._replicas = broker.partitions
        if version >= _REPLICA_STATE_SINCE:
            self.replica_id = request.replica_state.replica_id
            self._broker_epoch = request.replica_state.replica_epoch
        else:
            self.replica_id, self._broker_epoch = request.replica_id, NO_BROKER_EPOCH
        if self.replica_id >= 0:
            context.turn = Turn(broker.replica_turns, context.connection.long_requests)
        self._turn = context.turn
        self._clock = broker.clock
        self._rack_id = request.rack_id
        self._selector = broker.replica_selector if self._rack_id and self.replica_id < 0 else None
        self._quota = self._replicas.leader_quota if self.replica_id >= 0 else None
        self._max_bytes = min(request.max_bytes, broker.config.int("fetch.max.bytes"))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_wait_ms = request.max_wait_ms
        self._leader_only = self.replica_id >= 0 or version < _FETCH_FROM_FOLLOWER_SINCE
        committed = request.isolation_level == _READ_COMMITTED
        self._isolation = _TXN_COMMITTED if committed else _HIGH_WATERMARK
        self._bytes_read = 0
        self._unverified: list[tuple[Partition, Check]] = []
        self._watched: WatchedContext | None = None
        self._counts = True
        """What a follower asks for is what it has, as long as this is the first look (`Partition.read_as_replica`)."""

    async def until_enough(self, requested: Iterable[CachedPartition]) -> PartitionAnswers:
        """Read; wait for changes and read again until min_bytes are there, something is wrong, or the time is over."""
        wanted = list(requested)
        if len(wanted) > _READ_AT_ONCE:
            return await self._until_enough_of_many(wanted)
        answers = await self._read_verified(wanted)
        missing = [answer for answer in answers if answer[1].error_code in _NOT_HERE]
        if missing:
            # Kafka answers them last.
            answers = [*_hosted(answers)]
        if not answers or self._max_wait_ms <= 0 or self._is_enough(answers):
            return answers + missing
        places = self._places(answers)
        with (
            self._room(len(wanted)),
            PartitionChanges(places, timeout_ms=self._max_wait_ms, client=self._client) as changes,
        ):
            await self._until_changes_are_enough(changes, places, answers)
        return answers + missing

    async def _until_enough_of_many(self, wanted: list[CachedPartition]) -> PartitionAnswers:
        """The same in several turns: what changes after it was read, and before the last one is, is watched already."""
        hosted, missing = await self._found(wanted)
        with PartitionChanges(hosted, timeout_ms=self._max_wait_ms, client=self._client) as changes:
            answers = await self._read_verified(hosted.values())
            if not answers or self._max_wait_ms <= 0 or self._is_enough(answers):
                return answers + missing
            places = {partition: number for number, partition in enumerate(hosted)}
            with self._room(len(wanted)):
                await self._until_changes_are_enough(changes, places, answers)
        return answers + missing

    async def _found(
        self, wanted: list[CachedPartition]
    ) -> tuple[dict[Partition, CachedPartition], list[tuple[CachedPartition, FetchPartitionData]]]:
        """What is hosted here, and the answers for what is not."""
        hosted: dict[Partition, CachedPartition] = {}
        missing = []
        for cached in wanted:
            partition = self._find(cached)
            if isinstance(partition, Partition):
                hosted[partition] = cached
            else:
                missing.append((cached, _refusal(partition)))
            await self._turn.took()
        return hosted, missing

    async def _until_changes_are_enough(
        self,
        changes: PartitionChanges,
        places: dict[Partition, int],
        answers: list[tuple[CachedPartition, FetchPartitionData]],
    ) -> None:
        while changed := await changes.next():
            numbers = [places[partition] for partition in changed]
            await self._read_again(answers, numbers)
            if self._is_enough([answers[number] for number in numbers]):
                break

    def _room(self, partitions: int) -> AbstractContextManager[None]:
        """To wait in: a large request is in hand no longer, and what it holds counts as waiting."""
        if self._context.admission is not None:
            self._context.admission.leave()
        return self._context.node.fetch_waits.room(partitions)

    async def until_enough_of(self, watched: WatchedContext, unsettled: Iterable[CachedPartition]) -> PartitionAnswers:
        """The same for a follower's session, of which only what has changed is read and answered."""
        session = watched.session
        self._watched = watched
        answers = await self._read_verified(unsettled)
        missing = sum(data.error_code in _NOT_HERE for _, data in answers)
        await self._turn.took(len(answers) // 4)
        if missing == len(session.cached) or self._max_wait_ms <= 0 or self._is_enough(_hosted(answers)):
            return answers
        places = {session.key(cached): number for number, (cached, _) in enumerate(answers)}
        with (
            self._room(len(answers)),
            SessionChanges(watched, timeout_ms=self._max_wait_ms, client=self._client) as changes,
        ):
            while changed := [key for key in await changes.next() if key in session.cached]:
                for key in changed:
                    if key not in places:
                        places[key] = len(answers)
                        answers.append((session.cached[key], FetchPartitionData()))
                numbers = [places[key] for key in changed]
                await self._read_again(answers, numbers)
                if self._is_enough([answers[number] for number in numbers]):
                    break
        return answers

    def _is_enough(self, answers: PartitionAnswers) -> bool:
        return self._bytes_read >= self._min_bytes or any(
            data.error_code is not _NONE or data.diverging_epoch is not None or data.preferred_read_replica >= 0
            for _, data in answers
        )

    def _find(self, cached: CachedPartition) -> Partition | ErrorCode:
        return self._replicas.get_fetched_partition(cached.topic, cached.topic_id, cached.partition)

    def _places(self, answers: PartitionAnswers) -> dict[Partition, int]:
        """Where the answer of each hosted partition is."""
        found = ((self._find(cached), number) for number, (cached, _) in enumerate(answers))
        return {partition: number for partition, number in found if isinstance(partition, Partition)}

    async def _read_again(self, answers: list[tuple[CachedPartition, FetchPartitionData]], numbers: list[int]) -> None:
        """What has changed; of a thousand partitions the others are as they were."""
        while True:
            self._unverified.clear()
            for count, number in enumerate(numbers, 1):
                cached, before = answers[number]
                self._bytes_read -= before.records_size
                budget = max(0, self._max_bytes - self._bytes_read)
                data = self._read(cached, budget, min_one_batch=not self._bytes_read)
                self._bytes_read += data.records_size
                answers[number] = cached, data
                if not count % _PORTION:
                    await self._turn.took(_PORTION * _STEPS_OF_READ)
            if not self._unverified:
                return
            for partition, check in self._unverified:
                await self._replicas.verify(partition, check)

    async def _read_verified(
        self, wanted: Iterable[CachedPartition]
    ) -> list[tuple[CachedPartition, FetchPartitionData]]:
        """Read once more when what nobody has read since the start is known to be sound."""
        answers = await self._read_all(wanted)
        while self._unverified:
            for partition, check in self._unverified:
                await self._replicas.verify(partition, check)
            answers = await self._read_all([cached for cached, _ in answers])
        return answers

    async def _read_all(self, wanted: Iterable[CachedPartition]) -> list[tuple[CachedPartition, FetchPartitionData]]:
        """Up to max_bytes over all; the first partition that has something gives a batch however large it is."""
        answers = []
        budget = self._max_bytes
        self._bytes_read = 0
        self._unverified.clear()
        for number, cached in enumerate(wanted, 1):
            data = self._read(cached, budget, min_one_batch=not self._bytes_read)
            if data.records_size:
                self._bytes_read += data.records_size
                budget = max(0, budget - data.records_size)
            answers.append((cached, data))
            if not number % _PORTION:
                await self._turn.took(_PORTION * _STEPS_OF_READ)
        self._counts = False
        return answers

    def _read(self, cached: CachedPartition, budget: int, min_one_batch: bool) -> FetchPartitionData:
        partition = self._find(cached)
        if isinstance(partition, ErrorCode):
            return _refusal(partition)
        try:
            return self._read_from(partition, cached, budget, min_one_batch)
        except NotVerified as unverified:
            self._unverified.append((partition, unverified.check))
            return FetchPartitionData()
        except CorruptLog as damage:
            self._replicas.quarantine(partition, damage)
            return _refusal(ErrorCode.KAFKA_STORAGE_ERROR)
        except FileError as failure:
            self._replicas.failures.in_log(partition.log, failure)
            return _refusal(ErrorCode.KAFKA_STORAGE_ERROR)

    def _read_from(
        self, partition: Partition, cached: CachedPartition, budget: int, min_one_batch: bool
    ) -> FetchPartitionData:
        asked = cached.request
        if asked.partition_max_bytes < 0:
            return FetchPartitionData(ErrorCode.INVALID_REQUEST)
        max_bytes = min(asked.partition_max_bytes, budget)
        if self.replica_id >= 0:
            if self._quota is not None and self._quota.is_set:
                max_bytes, min_one_batch = self._throttled(partition, max_bytes, min_one_batch)
            data = partition.read_as_replica(
                self.replica_id,
                asked.fetch_offset,
                max_bytes,
                asked.current_leader_epoch,
                min_one_batch,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                now_ms=self._clock.monotonic_ms(),
                broker_epoch=self._broker_epoch,
                counts=self._counts and partition.in_sync.hears(self.replica_id, self._context.number),
            )
            if self._watched is not None:
                self._watched.was_read(cached, partition, data, self.replica_id)
            return data
        if self._selector is not None:
            preferred = self._selector.select(partition, self._rack_id, asked.fetch_offset)
            if preferred >= 0:
                return partition.refer_to(preferred, asked.current_leader_epoch)
        return partition.read(
            asked.fetch_offset,
            max_bytes,
            self._isolation,
            asked.current_leader_epoch,
            min_one_batch,
            last_fetched_epoch=asked.last_fetched_epoch,
            leader_only=self._leader_only,
        )

    def _throttled(self, partition: Partition, max_bytes: int, min_one_batch: bool) -> tuple[int, bool]:
        """Nothing, where the quota holds the follower back. Its offset counts all the same."""
        assert self._quota is not None
        if self.replica_id in partition.isr or not self._quota.holds_back(partition, self._clock.monotonic_ms()):
            return max_bytes, min_one_batch
        return 0, False

    async def note_sent(self, answers: PartitionAnswers) -> None:
        """What goes to a follower counts for the quota, whoever is in sync."""
        if self._quota is None or not self._quota.is_set:
            return
        for cached, data in answers:
            partition = self._find(cached)
            if data.records_size and isinstance(partition, Partition):
                self._quota.note(partition, data.records_size, self._clock.monotonic_ms())
            await self._turn.took()


class _Sessions:
    """Those that a connection spoke for last; when it ends they watch nothing any more, and may go on elsewhere."""

    def __init__(self) -> None:
        self._watches: dict[SessionWatch, None] = {}

    def add(self, watch: SessionWatch) -> None:
        watch.speaker = self
        self._watches = {each: None for each in (*self._watches, watch) if each.speaker is self and not each.is_closed}

    def __call__(self) -> None:
        for watch in self._watches:
            if watch.speaker is self:
                watch.release()
                next(watch.let_go(), 0)  # the rest, of a large one, with its next request or its end


def _note_speaker(connection: ConnectionState, watch: SessionWatch) -> None:
    if connection.when_closed is None:
        connection.when_closed = _Sessions()
    sessions = connection.when_closed
    if isinstance(sessions, _Sessions) and watch.speaker is not sessions:
        sessions.add(watch)


def _hosted(answers: PartitionAnswers) -> PartitionAnswers:
    return [answer for answer in answers if answer[1].error_code not in _NOT_HERE]


@cache
def _refusal(error_code: ErrorCode) -> FetchPartitionData:
    """One for all partitions; the aborted transactions are empty and not null, as Kafka does."""
    return FetchPartitionData(error_code, aborted_transactions=())


async def _response(context: RequestContext[Broker], answer: FetchAnswer) -> FetchResponse:
    """Neighbours of one topic share an entry; the order of the partitions stays as it is."""
    response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
    tells_leaders = context.header.api_version >= _CURRENT_LEADER_SINCE
    topic: FetchableTopicResponse | None = None
    for number, (cached, data) in enumerate(answer.partitions, 1):
        if topic is None or topic.topic_id != cached.topic_id or topic.topic != (cached.topic or ""):
            topic = FetchableTopicResponse(topic=cached.topic or "", topic_id=cached.topic_id)
            response.responses.append(topic)
        partition = _partition_data(cached.partition, data)
        if tells_leaders and data.error_code in _LEADER_MOVED:
            _add_current_leader(context, response, topic, partition)
        topic.partitions.append(partition)
        if not number % _PORTION:
            await context.turn.took(_PORTION * _STEPS_OF_ANSWER)
    return response


def _partition_data(index: int, data: FetchPartitionData) -> PartitionData:
    answer = PartitionData(
        partition_index=index,
        error_code=data.error_code,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        diverging_epoch=_NO_DIVERGENCE,
        current_leader=_NO_LEADER,
        snapshot_id=_NO_SNAPSHOT,
        aborted_transactions=None if data.aborted_transactions is None else _aborted(data.aborted_transactions),
        preferred_read_replica=data.preferred_read_replica,
        records=data.records,
    )
    if data.diverging_epoch is not None:
        epoch, end_offset = data.diverging_epoch
        answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return answer


def _aborted(transactions: Sequence[tuple[int, int]]) -> list[AbortedTransaction]:
    return [AbortedTransaction(producer_id=each, first_offset=first_offset) for each, first_offset in transactions]


def _add_current_leader(
    context: RequestContext[Broker], response: FetchResponse, topic: FetchableTopicResponse, answer: PartitionData
) -> None:
    """KIP-951: spares the reader a Metadata request."""
    name = context.node.partitions.topic_name(topic.topic_id) or topic.topic
    leader = current_leader(context, name, answer.partition_index)
    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
    node = leader.node
    if node is not None and all(each.node_id != node.node_id for each in response.node_endpoints):
        response.node_endpoints.append(
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        )


async def _refused(context: RequestContext[Broker], request: FetchRequest, error_code: ErrorCode) -> FetchResponse:
    """Clients before version 7 see no error but the partitions'; since 13 the one on top is all there is."""
    response = FetchResponse(error_code=error_code, session_id=request.session_id)
    if context.header.api_version < _TOPIC_IDS_SINCE:
        for topic in request.topics:
            refused = FetchableTopicResponse(topic=topic.topic)
            response.responses.append(refused)
            for each in topic.partitions:
                refused.partitions.append(_partition_data(each.partition, FetchPartitionData(error_code)))
                await context.turn.took(_STEPS_OF_ANSWER)
    return response
