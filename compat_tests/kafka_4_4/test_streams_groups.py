"""Streams groups of Kafka 4.4 on the wire: versions 1, descriptions of topologies (KIP-1331), and static members."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.cases import code
from compat_tests.test_described_configs import A_GROUP
from compat_tests.topics import create_topic
from compat_tests.waiting import until
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.streams_groups import (
    Endpoint,
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
    TaskIds,
    TaskOffset,
)
from pykbroker.protocol.messages.streams_topology_descriptions import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

from .asking import call
from .conftest import FreshNode

PLUGIN: Final = "group.streams.topology.description.plugin.class"
IN_MEMORY: Final = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
AT_ONCE: Final = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
GROUP, TOPIC = "words", "lines"
SOURCE, PROCESSOR, SINK = 1, 2, 3
NOT_THERE_YET: Final = (14, 15, 16)
"""What a broker says while nobody coordinates the group."""


class Group:
    """Members of one streams group of one subtopology, with or without state."""

    def __init__(self, node: BrokerProcess, group_id: str = GROUP, version: int = 1, topic: str = TOPIC) -> None:
        self.node = node
        self.group_id = group_id
        self.version = version
        subtopology = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=[topic])
        self.topology = StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=[subtopology])

    def join(self, member_id: str = "one", **fields: Any) -> Any:
        """Joins with the topology, once the group has a coordinator."""
        joining = {"topology": self.topology, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        given = joining | {"rebalance_timeout_ms": 60_000, "process_id": f"process of {member_id}"} | fields
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            finding = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id])
            if call(self.node.address, finding, 6).coordinators[0].error_code:
                return False
            answer = self.beat(member_id, 0, **given)
            return answer.error_code not in NOT_THERE_YET

        until(is_answered, "the group has a coordinator")
        return answer

    def beat(self, member_id: str, epoch: int, *, version: int | None = None, **fields: Any) -> Any:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=member_id,
            member_epoch=epoch,
            endpoint_information_epoch=0,
            **fields,
        )
        return call(self.node.address, request, self.version if version is None else version)

    def owning(self, member_id: str, epoch: int, active: Sequence[int], **more: Any) -> Any:
        """A heartbeat that reports active tasks."""
        tasks = {
            "active_tasks": [TaskIds(subtopology_id="0", partitions=list(active))] if active else [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        given: dict[str, Any] = tasks | more
        return self.beat(member_id, epoch, **given)

    def update(self, member_id: str, epoch: int, description: TopologyDescription, group: str | None = None) -> Any:
        request = StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=self.group_id if group is None else group,
            member_id=member_id,
            topology_epoch=epoch,
            topology_description=description,
        )
        answer = call(self.node.address, request, 0)
        return code(answer.error_code), answer.error_message

    def describe(self, *, version: int = 1, with_description: bool = True) -> Any:
        request = StreamsGroupDescribeRequest(
            group_ids=[self.group_id], include_topology_description=with_description and version > 0
        )
        (group,) = call(self.node.address, request, version).groups
        return group


def told(answer: Any) -> dict[str, Any]:
    """What a member is told, but for names of places."""
    return {
        "error": (code(answer.error_code), answer.error_message),
        "epoch": answer.member_epoch,
        "intervals": (answer.heartbeat_interval_ms, answer.task_offset_interval_ms),
        "lag": (answer.acceptable_recovery_lag_legacy, answer.acceptable_recovery_lag),
        "statuses": [(each.status_code, each.status_detail) for each in answer.status or []],
        "tasks": [_tasks(each) for each in (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)],
        "asked for the description": answer.topology_description_required,
        "endpoints": (answer.endpoint_information_epoch, _endpoints(answer.partitions_by_user_endpoint)),
    }


def _tasks(tasks: Any) -> Any:
    return None if tasks is None else [(each.subtopology_id, each.partitions) for each in tasks]


def _endpoints(endpoints: Any) -> Any:
    if endpoints is None:
        return None
    return [
        (
            (each.user_endpoint.host, each.user_endpoint.port),
            [(part.topic, part.partitions) for part in each.active_partitions],
            [(part.topic, part.partitions) for part in each.standby_partitions],
        )
        for each in endpoints
    ]


def shown(group: Any) -> dict[str, Any]:
    """A described group."""
    return {
        "error": (code(group.error_code), group.error_message),
        "state": group.group_state,
        "epochs": (group.group_epoch, group.assignment_epoch),
        "assignor": group.assignor_name,
        "description": (group.topology_description_status, _plain(group.topology_description)),
        "members": sorted(
            (
                each.member_id,
                each.instance_id,
                each.member_epoch,
                _tasks(each.assignment.active_tasks),
                _tasks(each.target_assignment.active_tasks),
                [(part.subtopology_id, part.partition, part.offset) for part in each.task_offsets],
                [(part.subtopology_id, part.partition, part.offset) for part in each.task_end_offsets],
            )
            for each in group.members
        ),
    }


def _plain(description: Any) -> Any:
    if description is None:
        return None
    return {
        "subtopologies": [(each.subtopology_id, list(map(_node, each.nodes))) for each in description.subtopologies],
        "stores": [(_node(each.source), _node(each.processor)) for each in description.global_stores],
    }


def _node(node: Any) -> Any:
    return node.name, node.node_type, node.source_topics, node.sink_topic, node.stores, node.successors


def node_of(name: str, type_: int, **fields: Any) -> TopologyDescriptionNode:
    return TopologyDescriptionNode(name=name, node_type=type_, **fields)


WORD_COUNT: Final = TopologyDescription(
    subtopologies=[
        TopologyDescriptionSubtopology(
            subtopology_id="0",
            nodes=[
                node_of("s", SOURCE, source_topics=[TOPIC, TOPIC, "b"], stores=["left out"], successors=["p", "p"]),
                node_of("p", PROCESSOR, stores=["counts", "counts"], sink_topic="left out", successors=["k"]),
                node_of("k", SINK, sink_topic="out", source_topics=["left out"]),
                node_of("dynamic", SINK),
            ],
        )
    ],
    global_stores=[
        TopologyDescriptionGlobalStore(
            source=node_of("g", SOURCE, source_topics=["global"], successors=["gp"]),
            processor=node_of("gp", PROCESSOR, stores=["table"]),
        )
    ],
)
OF_AN_UNKNOWN_TYPE: Final = TopologyDescription(
    subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node_of("x", 4)])]
)
OF_A_WRONG_STORE: Final = TopologyDescription(
    global_stores=[TopologyDescriptionGlobalStore(source=node_of("g", SOURCE), processor=node_of("k", SINK))]
)


def alter_group(node: BrokerProcess, group: str, key: str, value: str) -> str:
    change = IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=A_GROUP, resource_name=group, configs=[change]
    )
    (row,) = call(node.address, IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    return code(row.error_code)


def test_a_description_is_asked_for_kept_and_shown(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(AT_ONCE | {PLUGIN: IN_MEMORY})
    create_topic(node, TOPIC, 2)
    group = Group(node)
    joined = group.join()
    answers.same("joined", told(joined))
    answers.same("once more", told(group.owning("one", joined.member_epoch, [0, 1])))
    answers.same("described before", shown(group.describe()))
    for what, update in {
        "no member": ("", 0, WORD_COUNT, GROUP),
        "no group": ("one", 0, WORD_COUNT, ""),
        "another group": ("one", 0, WORD_COUNT, "nobody"),
        "another member": ("two", 0, WORD_COUNT, GROUP),
        "another epoch": ("one", 1, WORD_COUNT, GROUP),
        "an unknown type": ("one", 0, OF_AN_UNKNOWN_TYPE, GROUP),
        "a wrong store": ("one", 0, OF_A_WRONG_STORE, GROUP),
        "the description": ("one", 0, WORD_COUNT, GROUP),
        "the description again": ("one", 0, WORD_COUNT, GROUP),
    }.items():
        answers.same(what, group.update(*update))
    answers.same("described", shown(group.describe()))
    answers.same("described without it", shown(group.describe(with_description=False)))
    answers.same("described by version 0", shown(group.describe(version=0)))
    answers.same("a second member", told(group.join("two")))
    answers.same("who leaves", told(group.beat("two", -1)))
    answers.same("described after that", shown(group.describe())["description"])
    answers.same("who leaves last", told(group.beat("one", -1)))
    answers.same("the empty group", shown(group.describe())["description"])
    (deleted,) = call(node.address, DeleteGroupsRequest(groups_names=[GROUP]), 3).results
    answers.same("deleted", (code(deleted.error_code), deleted.error_message))
    answers.same("asked again", told(group.join("three"))["asked for the description"])


def test_nothing_keeps_descriptions_where_nothing_is_configured(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(AT_ONCE)
    create_topic(node, TOPIC, 2)
    group = Group(node)
    answers.same("joined", told(group.join()))
    answers.same("brought", group.update("one", 0, WORD_COUNT))
    answers.same("of no group", group.update("", 7, WORD_COUNT, ""))
    answers.same("described", shown(group.describe()))


@pytest.mark.parametrize("version", [0, 1])
def test_members_are_told_which_tags_they_lack_and_how_far_they_may_lag(
    fresh_node: FreshNode, answers: TestAnswers, version: int
) -> None:
    node = fresh_node(AT_ONCE)
    create_topic(node, TOPIC, 2)
    group = Group(node, version=version)
    for key, value in (
        ("streams.rack.aware.assignment.tags", "zone,rack"),
        ("streams.acceptable.recovery.lag", "5000000000"),
        ("streams.task.offset.interval.ms", "20000"),
        ("streams.assignor.name", "sticky"),
    ):
        answers.same(key, alter_group(node, GROUP, key, value))
    joined = group.join()
    answers.same("without tags", told(joined))
    tags = [KeyValue(key="rack", value="1"), KeyValue(key="zone", value="a")]
    beaten = group.owning("one", joined.member_epoch, [0, 1], client_tags=tags[:1])
    answers.same("with one", told(beaten))
    beaten = group.owning("one", beaten.member_epoch, [0, 1], client_tags=tags)
    answers.same("with both", told(beaten))
    answers.same("other tags", alter_group(node, GROUP, "streams.rack.aware.assignment.tags", "zone"))
    beaten = group.owning("one", beaten.member_epoch, [0, 1])
    answers.same("epoch after that", beaten.member_epoch)


@pytest.mark.parametrize("version", [0, 1])
def test_offsets_of_tasks_are_told_and_shown(fresh_node: FreshNode, answers: TestAnswers, version: int) -> None:
    node = fresh_node(AT_ONCE)
    create_topic(node, TOPIC, 2)
    group = Group(node, version=version)
    epoch = group.join().member_epoch
    one, other = (TaskOffset(subtopology_id="0", partition=each, offset=each + 5) for each in (0, 1))
    answers.same("told", told(group.owning("one", epoch, [0, 1], task_offsets=[other, one], task_end_offsets=[one])))
    answers.same("shown", shown(group.describe()))
    answers.same("told in part", told(group.owning("one", epoch, [0, 1], task_offsets=[one])))
    answers.same("shown in part", shown(group.describe()))
    answers.same("told twice", told(group.owning("one", epoch, [0, 1], task_offsets=[one, one])))
    answers.same("nothing", told(group.owning("one", epoch, [0, 1], task_offsets=[], task_end_offsets=[])))
    answers.same("shown after that", shown(group.describe()))


def test_a_static_member_comes_back_and_gets_its_tasks(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(AT_ONCE)
    create_topic(node, TOPIC, 4)
    group = Group(node)
    static = {"instance_id": "first", "process_id": "a process"}
    epoch = group.join("one", **static).member_epoch
    answers.same("settled", told(group.owning("one", epoch, [0, 1, 2, 3], **static)))
    answers.same("another with its name", told(group.join("two", **static)))
    answers.same("another dynamic one", told(group.join("three")))
    beaten = group.owning("one", epoch, [0, 1, 2, 3], instance_id="first")
    answers.same("gives up some", told(beaten))
    answers.same("described", shown(group.describe()))
    answers.same("is away", told(group.beat("one", -2, instance_id="first")))
    answers.same("described while it is away", shown(group.describe()))
    back = group.join("four", **static)
    answers.same("is back", told(back))
    answers.same("described when it is back", shown(group.describe()))
    answers.same("under its old id", told(group.beat("one", back.member_epoch, instance_id="first")))
    answers.same("without its name", told(group.beat("four", back.member_epoch)))
    answers.same("under an unknown name", told(group.beat("four", back.member_epoch, instance_id="x")))
    answers.same("away without a name", told(group.beat("four", -2)))
    answers.same("with an empty name", told(group.beat("four", back.member_epoch, instance_id="")))
    answers.same("leaves under another id", told(group.beat("one", -1, instance_id="first")))
    answers.same("leaves", told(group.beat("four", -1, instance_id="first")))
    answers.same("described in the end", shown(group.describe()))


def test_endpoints_are_told_with_their_partitions(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(AT_ONCE)
    create_topic(node, TOPIC, 3)
    group = Group(node)
    first, second = (Endpoint(host="h", port=port) for port in (1, 2))
    joined = group.join("one", user_endpoint=first)
    answers.same("joined", told(joined))
    beaten = group.owning("one", joined.member_epoch, [0, 1, 2])
    answers.same("once more", told(beaten))
    beaten = group.owning("one", beaten.member_epoch, [0, 1, 2], user_endpoint=second)
    answers.same("with another endpoint", told(beaten))
    again = group.join("one")
    answers.same("joins again without one", told(again))
    answers.same("described", shown(group.describe()))


def test_a_group_that_is_not_there_is_said_to_be_missing(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(AT_ONCE)
    create_topic(node, TOPIC, 2)
    group = Group(node, "missing")
    Group(node).join()
    answers.same("heartbeat", told(group.beat("one", 1)))
    answers.same("leaving", told(group.beat("one", -1)))
    answers.same("described", re.sub("missing", "…", str(shown(group.describe())["error"])))
