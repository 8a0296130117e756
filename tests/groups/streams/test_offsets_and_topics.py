"""Streams groups: details of offsets, topologies and records that no conversation shows."""

from __future__ import annotations

from random import Random

import pytest

from pykbroker.groups.common.config import GroupConfig, StreamsGroupConfig
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.shard import GroupShard
from pykbroker.groups.streams.configured_topology import StatusCode, configure
from pykbroker.groups.streams.streams_group import StreamsGroup
from pykbroker.groups.streams.streams_group_member import StreamsGroupMember
from pykbroker.groups.streams.tasks import OwnedTasks
from pykbroker.groups.streams.topology import topology_of
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_group_records import (
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from pykbroker.state_machine import BadRecord, CoordinatorContext, Token
from tests.groups.streams_requests import streams_joining, subtopology, topic_info, topology
from tests.groups.topics import ChangingTopics

TOPICS = ChangingTopics(a=3, b=2)


def group_with_member(epoch: int, **assigned: dict[int, int]) -> StreamsGroup:
    group = StreamsGroup("g", TOPICS)
    group.topology = topology_of(topology(subtopology("zero", "a"), subtopology("one", "b")))
    group.put(StreamsGroupMember(member_id="m", member_epoch=epoch, assigned=OwnedTasks(active=assigned)))
    return group


@pytest.mark.parametrize(
    ("epoch", "topic", "partition", "expected"),
    [
        (7, "a", 0, ErrorCode.NONE),
        (5, "a", 0, ErrorCode.NONE),
        (4, "a", 0, ErrorCode.STALE_MEMBER_EPOCH),
        (5, "a", 1, ErrorCode.STALE_MEMBER_EPOCH),
        (6, "b", 0, ErrorCode.STALE_MEMBER_EPOCH),
        (6, "c", 0, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_a_member_commits_for_tasks_that_it_had_in_its_epoch(
    epoch: int, topic: str, partition: int, expected: ErrorCode
) -> None:
    group = group_with_member(7, zero={0: 5})
    partitions = [(TOPICS.topic_id(topic) or bytes(16), partition)]
    assert group.validate_committed_partitions("m", epoch, partitions) is expected


def test_who_may_commit_in_a_transaction() -> None:
    group = group_with_member(7)
    assert group.validate_txn_offset_commit("", None, -1) is ErrorCode.NONE
    assert group.validate_txn_offset_commit("m", None, 7) is ErrorCode.NONE
    assert group.validate_txn_offset_commit("m", None, 8) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.validate_txn_offset_commit("n", None, 7) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_may_fetch_offsets() -> None:
    group = group_with_member(7)
    assert group.validate_offset_fetch(None, -1) is ErrorCode.NONE
    assert group.validate_offset_fetch("m", 7) is ErrorCode.NONE
    assert group.validate_offset_fetch("m", 6) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.validate_offset_fetch("n", 7) is ErrorCode.UNKNOWN_MEMBER_ID


def test_repartition_topics_follow_one_another_whatever_the_order() -> None:
    """The topics of a chain get the number of partitions of its source."""
    chain = [subtopology("first", "a", sinks=["r0"])]
    chain += [subtopology(f"s{n}", sinks=[f"r{n + 1}"], repartition=[topic_info(f"r{n}")]) for n in range(20)]
    chain += [subtopology("last", repartition=[topic_info("r20")], changelogs=[topic_info("log")])]
    for seed in range(5):
        Random(seed).shuffle(chain)
        configured = configure(topology_of(topology(*chain)), TOPICS)
        assert {each.partitions for each in configured.missing.values()} == {3}
        assert configured.missing.keys() == {*(f"r{n}" for n in range(21)), "log"}
        assert configured.problem is not None
        assert configured.problem[0] is StatusCode.MISSING_INTERNAL_TOPICS


@pytest.mark.parametrize(
    "wrong",
    [
        topology(subtopology("0", "a"), subtopology("0", "b")),
        topology(subtopology("0", "a", copartition=[([1], [])])),
        topology(subtopology("0", "a", sinks=["r"]), subtopology("1", repartition=[topic_info("r", -2)])),
        topology(subtopology("0", "a", changelogs=[topic_info("log"), topic_info("log")])),
    ],
    ids=["an id twice", "an index that is none", "partitions below zero", "a topic twice"],
)
def test_a_topology_that_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(ApiError) as refused:
        configure(topology_of(wrong), TOPICS)  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_that_no_coordinator_writes_are_refused() -> None:
    shard = GroupShard(GroupConfig(), Random(1), TOPICS)
    with pytest.raises(BadRecord):
        shard.replay(StreamsGroupMetadataKey(group_id="g"), StreamsGroupMetadataValue(epoch=-1))
    with pytest.raises(BadRecord):
        shard.replay(StreamsGroupTopologyKey(group_id="g"), StreamsGroupTopologyValue(epoch=-1))
    assert not shard.groups


def test_a_large_assignment_is_not_computed_in_a_heartbeat() -> None:
    begun: list[object] = []

    class Offload:
        has_room = True

        def begin(self, task: object) -> None:
            begun.append(task)

    settings = StreamsGroupConfig(initial_rebalance_delay_ms=0, num_standby_replicas=1)
    config = GroupConfig(consumer_assigned_at_once=6)
    shard = GroupShard(config, Random(1), TOPICS, assignments=Offload(), streams_config_of=lambda group_id: settings)
    context = CoordinatorContext(api_version=0)
    shard.handle(streams_joining("g", "m", topology(subtopology("0", "a"))), Token(1), 0, context, 1)
    assert len(begun) == 1
    group = shard.groups["g"]
    assert isinstance(group, StreamsGroup)
    assert not group.target_assignment


@pytest.mark.parametrize("topology_epoch", [0, 1 << 30, (1 << 31) - 1])
def test_records_are_read_back(topology_epoch: int) -> None:
    shard = GroupShard(GroupConfig(), Random(1), TOPICS)
    context = CoordinatorContext(api_version=0)
    brought = topology(subtopology("0", "a"), epoch=topology_epoch)
    request = streams_joining("g", "m", brought, endpoint=("h", 1), tags={"z": "1"})
    result = shard.handle(request, Token(1), 0, context, 1)
    again = GroupShard(GroupConfig(), Random(1), TOPICS)
    for record in result.records:
        read = decode_record(*record.encode())
        again.replay(read.key, read.value)
    group, other = shard.groups["g"], again.groups["g"]
    assert isinstance(group, StreamsGroup)
    assert isinstance(other, StreamsGroup)
    assert (group.members, group.group_epoch, group.topology) == (other.members, other.group_epoch, other.topology)
