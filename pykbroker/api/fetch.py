"""Fetch (key 1): read from partitions, at once or when there is enough to read.

Served are versions 4 to 18: 7 brought fetch sessions (KIP-227), 9 leader epochs (KIP-320), 12 flexible encoding and
diverging epochs (KIP-595), 13 topic ids (KIP-516), 15 the replica's state (KIP-903), 16 node endpoints (KIP-951).
Records stay in their files: the answer carries `LogSlice` objects, which the transport sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from pykbroker.replication.fetch_session import CachedPartition, FetchAnswer, PartitionAnswers
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchIsolation, FetchPartitionData
from pykbroker.server.dispatch import RequestContext, handles
from pykbroker.server.waiters import PartitionChanges

from .current_leader import current_leader

_REPLICA_STATE_SINCE = 15
_TOPIC_IDS_SINCE = 13
_FETCH_FROM_FOLLOWER_SINCE = 11
_CURRENT_LEADER_SINCE = 16
_READ_UNCOMMITTED = 0
_READ_COMMITTED = 1

_NOT_HERE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""As in Kafka, a partition that does not exist does not cut the wait for the others short."""

_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

# Shared by all answers: making them costs more than the rest of a partition's answer. None is ever changed.
_NO_DIVERGENCE = EpochEndOffset()
_NO_LEADER = LeaderIdAndEpoch()
_NO_SNAPSHOT = SnapshotId()


@handles(FetchRequest)
async def fetch(context: RequestContext, request: FetchRequest) -> FetchResponse:
    broker = context.broker
    version = context.header.api_version
    if request.max_bytes < 0 or request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return _refused(request, version, ErrorCode.INVALID_REQUEST)
    read = _Read(context, request, version)
    session = broker.fetch_sessions.new_context(
        request,
        version,
        broker.partitions.topic_name,
        broker.clock.monotonic_ms(),
        from_follower=read.replica_id >= 0,
    )
    answers = await read.until_enough(session.partitions())
    response = _response(session.finish(answers, broker.clock.monotonic_ms()))
    if version >= _CURRENT_LEADER_SINCE:
        _add_current_leaders(context, response)
    return response


class _Read:
    """The parameters of one request, and the reads that it takes to answer it."""

    def __init__(self, context: RequestContext, request: FetchRequest, version: int) -> None:
        broker = context.broker
        self._replicas = broker.partitions
        self.replica_id = request.replica_state.replica_id if version >= _REPLICA_STATE_SINCE else request.replica_id
        self._max_bytes = min(request.max_bytes, broker.config.int("fetch.max.bytes"))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_wait_ms = request.max_wait_ms
        self._leader_only = self.replica_id >= 0 or version < _FETCH_FROM_FOLLOWER_SINCE
        committed = request.isolation_level == _READ_COMMITTED
        self._isolation = FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK
        self._bytes_read = 0

    async def until_enough(self, requested: Iterable[CachedPartition]) -> PartitionAnswers:
        """Read; wait for changes and read again until min_bytes are there, something is wrong, or the time is over."""
        answers = self._read_all(requested)
        missing = [answer for answer in answers if answer[1].error_code in _NOT_HERE]
        if missing:
            # Kafka answers them last.
            answers = [answer for answer in answers if answer[1].error_code not in _NOT_HERE]
        if not answers or self._max_wait_ms <= 0 or self._is_enough(answers):
            return answers + missing
        wanted = [cached for cached, _ in answers]
        with PartitionChanges(self._hosted(wanted), timeout_ms=self._max_wait_ms) as changes:
            while await changes.next():
                answers = self._read_all(wanted)
                if self._is_enough(answers):
                    break
        return answers + missing

    def _is_enough(self, answers: PartitionAnswers) -> bool:
        return self._bytes_read >= self._min_bytes or any(
            data.error_code is not ErrorCode.NONE or data.diverging_epoch is not None for _, data in answers
        )

    def _find(self, cached: CachedPartition) -> Partition | ErrorCode:
        return self._replicas.get_fetched_partition(cached.topic, cached.topic_id, cached.partition)

    def _hosted(self, wanted: Iterable[CachedPartition]) -> Iterator[Partition]:
        for cached in wanted:
            partition = self._find(cached)
            if isinstance(partition, Partition):
                yield partition

    def _read_all(self, wanted: Iterable[CachedPartition]) -> list[tuple[CachedPartition, FetchPartitionData]]:
        """Up to max_bytes over all; the first partition that has something gives a batch however large it is."""
        answers = []
        budget = self._max_bytes
        self._bytes_read = 0
        for cached in wanted:
            data = self._read(cached, budget, min_one_batch=not self._bytes_read)
            if data.records_size:
                self._bytes_read += data.records_size
                budget = max(0, budget - data.records_size)
            answers.append((cached, data))
        return answers

    def _read(self, cached: CachedPartition, budget: int, min_one_batch: bool) -> FetchPartitionData:
        partition = self._find(cached)
        if isinstance(partition, ErrorCode):
            return FetchPartitionData(partition, aborted_transactions=())  # empty and not null, as Kafka does
        asked = cached.request
        if asked.partition_max_bytes < 0:
            return FetchPartitionData(ErrorCode.INVALID_REQUEST)
        max_bytes = min(asked.partition_max_bytes, budget)
        if self.replica_id >= 0:
            return partition.read_as_replica(
                self.replica_id,
                asked.fetch_offset,
                max_bytes,
                asked.current_leader_epoch,
                min_one_batch,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
            )
        return partition.read(
            asked.fetch_offset,
            max_bytes,
            self._isolation,
            asked.current_leader_epoch,
            min_one_batch,
            last_fetched_epoch=asked.last_fetched_epoch,
            leader_only=self._leader_only,
        )


def _response(answer: FetchAnswer) -> FetchResponse:
    """Neighbours of one topic share an entry; the order of the partitions stays as it is."""
    response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
    topic: FetchableTopicResponse | None = None
    for cached, data in answer.partitions:
        if topic is None or topic.topic_id != cached.topic_id or topic.topic != (cached.topic or ""):
            topic = FetchableTopicResponse(topic=cached.topic or "", topic_id=cached.topic_id)
            response.responses.append(topic)
        topic.partitions.append(_partition_data(cached.partition, data))
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


def _add_current_leaders(context: RequestContext, response: FetchResponse) -> None:
    """KIP-951: spares the reader a Metadata request."""
    for topic in response.responses:
        for answer in topic.partitions:
            if answer.error_code not in _LEADER_MOVED:
                continue
            name = context.broker.partitions.topic_name(topic.topic_id) or topic.topic
            leader = current_leader(context, name, answer.partition_index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
            node = leader.node
            if node is not None and all(each.node_id != node.node_id for each in response.node_endpoints):
                response.node_endpoints.append(
                    NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
                )


def _refused(request: FetchRequest, version: int, error_code: ErrorCode) -> FetchResponse:
    """Clients before version 7 see no error but the partitions'; since 13 the one on top is all there is."""
    response = FetchResponse(error_code=error_code, session_id=request.session_id)
    if version < _TOPIC_IDS_SINCE:
        for topic in request.topics:
            partitions = [_partition_data(each.partition, FetchPartitionData(error_code)) for each in topic.partitions]
            response.responses.append(FetchableTopicResponse(topic=topic.topic, partitions=partitions))
    return response
