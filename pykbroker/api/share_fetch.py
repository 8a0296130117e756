"""ShareFetch (key 78): a member of a share group acquires records, and says what became of earlier ones (KIP-932).

Served are versions 1 and 2; 2 brought the acquire mode that keeps to a number of records (KIP-1206), and renewals of
locks (KIP-1222), with which nothing is fetched. Records stay in their files, as in `fetch`. This module reads the
request and makes the response, as Kafka's `KafkaApis.handleShareFetchRequest`; what is read, and the wait for it, is
`server.sharing`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.network.request_meter import RequestMeter
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.sharing.share_partitions import SessionsOfConnection

from .current_leader import CurrentLeaders
from .share_requests import LEADER_MOVED, RENEWS_SINCE, Acknowledgements, partition_error, session_key

if TYPE_CHECKING:
    from pykbroker.server.sharing.delayed_share_fetch import SharedRecords
    from pykbroker.sharing.sessions import SessionContext, SessionKey, TopicIdPartition

_STEPS_OF_PARTITION: Final = 5
_BYTES_OF_ANSWER: Final = 20
_BYTES_OF_PARTITION: Final = 60
_ACQUIRE_MODES: Final = (0, 1)
_READ_COMMITTED: Final = "read_committed"


@handles(
    ShareFetchRequest,
    needs=names((Operation.READ, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
)
async def share_fetch(context: RequestContext[Broker], request: ShareFetchRequest) -> ShareFetchResponse:
    try:
        key = session_key(context, request.group_id, request.member_id)
        if context.header.api_version >= RENEWS_SINCE and request.is_renew_ack:
            _check_renewal(request)
        session, acknowledges = await _session(context, request, key)
        if request.share_acquire_mode not in _ACQUIRE_MODES:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
    except ApiError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await _idle(context, request.max_wait_ms)  # so that the client does not ask again and again
        return ShareFetchResponse(error_code=error.code)
    return await _Answer(context, request, key, session, acknowledges=acknowledges).made()


def _check_renewal(request: ShareFetchRequest) -> None:
    """Raises ApiError: with renewals nothing is fetched, and the request says so."""
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise ApiError(ErrorCode.INVALID_REQUEST)


async def _session(
    context: RequestContext[Broker], request: ShareFetchRequest, key: SessionKey
) -> tuple[SessionContext, bool]:
    """Return what the request is about, and whether it has acknowledgements. Raises ApiError."""
    from pykbroker.sharing.sessions import INITIAL_EPOCH, TopicIdPartition

    named: dict[TopicIdPartition, None] = {}
    acknowledges = False
    for topic in request.topics:
        for each in topic.partitions:
            named[TopicIdPartition(topic.topic_id, each.partition_index)] = None
            acknowledges = acknowledges or bool(each.acknowledgement_batches)
            await context.turn.took()
    forgotten: list[TopicIdPartition] = []
    for gone in request.forgotten_topics_data:
        forgotten += [TopicIdPartition(gone.topic_id, each) for each in gone.partitions]
        await context.turn.took(1 + len(gone.partitions))
    shares, connection, epoch = context.node.share_partitions, context.connection, request.share_session_epoch
    owner = connection.share_sessions_end
    if not isinstance(owner, SessionsOfConnection):
        owner = SessionsOfConnection(shares)
    session = shares.sessions.for_fetch(key, epoch, named, forgotten, owner, acknowledges=acknowledges)
    if epoch == INITIAL_EPOCH:
        connection.share_sessions_end = owner
        owner.add(key)
    return session, acknowledges


async def _idle(context: RequestContext[Broker], timeout_ms: int) -> None:
    from pykbroker.server.sharing.delayed_share_fetch import ShareChanges

    if context.admission is not None:
        context.admission.leave()
    with ShareChanges((), timeout_ms=max(timeout_ms, 0), client=context.connection) as nothing:
        await nothing.next()


class _Answer:
    """The answer to one request of a session."""

    def __init__(
        self,
        context: RequestContext[Broker],
        request: ShareFetchRequest,
        key: SessionKey,
        session: SessionContext,
        *,
        acknowledges: bool,
    ) -> None:
        self._context = context
        self._request = request
        self._key = key
        self._session = session
        self._acknowledges = acknowledges
        self._leaders = CurrentLeaders(context, LeaderIdAndEpoch, NodeEndpoint)
        self._topics: dict[bytes, ShareFetchableTopicResponse] = {}
        self._partitions: dict[TopicIdPartition, ShareFetchResponsePartitionData] = {}

    async def made(self) -> ShareFetchResponse:
        from pykbroker.sharing.sessions import FINAL_EPOCH

        context, request = self._context, self._request
        acknowledgements = Acknowledgements()
        if self._acknowledges:
            await acknowledgements.begin(context, self._key, request.topics, is_renewal=request.is_renew_ack)
        records: dict[TopicIdPartition, SharedRecords] = {}
        if context.header.api_version < RENEWS_SINCE or not request.is_renew_ack:
            records = await self._fetched()
        response = ShareFetchResponse()
        if self._is_withheld(records):
            await self._give_back(records)
        elif self._session.is_overtaken:
            response.error_code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
            await self._give_back(records)
        else:
            await self._tell(records)
        for at, refused in (await acknowledgements.outcomes()).items():
            answer = self._partition(at)
            if refused is not None:
                answer.acknowledge_error_code, answer.acknowledge_error_message = refused.code, refused.message
            await context.turn.took(_STEPS_OF_PARTITION)
        shares = context.node.share_partitions
        if request.share_session_epoch == FINAL_EPOCH:
            await shares.end_session(self._key, context.turn)
        response.acquisition_lock_timeout_ms = shares.limits(self._key.group_id).record_lock_duration_ms
        response.responses = list(self._topics.values())
        response.node_endpoints = self._leaders.nodes
        return response

    async def _fetched(self) -> dict[TopicIdPartition, SharedRecords]:
        """Return what was read of each partition of the session that has something to be told."""
        from pykbroker.server.sharing.delayed_share_fetch import DelayedShareFetch, SharedRecords, ShareFetchParams
        from pykbroker.sharing.partition.byte_shares import rotated
        from pykbroker.sharing.partition.values import AcquireMode
        from pykbroker.sharing.persister import SharePartitionKey

        context, request, broker = self._context, self._request, self._context.node
        found: dict[TopicIdPartition, SharedRecords] = {}
        wanted: list[TopicIdPartition] = []
        for at in self._session.partitions:
            error = partition_error(context, at)
            if error is ErrorCode.NONE:
                wanted.append(at)
            else:
                found[at] = SharedRecords(ApiError(error))
            await context.turn.took(_STEPS_OF_PARTITION)
        if not wanted:
            return found
        max_bytes = min(request.max_bytes, broker.config.int("fetch.max.bytes"))
        if (meter := self._meter()) is not None:
            max_bytes = int(min(max_bytes, meter.most_fetched_at_once()))
        group_id, member_id = self._key
        params = ShareFetchParams(
            group_id,
            member_id,
            request.max_wait_ms,
            min(request.min_bytes, max_bytes),
            max_bytes,
            request.max_records,
            request.batch_size,
            AcquireMode(request.share_acquire_mode),
            broker.share_partitions.group_values(group_id).str("share.isolation.level") == _READ_COMMITTED,
        )
        fetch = DelayedShareFetch(
            broker.share_partitions, params, context.turn, broker.fetch_waits, context.connection, context.admission
        )
        places = {SharePartitionKey(group_id, *at): at for at in rotated(wanted, request.share_session_epoch)}
        answers = await fetch.answers(list(places))
        found.update((places[key], answer) for key, answer in answers.items())
        return found

    def _meter(self) -> RequestMeter | None:
        meter = self._context.connection.meter
        return meter if meter is not None and meter.is_open else None

    def _is_withheld(self, records: dict[TopicIdPartition, SharedRecords]) -> bool:
        """Tell whether the client has had so much that an empty answer is to go out instead."""
        sizes = [each.records_size for each in records.values() if each.records_size]
        meter = self._meter()
        return meter is not None and meter.holds_back(
            _BYTES_OF_ANSWER + sum(sizes) + _BYTES_OF_PARTITION * len(records)
        )

    async def _give_back(self, records: dict[TopicIdPartition, SharedRecords]) -> None:
        from pykbroker.sharing.persister import SharePartitionKey

        for at, each in records.items():
            if each.acquired:
                key = SharePartitionKey(self._key.group_id, *at)
                self._context.node.share_partitions.give_back(self._key.member_id, key, each.acquired)
            await self._context.turn.took(_STEPS_OF_PARTITION)

    async def _tell(self, records: dict[TopicIdPartition, SharedRecords]) -> None:
        traffic = self._context.node.partitions.traffic.topics
        for at, each in records.items():
            error = each.error
            if self._session.has_to_tell(at, has_records=each.records_size > 0, has_error=error is not None):
                answer = self._partition(at)
                if error is not None:
                    answer.error_code = error.code
                    if error.code in LEADER_MOVED:
                        answer.current_leader = self._leaders.of("", at.topic_id, at.partition)
                answer.records = each.records
                answer.acquired_records = [
                    AcquiredRecords(first_offset=first, last_offset=last, delivery_count=delivery_count)
                    for first, last, delivery_count in each.acquired
                ]
                name = self._context.node.partitions.topic_name(at.topic_id)
                if each.records_size and name is not None and (of_topic := traffic.get(name)) is not None:
                    of_topic.bytes_out += each.records_size
            await self._context.turn.took(_STEPS_OF_PARTITION + len(each.acquired))

    def _partition(self, at: TopicIdPartition) -> ShareFetchResponsePartitionData:
        """Return the answer's place for a partition; a new one has no records."""
        answer = self._partitions.get(at)
        if answer is None:
            topic = self._topics.get(at.topic_id)
            if topic is None:
                topic = self._topics[at.topic_id] = ShareFetchableTopicResponse(topic_id=at.topic_id)
            answer = self._partitions[at] = ShareFetchResponsePartitionData(partition_index=at.partition, records=b"")
            topic.partitions.append(answer)
        return answer
