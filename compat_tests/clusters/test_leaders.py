"""Who leads: elections, controlled shutdown, reassignment, and what Kafka's commands tell of it."""

from __future__ import annotations

import itertools
import json
import random
import re
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.waiting import DEADLINE_S, until
from compat_tests.wire import Wire
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from .cluster import Cluster
from .replicas import lead
from .topics import create_replicated_topic

MESSAGES = [Message(b"%d" % number) for number in range(50)]
RATE, WINDOWS_S = 1_500_000, 11
"""Bytes per second, and over how long they are counted by default (`replication.quota.window.num`)."""
LARGEST_FETCH_BYTES = 1_048_576


def tool(name: Tool, cluster: Cluster, *arguments: str) -> str:
    return run_tool(name, "--bootstrap-server", cluster.bootstrap, *arguments).stdout


def test_a_node_that_stops_gives_its_leaders_away_first(cluster: Cluster, topic: str) -> None:
    """Producers notice less of it than the end of a session."""
    create_replicated_topic(cluster, topic, assignment=[[2, 3, 1]])
    acknowledged_s: list[float] = []
    over = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})
        while not over.is_set():
            producer.produce(topic, b"x", on_delivery=lambda error, _: error or acknowledged_s.append(time.monotonic()))
            producer.flush(DEADLINE_S)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        until(lambda: len(acknowledged_s) > 20, "records are acknowledged")
        cluster.stop(2)
        stopped = len(acknowledged_s)
        until(lambda: len(acknowledged_s) > stopped + 20, "records are acknowledged by the next leader")
    finally:
        over.set()
        thread.join()
    view = cluster.wait_for(topic, 0, lambda view: view.leader in (1, 3), "is led by another replica")
    assert 2 not in view.isr
    gaps = [later - earlier for earlier, later in itertools.pairwise(acknowledged_s)]
    assert max(gaps) < 5, "less than the session timeout of 6 s"


def test_a_follower_says_whether_it_knows_of_a_later_leader_epoch(cluster: Cluster, topic: str) -> None:
    """By this word a coordinator knows that it leads still, be its followers of one kind or the other."""
    create_replicated_topic(cluster, topic, assignment=[[1, 2, 3]])
    for leader in (1, 2):
        lead(cluster, topic, [leader])
    epoch = cluster.wait_for(topic, 0, lambda view: view.leader == 2, "is led by node 2").leader_epoch
    assert epoch > 0
    told = {asked: _follower_says(cluster, 3, topic, asked) for asked in (epoch - 1, epoch, epoch + 1)}
    assert told == {
        epoch - 1: ErrorCode.FENCED_LEADER_EPOCH,
        epoch: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        epoch + 1: ErrorCode.UNKNOWN_LEADER_EPOCH,
    }


def _follower_says(cluster: Cluster, node_id: int, topic: str, epoch: int) -> ErrorCode:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(replica_id=2, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    with Wire(cluster.nodes[node_id].address) as wire:
        answer = wire.call(request, 4)
    assert isinstance(answer, OffsetForLeaderEpochResponse)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.mark.java
def test_kafkas_command_gives_leadership_back_to_the_preferred_replica(cluster: Cluster, topic: str) -> None:
    create_replicated_topic(cluster, topic, assignment=[[1, 2, 3], [1, 3, 2]])
    cluster.stop(1)
    for partition in (0, 1):
        cluster.wait_for(topic, partition, lambda view: view.leader in (2, 3), "is led by another replica")
    cluster.start(1)
    for partition in (0, 1):
        cluster.wait_until_in_sync(topic, partition)
    arguments = ("--election-type", "preferred", "--topic", topic)
    elected = tool(Tool.LEADER_ELECTION, cluster, *arguments, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in elected
    cluster.wait_for(topic, 0, lambda view: view.leader == 1, "is led by its preferred replica")
    again = tool(Tool.LEADER_ELECTION, cluster, *arguments, "--partition", "0")
    assert f"Valid replica already elected for partitions {topic}-0" in again


@pytest.mark.java
def test_only_an_unclean_election_makes_a_leader_of_a_replica_that_was_not_in_sync(
    cluster: Cluster, topic: str
) -> None:
    create_replicated_topic(cluster, topic, assignment=[[1, 2]], configs={"min.insync.replicas": "1"})
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, MESSAGES)
    cluster.kill(2)
    cluster.wait_for(topic, 0, lambda view: view.isr == {1}, "shrinks its ISR")
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, MESSAGES)
    cluster.kill(1)
    cluster.start(2)  # without 1, whose vote the quorum of 2 and 3 does not need
    cluster.wait_for(topic, 0, lambda view: view.leader == -1, "has no leader")
    elected = tool(Tool.LEADER_ELECTION, cluster, "--election-type", "unclean", "--topic", topic, "--partition", "0")
    assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in elected
    cluster.wait_for(topic, 0, lambda view: (view.leader, view.isr) == (2, {2}), "is led by what is left")
    assert len(READERS["confluent-kafka"](cluster.bootstrap, topic, 1, 50)) == 50, (
        "the others are lost, as was asked for"
    )
    cluster.start(1)
    cluster.wait_until_in_sync(topic)
    assert len(READERS["confluent-kafka"](cluster.bootstrap, topic, 1, 50)) == 50


@pytest.mark.java
def test_kafkas_command_moves_a_partition(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    create_replicated_topic(cluster, topic, assignment=[[1, 2]])
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, MESSAGES)
    plan = tmp_path / "plan.json"
    wanted = {"topic": topic, "partition": 0, "replicas": [3, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    file = ("--reassignment-json-file", str(plan))
    tool(Tool.REASSIGN_PARTITIONS, cluster, *file, "--execute", "--throttle", "50000000")
    cluster.wait_for(topic, 0, lambda view: (view.replicas, view.isr) == ((3, 2), {2, 3}), "has moved")
    verified = tool(Tool.REASSIGN_PARTITIONS, cluster, *file, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert f"Clearing topic-level throttles on topic {topic}" in verified
    assert len(READERS["kafka-python"](cluster.bootstrap, topic, 1, 50)) == 50


@pytest.mark.java
def test_kafkas_command_moves_a_partition_no_faster_than_it_is_told(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """The rate is that of eleven windows of a second: what was not used of them may come at once, and one fetch goes
    beyond it (KIP-73).
    """
    create_replicated_topic(cluster, topic, assignment=[[1, 2]])
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, [Message(random.randbytes(100_000)) for _ in range(300)])
    plan = tmp_path / "plan.json"
    wanted = {"topic": topic, "partition": 0, "replicas": [1, 2, 3]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    file = ("--reassignment-json-file", str(plan))
    began = time.monotonic()
    tool(Tool.REASSIGN_PARTITIONS, cluster, *file, "--execute", "--throttle", str(RATE))
    copy = cluster.nodes[3].data_directory / f"{topic}-0"

    def is_there() -> bool:
        copied = sum(path.stat().st_size for path in copy.glob("*.log"))
        allowed = RATE * (time.monotonic() - began + WINDOWS_S + 1) + LARGEST_FETCH_BYTES
        assert copied <= allowed, f"{copied} bytes where {allowed:.0f} may be"
        return cluster.partition(topic).isr == {1, 2, 3}

    until(is_there, "the new replica is in sync")
    verified = tool(Tool.REASSIGN_PARTITIONS, cluster, *file, "--verify")
    assert "Clearing broker-level throttles on brokers 1,2,3" in verified
    assert f"Clearing topic-level throttles on topic {topic}" in verified


@pytest.mark.java
def test_kafkas_command_tells_what_lacks_replicas(cluster: Cluster, topic: str) -> None:
    create_replicated_topic(cluster, topic, assignment=[[1, 2, 3], [2, 1, 3]], configs={"min.insync.replicas": "3"})

    def partitions(flag: str) -> list[int]:
        described = tool(Tool.TOPICS, cluster, "--describe", flag, "--topic", topic)
        return [int(number) for number in re.findall(r"\tPartition: (\d+)\t", described)]

    assert partitions("--under-replicated-partitions") == []
    assert partitions("--at-min-isr-partitions") == [0, 1]
    cluster.kill(3)
    for partition in (0, 1):
        cluster.wait_for(topic, partition, lambda view: view.isr == {1, 2}, "shrinks its ISR")
    assert partitions("--under-replicated-partitions") == [0, 1]
    assert partitions("--under-min-isr-partitions") == [0, 1]
    cluster.start(3)
    for partition in (0, 1):
        cluster.wait_until_in_sync(topic, partition)
    assert partitions("--under-replicated-partitions") == []


@pytest.mark.java
def test_kafkas_command_describes_the_quorum(cluster: Cluster) -> None:
    told = dict(
        line.split(":", 1)
        for line in tool(Tool.METADATA_QUORUM, cluster, "describe", "--status").splitlines()
        if ":" in line
    )
    assert int(told["LeaderId"]) == cluster.active_controller()
    voters = json.loads(told["CurrentVoters"])
    endpoints = {node.node_id: f"CONTROLLER://127.0.0.1:{node.controller_port}" for node in cluster.nodes.values()}
    assert {voter["id"]: voter["endpoints"][0] for voter in voters} == endpoints
    rows = [line.split() for line in tool(Tool.METADATA_QUORUM, cluster, "describe", "--replication").splitlines()]
    status = {int(row[0]): row[-1] for row in rows[1:] if row}
    leader = cluster.active_controller()
    assert status == {node_id: "Leader" if node_id == leader else "Follower" for node_id in cluster.nodes}
