"""Membership in a group against a scripted coordinator: joining, rebalances, commits, leaving."""

from typing import Any

import trio

from pykbroker.client.consumer_protocol import encode_assignment
from pykbroker.client.group_consumer import GroupConsumer, open_group_consumer
from pykbroker.client.offsets import EARLIEST_TIMESTAMP
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pykbroker.protocol.messages.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.topic_partition import TopicPartition
from tests.client.fake_broker import HOST, PORT, FakeBroker, with_broker

MEMBER = "member-1"
RECORDS = 4
"""In each partition, at offsets 0 to 3."""


class Group:
    """A coordinator with one member, which leads; `heartbeats` are the next answers to its heartbeats."""

    def __init__(self, broker: FakeBroker, partitions: int = 2) -> None:
        self.generation = 0
        self.heartbeats: list[ErrorCode] = []
        self.commits: list[ErrorCode] = []
        self.committed: dict[int, int] = {}
        self.left = False
        broker.serve_topics(t=partitions)
        broker.serve(FindCoordinatorRequest, _coordinator)
        broker.serve(JoinGroupRequest, self._join)
        broker.serve(SyncGroupRequest, self._sync)
        broker.serve(HeartbeatRequest, lambda request, version: HeartbeatResponse(error_code=_next(self.heartbeats)))
        broker.serve(LeaveGroupRequest, self._leave)
        broker.serve(OffsetFetchRequest, self._offset_fetch)
        broker.serve(OffsetCommitRequest, self._offset_commit)
        broker.serve(ListOffsetsRequest, _list_offsets)
        broker.serve(FetchRequest, _fetch)

    def _join(self, request: JoinGroupRequest, version: int) -> JoinGroupResponse:
        if not request.member_id:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=MEMBER, protocol_name="")
        assert request.member_id == MEMBER
        self.generation += 1
        member = JoinGroupResponseMember(member_id=MEMBER, metadata=request.protocols[0].metadata)
        return JoinGroupResponse(
            generation_id=self.generation, protocol_name="range", leader=MEMBER, member_id=MEMBER, members=[member]
        )

    def _sync(self, request: SyncGroupRequest, version: int) -> SyncGroupResponse:
        assert request.generation_id == self.generation
        [row] = request.assignments
        return SyncGroupResponse(assignment=row.assignment)

    def _leave(self, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        assert [member.member_id for member in request.members] == [MEMBER]
        self.left = True
        return LeaveGroupResponse()

    def _offset_fetch(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        [asked] = request.groups
        assert asked.topics is not None
        rows = [
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=self.committed.get(index, -1))
            for index in asked.topics[0].partition_indexes
        ]
        topic = OffsetFetchResponseTopics(name="t", partitions=rows)
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])

    def _offset_commit(self, request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
        assert (request.member_id, request.generation_id_or_member_epoch) == (MEMBER, self.generation)
        code = _next(self.commits)
        [topic] = request.topics
        if code is ErrorCode.NONE:
            self.committed.update({row.partition_index: row.committed_offset for row in topic.partitions})
        rows = [
            OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code)
            for row in topic.partitions
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=rows)])


def _next(codes: list[ErrorCode]) -> ErrorCode:
    return codes.pop(0) if codes else ErrorCode.NONE


def _coordinator(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1, host=HOST, port=PORT)])


def _list_offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    rows = [
        ListOffsetsPartitionResponse(partition_index=row.partition_index, offset=0)
        for row in request.topics[0].partitions
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=rows)])


def _fetch(request: FetchRequest, version: int) -> FetchResponse:
    [topic] = request.topics
    rows = []
    for wanted in topic.partitions:
        records = [Record(None, b"%d" % offset, timestamp=0) for offset in range(RECORDS)]
        data = encode_batch(records) if wanted.fetch_offset < RECORDS else b""
        rows.append(PartitionData(partition_index=wanted.partition, high_watermark=RECORDS, records=data))
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=rows)])


def consuming(broker: FakeBroker) -> Any:
    return open_group_consumer(broker.cluster(), "g", ["t"], reset_to=EARLIEST_TIMESTAMP, heartbeat_interval_ms=100)


async def read(member: GroupConsumer, count: int) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in await member.poll(count)]


def test_a_member_joins_with_the_id_it_is_given_reads_commits_and_leaves() -> None:
    async def scenario(broker: FakeBroker) -> None:
        group = Group(broker)
        async with consuming(broker) as member:
            assert await read(member, 6) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
            assert group.committed == {}
        assert group.committed == {0: 4, 1: 2}
        assert group.left
        assert [request.member_id for request in broker.of_type(JoinGroupRequest)] == ["", MEMBER]

    with_broker(scenario)


def test_a_member_goes_on_where_the_group_has_committed() -> None:
    async def scenario(broker: FakeBroker) -> None:
        group = Group(broker)
        group.committed = {0: 3}
        async with consuming(broker) as member:
            assert sorted(await read(member, 6)) == [(0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]

    with_broker(scenario)


def test_a_rebalance_commits_first_and_then_joins_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        group = Group(broker, partitions=1)
        async with consuming(broker) as member:
            assert await read(member, 2) == [(0, 0), (0, 1)]
            group.heartbeats = [ErrorCode.REBALANCE_IN_PROGRESS]
            await trio.sleep(0.15)
            assert await read(member, 2) == [(0, 2), (0, 3)]
            assert group.generation == 2
        assert group.committed == {0: 4}

    with_broker(scenario)


def test_a_member_that_the_group_has_forgotten_joins_as_a_new_one() -> None:
    async def scenario(broker: FakeBroker) -> None:
        group = Group(broker, partitions=1)
        async with consuming(broker) as member:
            await member.poll(1)
            group.heartbeats = [ErrorCode.UNKNOWN_MEMBER_ID]
            await trio.sleep(0.15)
            await member.poll(1)
        assert [request.member_id for request in broker.of_type(JoinGroupRequest)] == ["", MEMBER, "", MEMBER]

    with_broker(scenario)


def test_offsets_are_committed_every_five_seconds() -> None:
    async def scenario(broker: FakeBroker) -> None:
        group = Group(broker, partitions=1)
        async with consuming(broker) as member:
            await member.poll(2)
            await trio.sleep(5)
            assert group.committed == {}
            await member.poll(1)
            assert group.committed == {0: 2}
        assert group.committed == {0: 3}

    with_broker(scenario)


def test_a_cancelled_member_still_commits_and_leaves() -> None:
    async def scenario(broker: FakeBroker) -> None:
        group = Group(broker, partitions=1)
        with trio.move_on_after(1):
            async with consuming(broker) as member:
                await member.poll(3)
                await trio.sleep_forever()
        assert group.committed == {0: 3}
        assert group.left

    with_broker(scenario)


def test_an_assignment_is_written_as_consumers_do() -> None:
    assert encode_assignment([TopicPartition("t", 2)]) == bytes.fromhex(
        "0001 00000001 0001 74 00000001 00000002 ffffffff"
    )
