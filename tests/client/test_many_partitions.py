"""Questions about many partitions and to many nodes: in pieces, page by page, and without those that do not answer."""

from __future__ import annotations

from collections.abc import Mapping

import trio
import trio.testing

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.each_node import ask_each
from pykbroker.client.elections import ElectionType, elect_leaders
from pykbroker.client.errors import ClientError, KafkaError, NoBrokerReachable, TimedOut
from pykbroker.client.metadata import Node
from pykbroker.client.offsets import LATEST_TIMESTAMP, MAX_TIMESTAMP, OffsetAndTimestamp, list_reachable_offsets
from pykbroker.client.reassignments import alter_reassignments, list_reassignments
from pykbroker.client.topics import list_topics
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionResult,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .fake_broker import HOST, PORT, FakeBroker, with_broker

PARTITIONS = 12_000
PIECES = [2_000, 5_000, 5_000]
ALL = [TopicPartition("t", number) for number in range(PARTITIONS)]


def end_offsets(request: ListOffsetsRequest, error_codes: Mapping[int, ErrorCode]) -> ListOffsetsResponse:
    """Return an end of 7 for each partition but those with an error."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=error_codes.get(each.partition_index, 0),
                        offset=7,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_offsets_of_many_partitions_are_asked_in_pieces() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=PARTITIONS)
        broker.serve(ListOffsetsRequest, lambda request, version: end_offsets(request, {5: ErrorCode.CORRUPT_MESSAGE}))
        settled: list[int] = []
        async with broker.cluster() as cluster:
            await cluster.refresh(["t"])
            found = await list_reachable_offsets(
                cluster, dict.fromkeys(ALL, LATEST_TIMESTAMP), on_answer=settled.append
            )
        asked = [len(topic.partitions) for request in broker.of_type(ListOffsetsRequest) for topic in request.topics]
        assert sorted(asked) == PIECES
        assert sum(settled) == len(found) == PARTITIONS
        failed = {of: each for of, each in found.items() if isinstance(each, ClientError)}
        assert list(failed) == [TopicPartition("t", 5)]
        assert found[ALL[-1]] == OffsetAndTimestamp(7, -1, -1)

    with_broker(scenario)


def test_a_partition_that_has_moved_is_asked_for_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=2)
        moved = {1: ErrorCode.NOT_LEADER_OR_FOLLOWER}

        def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
            first = len(broker.of_type(ListOffsetsRequest)) == 1
            return end_offsets(request, moved if first else {})

        broker.serve(ListOffsetsRequest, answer)
        async with broker.cluster() as cluster:
            await cluster.refresh(["t"])
            found = await list_reachable_offsets(cluster, dict.fromkeys(ALL[:2], LATEST_TIMESTAMP))
        assert [each.offset for each in found.values() if isinstance(each, OffsetAndTimestamp)] == [7, 7]
        again = broker.of_type(ListOffsetsRequest)[1]
        assert [each.partition_index for topic in again.topics for each in topic.partitions] == [1]

    with_broker(scenario)


def test_a_partition_that_goes_on_moving_has_its_error_in_the_end() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=1)
        moved = {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
        broker.serve(ListOffsetsRequest, lambda request, version: end_offsets(request, moved))
        async with broker.cluster() as cluster:
            await cluster.refresh(["t"])
            found = await list_reachable_offsets(cluster, {ALL[0]: LATEST_TIMESTAMP})
        error = found[ALL[0]]
        assert isinstance(error, KafkaError)
        assert error.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(broker.of_type(ListOffsetsRequest)) == 3

    with_broker(scenario)


def test_a_place_that_a_broker_does_not_know_is_not_asked_for() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=1)
        broker.serve(ListOffsetsRequest, lambda request, version: end_offsets(request, {}), (1, 6))
        async with broker.cluster() as cluster:
            await cluster.refresh(["t"])
            found = await list_reachable_offsets(cluster, {ALL[0]: MAX_TIMESTAMP})
        assert str(found[ALL[0]]) == f"{HOST}:{PORT} does not know such a place in a log"
        assert broker.of_type(ListOffsetsRequest) == []

    with_broker(scenario)


def test_nodes_that_are_down_or_hang_do_not_hide_the_others() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.refuses.add(("gone", 1))
        hanging: list[trio.abc.Stream] = []

        async def open_stream(host: str, port: int) -> trio.abc.Stream:
            if host == "hangs":
                ours, theirs = trio.testing.memory_stream_pair()
                hanging.append(theirs)
                return ours
            return await broker.open(host, port)

        async def ask(connection: Connection) -> str:
            return connection.peer

        nodes = [Node(3, "hangs", 1), Node(2, "gone", 1), Node(1, HOST, PORT)]
        async with Cluster([(HOST, PORT)], open_stream=open_stream) as cluster:
            begun = trio.current_time()
            found = await ask_each(cluster, nodes, ask)
            waited_s = trio.current_time() - begun
        assert list(found) == [1, 2, 3]
        assert found[1] == f"{HOST}:{PORT}"
        assert isinstance(found[2], NoBrokerReachable)
        assert isinstance(found[3], TimedOut)
        assert str(found[3]) == "Broker 3 at hangs:1 did not answer within 10 s"
        assert waited_s == 10

    with_broker(scenario)


def test_topics_are_listed_page_by_page() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics()

        def answer(request: DescribeTopicPartitionsRequest, version: int) -> DescribeTopicPartitionsResponse:
            assert request.topics == []
            if request.cursor is None:
                return page([row("a", 0), row("b", 0)], Cursor(topic_name="b", partition_index=1))
            if request.cursor.topic_name == "b":
                return page([row("b", 1)], Cursor(topic_name="c", partition_index=0))
            return page([row("c", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), row("d", 0)], None)

        broker.serve(DescribeTopicPartitionsRequest, answer)
        async with broker.cluster() as cluster:
            topics = await list_topics(cluster)
            assert [(topic.name, list(topic.partitions)) for topic in topics] == [("a", [0]), ("b", [0, 1]), ("d", [0])]
            assert cluster.metadata.leader(TopicPartition("b", 1)) == Node(1, HOST, PORT)

    with_broker(scenario)


def page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def row(name: str, *partitions: int, error_code: ErrorCode = ErrorCode.NONE) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=error_code,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=number, error_code=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
            )
            for number in partitions
        ],
    )


def test_topics_of_an_old_broker_are_listed_at_once() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(b=2, a=1)
        async with broker.cluster() as cluster:
            assert [topic.name for topic in await list_topics(cluster)] == ["a", "b"]

    with_broker(scenario)


def test_elections_and_moves_of_many_partitions_are_asked_for_in_pieces() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics()
        broker.serve(ElectLeadersRequest, _elected)
        broker.serve(AlterPartitionReassignmentsRequest, _moved)
        broker.serve(
            ListPartitionReassignmentsRequest, lambda request, version: ListPartitionReassignmentsResponse(topics=[])
        )
        async with broker.cluster() as cluster:
            elected = await elect_leaders(cluster, ElectionType.PREFERRED, ALL)
            moved = await alter_reassignments(cluster, dict.fromkeys(ALL, (1, 2)))
            assert await list_reassignments(cluster, ALL) == {}
        assert elected == moved == dict.fromkeys(ALL)
        elections = broker.of_type(ElectLeadersRequest)
        assert sorted(len(each.topic_partitions[0].partitions) for each in elections) == PIECES
        moves = broker.of_type(AlterPartitionReassignmentsRequest)
        assert sorted(len(each.topics[0].partitions) for each in moves) == PIECES
        questions = broker.of_type(ListPartitionReassignmentsRequest)
        assert sorted(len(each.topics[0].partition_indexes) for each in questions) == PIECES

    with_broker(scenario)


def _elected(request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
    assert request.topic_partitions is not None
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[PartitionResult(partition_id=each, error_code=0) for each in topic.partitions],
            )
            for topic in request.topic_partitions
        ]
    )


def _moved(request: AlterPartitionReassignmentsRequest, version: int) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(partition_index=each.partition_index, error_code=0)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
