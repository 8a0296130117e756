"""StreamsGroupHeartbeat and StreamsGroupDescribe: large topologies, bounds, and what a client may not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import trio

from pykbroker.api.streams_group_describe import streams_group_describe
from pykbroker.api.streams_group_heartbeat import streams_group_heartbeat
from pykbroker.groups.streams import configured_topology
from pykbroker.groups.streams.topology import MOST_COPARTITIONED, MOST_SUBTOPOLOGIES, MOST_TOPICS
from pykbroker.metadata.features import STREAMS_VERSION
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord
from pykbroker.protocol.messages.streams_groups import StreamsGroupDescribeRequest
from pykbroker.server.node.auto_topic_creation import AutoTopicCreation
from tests.groups.streams_requests import streams_joining, subtopology, topic_info, topology

from .api_node import ApiNode, in_virtual_time
from .turns_taken import LONGEST_TURN_S, handle

TOPIC = "topic"


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path)
    node.replay(FeatureLevelRecord(name=STREAMS_VERSION, feature_level=1))
    node.create_topic(TOPIC, 3)
    node.create_topic("__consumer_offsets", 3)
    node.broker.auto_topic_creation = AutoTopicCreation(node.broker.config, cast(Any, None), node.clock)
    return node


def ask(node: ApiNode, *requests: Any) -> list[Any]:
    """The answers, one after the other; no turn takes long."""
    answers: list[Any] = []

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.groups.run)
            await trio.sleep(1)
            for request in requests:
                is_description = isinstance(request, StreamsGroupDescribeRequest)
                handler = streams_group_describe if is_description else streams_group_heartbeat
                response, turns = await handle(node.broker, handler, request, 0)
                answers.append(response)
                assert turns.longest_s < LONGEST_TURN_S
            nursery.cancel_scope.cancel()

    in_virtual_time(run)
    return answers


def test_a_large_topology_shares_the_loop(node: ApiNode) -> None:
    large = topology(
        *(
            subtopology(str(number), TOPIC, changelogs=[topic_info(f"log-{number}-{each}") for each in range(9)])
            for number in range(MOST_TOPICS // 10)
        )
    )
    joined, described = ask(
        node, streams_joining("group", "member", large), StreamsGroupDescribeRequest(group_ids=["group"])
    )
    assert joined.error_code == ErrorCode.NONE
    assert joined.status[1].status_detail.endswith(f"and {MOST_TOPICS * 9 // 10 - 3} additional topics")
    assert described.groups.count == 1


def test_a_long_chain_of_subtopologies_in_the_wrong_order_shares_the_loop(node: ApiNode) -> None:
    """Each knows its number of partitions by the one before it."""
    count = MOST_SUBTOPOLOGIES
    chain = [
        subtopology(str(count - number), sinks=[f"r-{number}"], repartition=[topic_info(f"r-{number - 1}")])
        for number in range(1, count)
    ]
    (joined,) = ask(node, streams_joining("group", "m", topology(subtopology("0", TOPIC, sinks=["r-0"]), *chain)))
    assert joined.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "large",
    [
        topology(*(subtopology(str(number), TOPIC) for number in range(MOST_SUBTOPOLOGIES + 1))),
        topology(subtopology("0", *(f"topic-{number}" for number in range(MOST_TOPICS + 1)))),
        topology(subtopology("0", TOPIC, copartition=[([0], [])] * (MOST_COPARTITIONED // 2 + 1))),
    ],
    ids=["subtopologies", "topics", "copartition groups"],
)
def test_a_topology_that_is_too_large_is_refused(node: ApiNode, large: Any) -> None:
    (refused,) = ask(node, streams_joining("group", "member", large))
    assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert "at most" in refused.error_message


def test_a_topology_with_two_subtopologies_of_one_id_is_refused(node: ApiNode) -> None:
    twice = topology(subtopology("0", TOPIC), subtopology("0", "other"))
    (refused,) = ask(node, streams_joining("group", "member", twice))
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "2 subtopologies have the id 0.",
    )


def test_a_topology_with_too_many_tasks_is_refused(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured_topology, "MOST_TASKS", 8)
    monkeypatch.setattr(configured_topology, "MOST_INPUT_PARTITIONS", 5)
    nine = topology(*(subtopology(str(number), TOPIC) for number in range(3)))
    six = topology(*(subtopology(str(number), TOPIC) for number in range(2)))
    answers = ask(node, streams_joining("nine", "m", nine), streams_joining("six", "m", six))
    assert [each.error_code for each in answers] == [ErrorCode.STREAMS_INVALID_TOPOLOGY] * 2
    assert answers[0].error_message == "The topology has 9 tasks, of 8 at most."
    assert answers[1].error_message == "The tasks of the topology read 6 partitions, of 5 at most."


def test_a_cluster_that_has_not_agreed_on_streams_groups_refuses_them(tmp_path: Path) -> None:
    node = ApiNode(tmp_path)
    node.create_topic("__consumer_offsets", 3)
    joined, described = ask(node, streams_joining("group", "member"), StreamsGroupDescribeRequest(group_ids=["group"]))
    assert joined.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert described.groups.count == 1


def test_a_member_that_says_too_much_of_itself_is_refused(node: ApiNode) -> None:
    many = {f"tag-{number}": "v" * 32_000 for number in range(40)}
    (refused,) = ask(node, streams_joining("group", "member", topology(subtopology("0", TOPIC)), tags=many))
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "bytes" in refused.error_message
