"""Fetch (key 1): read from partitions, at once or when there is enough to read.

Served are versions 4 to 18: 7 brought fetch sessions (KIP-227), 9 leader epochs (KIP-320), 12 flexible encoding and
diverging epochs (KIP-595), 13 topic ids (KIP-516), 15 the replica's state (KIP-903), 16 node endpoints (KIP-951).
Records stay in their files: the answer carries `LogSlice` objects, which the transport sends. This module reads the
request and makes the response, as Kafka's `KafkaApis.handleFetchRequest`; the reads and the wait are those of
`server.replicas.delayed_fetch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from pykbroker.replication.fetch_session import MOST_PARTITIONS_OF_ONE, FetchAnswer, FetchContext, PartitionAnswers
from pykbroker.replication.isr import NO_BROKER_EPOCH
from pykbroker.replication.reads import FetchIsolation, FetchParams, FetchPartitionData
from pykbroker.replication.session_watch import SessionWatch
from pykbroker.replication.traffic import TopicTraffic
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import ConnectionState, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.network.request_meter import RequestMeter
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.replicas.delayed_fetch import DelayedFetch
from pykbroker.server.replicas.fetch_sightings import FetchingClient
from pykbroker.server.replicas.partition_reads import MayRead, PartitionReads
from pykbroker.server.runtime.turns import Turn

from .current_leader import CurrentLeaders

_REPLICA_STATE_SINCE = 15
_TOPIC_IDS_SINCE = 13
_FETCH_FROM_FOLLOWER_SINCE = 11
_CURRENT_LEADER_SINCE = 16
_PORTION: Final = 100
_STEPS_OF_ANSWER: Final = 3
_BYTES_OF_ANSWER: Final = 20
_BYTES_OF_PARTITION: Final = 60
_READ_UNCOMMITTED = 0
_READ_COMMITTED = 1

_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

_NOT_FAILED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""Answers of a partition that Kafka does not count as failed reads."""

# Shared by all answers: making them costs more than the rest of a partition's answer. None is ever changed.
_NO_DIVERGENCE = EpochEndOffset()
_NO_LEADER = LeaderIdAndEpoch()
_NO_SNAPSHOT = SnapshotId()

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NONE: Final = ErrorCode.NONE
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


@handles(
    FetchRequest,
    needs=names((Operation.READ, ResourceType.TOPIC), (Operation.CLUSTER_ACTION, ResourceType.CLUSTER)),
    most_entries=MOST_PARTITIONS_OF_ONE,
)
async def fetch(context: RequestContext[Broker], request: FetchRequest) -> FetchResponse:
    broker = context.node
    version = context.header.api_version
    if request.max_bytes < 0 or request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return await _refused(context, request, ErrorCode.INVALID_REQUEST)
    params = _params(context, request)
    is_follower = params.replica_id >= 0
    if is_follower:
        context.turn = Turn(broker.replica_turns, context.connection.long_requests)
        if (meter := _meter(context)) is not None:
            meter.exempt()
    names, now_ms = broker.partitions.topic_name, broker.clock.monotonic_ms()
    session = await context.turn.through(
        broker.fetch_sessions.new_context_in_portions(request, version, names, now_ms, from_follower=is_follower)
    )
    if session.watched is not None:
        _note_speaker(context.connection, session.watched.watch)
    if broker.fetch_sightings is None or is_follower:
        return await _read(context, session, params, None)
    connection, topic_name = context.connection, broker.partitions.topic_name
    client = broker.fetch_sightings.begin(connection, request, version, topic_name, now_ms)
    try:
        return await _read(context, session, params, client)
    finally:
        client.end()


async def _read(
    context: RequestContext[Broker], session: FetchContext, params: FetchParams, client: FetchingClient | None
) -> FetchResponse:
    """Answer when there is enough to read. client: where the fetches of consumers are noted."""
    broker, is_follower = context.node, params.replica_id >= 0
    reads = PartitionReads(broker.partitions, params, context.turn, broker.clock, broker.replica_selector)
    if broker.authorizer is not None:
        reads.may_read = _rights(broker.authorizer, context.connection, is_follower=is_follower)
    delayed = DelayedFetch(reads, params, context.turn, broker.fetch_waits, context.connection, context.admission)
    answers = await delayed.answers(session)
    if is_follower:
        await reads.note_sent(answers)
        _count(broker.partitions.traffic.topics, answers, is_follower=True)
    else:
        if client is not None:
            client.answered(answers, broker.clock.monotonic_ms())
        if (meter := _meter(context)) is not None and meter.holds_back(_size_bytes(answers)):
            if client is not None:
                client.throttled_until_ms = broker.clock.monotonic_ms() + meter.throttle_ms
            return await _response(context, session.throttled(), is_follower=is_follower)
        _count(broker.partitions.traffic.topics, answers, is_follower=False)
    answer = await context.turn.through(session.finish_in_portions(answers, broker.clock.monotonic_ms()))
    return await _response(context, answer, is_follower=is_follower)


def _rights(authorizer: NodeAuthorizer, client: ConnectionState, *, is_follower: bool) -> MayRead | None:
    """Return what tells whether the client may read a topic; brokers may read all of them.

    The topic of an id that nobody knows has no name; a consumer is told that, and a follower nothing.
    """
    if is_follower:
        return None if authorizer.allows_on_cluster(client, Operation.CLUSTER_ACTION) else lambda name: False
    return lambda name: name is None or authorizer.allows(client, Operation.READ, ResourceType.TOPIC, name)


def _params(context: RequestContext[Broker], request: FetchRequest) -> FetchParams:
    version = context.header.api_version
    if version >= _REPLICA_STATE_SINCE:
        replica_id, replica_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    else:
        replica_id, replica_epoch = request.replica_id, NO_BROKER_EPOCH
    max_bytes = min(request.max_bytes, context.node.config.int("fetch.max.bytes"))
    if replica_id < 0 and (meter := _meter(context)) is not None:
        max_bytes = int(min(max_bytes, meter.most_fetched_at_once()))
    return FetchParams(
        replica_id,
        replica_epoch,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        _TXN_COMMITTED if request.isolation_level == _READ_COMMITTED else _HIGH_WATERMARK,
        request.rack_id,
        replica_id >= 0 or version < _FETCH_FROM_FOLLOWER_SINCE,
        context.number,
    )


def _meter(context: RequestContext[Broker]) -> RequestMeter | None:
    """Return the meter that is open for this request; None where no quota was set when it came."""
    meter = context.connection.meter
    return meter if meter is not None and meter.is_open else None


def _count(traffic: Mapping[str, TopicTraffic], answers: PartitionAnswers, *, is_follower: bool) -> None:
    """Count what is sent of each topic, and what has failed for no fault of the client."""
    for cached, data in answers:
        is_read = data.error_code is _NONE
        if (is_read and not data.records_size) or (of_topic := traffic.get(cached.topic or "")) is None:
            continue
        if not is_read:
            of_topic.failed_fetch += data.error_code not in _NOT_FAILED
        elif is_follower:
            of_topic.replication_bytes_out += data.records_size
        else:
            of_topic.bytes_out += data.records_size


def _size_bytes(answers: PartitionAnswers) -> int:
    """The size of an answer, about: records are counted, and what is around them is estimated."""
    sizes = [data.records_size for _, data in answers if data.records_size]
    return _BYTES_OF_ANSWER + sum(sizes) + _BYTES_OF_PARTITION * len(sizes)


class _Sessions:
    """A connection spoke for these sessions last; when it ends they watch nothing any more, and may go on elsewhere."""

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


async def _response(context: RequestContext[Broker], answer: FetchAnswer, *, is_follower: bool) -> FetchResponse:
    """Neighbours of one topic share an entry; the order of the partitions stays as it is."""
    response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
    tells_leaders = context.header.api_version >= _CURRENT_LEADER_SINCE
    leaders: CurrentLeaders[LeaderIdAndEpoch, NodeEndpoint] | None = None
    topic: FetchableTopicResponse | None = None
    for number, (cached, data) in enumerate(answer.partitions, 1):
        if topic is None or topic.topic_id != cached.topic_id or topic.topic != (cached.topic or ""):
            topic = FetchableTopicResponse(topic=cached.topic or "", topic_id=cached.topic_id)
            response.responses.append(topic)
        partition = _partition_data(cached.partition, data)
        if tells_leaders and data.error_code in _LEADER_MOVED:
            if leaders is None:
                leaders = CurrentLeaders(context, LeaderIdAndEpoch, NodeEndpoint)
                if not is_follower:  # brokers know each other
                    response.node_endpoints = leaders.nodes
            partition.current_leader = leaders.of(topic.topic, topic.topic_id, cached.partition)
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
