"""A share consumer against a scripted leader: acknowledgements, gaps, lost sessions, and the end."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import trio

from pykbroker.client.share_acknowledgements import AcknowledgeType
from pykbroker.client.share_consumer import AcquireMode, ShareConsumer, open_share_consumer
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.share_groups import (
    AcknowledgementBatch,
    AcquiredRecords,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
    ShareGroupHeartbeatResponseTopicPartitions,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.topic_partition import TopicPartition
from tests.client.fake_broker import HOST, PORT, TOPIC_ID, FakeBroker, with_broker

GAP, ACCEPT, RELEASE, REJECT = AcknowledgeType
INTERVAL_MS = 1_000
Told = dict[int, int]
"""The type by offset that the leader was told."""


class Leader:
    """Coordinator and leader of the group g, which has partition 0 of t with four records.

    Ranges of offsets are acquired, one of them a fetch. refusals, heartbeats: the next error codes.
    """

    def __init__(self, broker: FakeBroker, *ranges: tuple[int, int]) -> None:
        self.ranges = list(ranges)
        self.refusals: list[ErrorCode] = []
        self.heartbeats: list[ErrorCode] = []
        self.acknowledge_errors: list[ErrorCode] = []
        self.told: list[Told] = []
        self.epochs: list[int] = []
        self.member_epochs: list[int] = []
        broker.serve_topics(t=1)
        broker.serve(FindCoordinatorRequest, _coordinator)
        broker.serve(ShareGroupHeartbeatRequest, self._heartbeat)
        broker.serve(ShareFetchRequest, self._fetch)
        broker.serve(ShareAcknowledgeRequest, self._acknowledge)

    def _heartbeat(self, request: ShareGroupHeartbeatRequest, version: int) -> ShareGroupHeartbeatResponse:
        self.member_epochs.append(request.member_epoch)
        assert (request.subscribed_topic_names == ["t"]) == (request.member_epoch == 0)
        code = _next(self.heartbeats)
        if code:
            return ShareGroupHeartbeatResponse(error_code=code)
        row = ShareGroupHeartbeatResponseTopicPartitions(topic_id=TOPIC_ID, partitions=[0])
        is_new = request.member_epoch == 0
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=min(request.member_epoch + 1, 5),
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=ShareGroupHeartbeatResponseAssignment(topic_partitions=[row]) if is_new else None,
        )

    def _fetch(self, request: ShareFetchRequest, version: int) -> ShareFetchResponse:
        self.epochs.append(request.share_session_epoch)
        batches = [each for topic in request.topics for row in topic.partitions for each in row.acknowledgement_batches]
        assert request.share_session_epoch or not batches
        self.told.append(_types(batches))
        code = _next(self.refusals)
        if code:
            return ShareFetchResponse(error_code=code)
        first, last = self.ranges.pop(0) if self.ranges else (0, -1)
        data = ShareFetchResponsePartitionData(
            acknowledge_error_code=_next(self.acknowledge_errors) if batches else ErrorCode.NONE,
            records=encode_batch([Record(None, b"%d" % offset, timestamp=0) for offset in range(4)]),
            acquired_records=[AcquiredRecords(first_offset=first, last_offset=last, delivery_count=3)]
            if last >= 0
            else [],
        )
        return ShareFetchResponse(responses=[ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])])

    def _acknowledge(self, request: ShareAcknowledgeRequest, version: int) -> ShareAcknowledgeResponse:
        self.epochs.append(request.share_session_epoch)
        self.told.append(
            _types(
                [each for topic in request.topics for row in topic.partitions for each in row.acknowledgement_batches]
            )
        )
        return ShareAcknowledgeResponse()


def _types(batches: list[AcknowledgementBatch]) -> Told:
    return {
        offset: batch.acknowledge_types[0]
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def _next(codes: list[ErrorCode]) -> ErrorCode:
    return codes.pop(0) if codes else ErrorCode.NONE


def _coordinator(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1, host=HOST, port=PORT)])


def consuming(broker: FakeBroker) -> AbstractAsyncContextManager[ShareConsumer]:
    return open_share_consumer(broker.cluster(), "g", ["t"], acquire_mode=AcquireMode.RECORD_LIMIT)


def test_acknowledgements_go_with_the_next_fetch_and_at_the_end() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (0, 1), (2, 3))
        async with consuming(broker) as consumer:
            first = await consumer.poll(2)
            assert [(each.offset, each.value, each.delivery_count) for each in first] == [(0, b"0", 3), (1, b"1", 3)]
            consumer.acknowledge(first[:1])
            consumer.acknowledge(first[1:], RELEASE)
            [third] = await consumer.poll(1)
            consumer.acknowledge([third], REJECT)
        assert leader.told == [{}, {0: ACCEPT, 1: RELEASE}, {2: REJECT}]
        assert leader.epochs == [0, 1, -1]
        assert leader.member_epochs[-1] == -1
        assert consumer.refused == {}
        assert [each.max_records for each in broker.of_type(ShareFetchRequest)] == [2, 1]

    with_broker(scenario)


def test_a_record_is_acknowledged_once_and_one_that_was_not_given_never() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (0, 0))
        async with consuming(broker) as consumer:
            [record] = await consumer.poll()
            consumer.acknowledge([record], REJECT)
            consumer.acknowledge([record, record._replace(offset=9), record._replace(topic="other")])
        assert leader.told == [{}, {0: REJECT}]

    with_broker(scenario)


def test_offsets_without_a_record_are_gaps() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (2, 1_000_000))
        async with consuming(broker) as consumer:
            records = await consumer.poll()
            assert [each.offset for each in records] == [2, 3]
            consumer.acknowledge(records)
        [_, told] = leader.told
        assert (told[2], told[3], told[4], told[1_000_000], len(told)) == (ACCEPT, ACCEPT, GAP, GAP, 999_999)

    with_broker(scenario)


def test_what_a_lost_session_held_is_given_up_and_fetched_anew() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (0, 1), (0, 1))
        async with consuming(broker) as consumer:
            records = await consumer.poll()
            consumer.acknowledge(records[:1])
            leader.refusals = [ErrorCode.SHARE_SESSION_NOT_FOUND]
            assert await consumer.poll() == []
            consumer.acknowledge(records[1:])
            assert [each.offset for each in await consumer.poll()] == [0, 1]
        assert leader.epochs == [0, 1, 0, -1]
        assert leader.told == [{}, {0: ACCEPT}, {}, {}]
        assert list(consumer.refused) == [TopicPartition("t", 0)]

    with_broker(scenario)


def test_what_was_to_go_to_a_node_that_has_moved_is_told_as_lost() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (0, 3), (0, 1))
        async with consuming(broker) as consumer:
            records = await consumer.poll(2)
            consumer.acknowledge(records)
            of_before = consumer._leaders[1]
            of_before.node = of_before.node._replace(host="moved")
            assert [each.offset for each in await consumer.poll()] == [2, 3], "what had come before is there"
            assert [each.offset for each in await consumer.poll()] == [0, 1]
        assert leader.epochs == [0, 0, -1]
        assert consumer.refused == {TopicPartition("t", 0): "Node 1 has another address."}

    with_broker(scenario)


def test_acknowledgements_that_are_refused_are_told() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (0, 0))
        leader.acknowledge_errors = [ErrorCode.INVALID_RECORD_STATE]
        async with consuming(broker) as consumer:
            consumer.acknowledge(await consumer.poll())
            assert await consumer.poll() == []
        assert consumer.refused == {TopicPartition("t", 0): ErrorCode.INVALID_RECORD_STATE.description}

    with_broker(scenario)


def test_a_member_that_was_forgotten_joins_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        leader = Leader(broker, (0, 0))
        async with consuming(broker) as consumer:
            await consumer.poll()
            leader.heartbeats = [ErrorCode.UNKNOWN_MEMBER_ID]
            await trio.sleep(1.5 * INTERVAL_MS / 1000)
            assert leader.member_epochs == [0, 1, 0]
            assert await consumer.poll() == []

    with_broker(scenario)


def test_without_partitions_a_poll_ends_in_time() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Leader(broker)

        def empty(request: ShareGroupHeartbeatRequest, version: int) -> ShareGroupHeartbeatResponse:
            return ShareGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=INTERVAL_MS)

        broker.serve(ShareGroupHeartbeatRequest, empty)
        async with consuming(broker) as consumer:
            began = trio.current_time()
            assert await consumer.poll() == []
            assert trio.current_time() - began == 0.5
        assert broker.of_type(ShareFetchRequest) == []

    with_broker(scenario)
