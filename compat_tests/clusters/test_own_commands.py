"""`pykbroker quorum` changes the voters of a dynamic quorum, and `pykbroker reassign` heeds racks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.own_commands import run_command
from compat_tests.waiting import until

from .cluster import Cluster
from .conftest import CLUSTER_PROPERTIES, NewCluster
from .layout import PYKBROKER, NodeSpec
from .topics import create_replicated_topic


def voters(cluster: Cluster) -> dict[int, dict[str, Any]]:
    rows = json.loads(run_command("quorum", cluster.bootstrap, "replication", "--json").stdout)
    return {each["node"]: each for each in rows if each["status"] != "observer"}


def test_a_voter_is_removed_and_comes_back(new_cluster: NewCluster) -> None:
    cluster = new_cluster([PYKBROKER] * 3, is_dynamic=True)
    cluster.start()
    until(lambda: len(voters(cluster)) == 3, "three voters")
    chosen = next(node_id for node_id, row in voters(cluster).items() if row["status"] == "follower")
    directory_id = voters(cluster)[chosen]["directory_id"]
    removed = run_command("quorum", cluster.bootstrap, "remove-controller", "-i", str(chosen), "-d", directory_id)
    assert removed.stdout == f"Removed KRaft controller {chosen} with directory id {directory_id}\n"
    until(lambda: set(voters(cluster)) == {1, 2, 3} - {chosen}, "one voter less")
    properties = cluster.nodes[chosen].properties_file
    added = run_command("quorum", cluster.bootstrap, "add-controller", "--command-config", str(properties))
    assert added.stdout.startswith(f"Added controller {chosen} with directory id {directory_id} and endpoints: ")
    until(lambda: set(voters(cluster)) == {1, 2, 3}, "three voters again")


def test_a_plan_takes_a_replica_from_each_rack(new_cluster: NewCluster) -> None:
    racks = ["a", "a", "b", "b"]
    nodes = [NodeSpec(PYKBROKER, properties={"broker.rack": rack}) for rack in racks]
    cluster = new_cluster(list(nodes), CLUSTER_PROPERTIES)
    cluster.start()
    create_replicated_topic(cluster, "spread", assignment=[[1, 2], [1, 2], [2, 1], [2, 1]])
    planned = json.loads(run_command("reassign", cluster.bootstrap, "plan", "spread", "--json").stdout)
    for partition in planned["partitions"]:
        assert {racks[broker - 1] for broker in partition["replicas"]} == {"a", "b"}
    listed = json.loads(run_command("brokers", cluster.bootstrap, "list", "--json").stdout)
    assert [each["rack"] for each in listed] == racks


@pytest.mark.java
def test_a_move_that_is_under_way_is_told_as_by_kafkas_tools(new_cluster: NewCluster, tmp_path: Path) -> None:
    cluster = new_cluster([PYKBROKER] * 3, CLUSTER_PROPERTIES)
    cluster.start()
    create_replicated_topic(cluster, "moving", assignment=[[1], [2]], configs={"min.insync.replicas": "1"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(4):
        producer.produce("moving", b"x" * 900_000, partition=0)
    assert producer.flush(60) == 0
    started = run_command("reassign", cluster.bootstrap, "start", "moving", "--replicas", "3,2", "--throttle", "1024")
    assert started.returncode == 0, started
    plan = tmp_path / "plan.json"
    partitions = [{"topic": "moving", "partition": number, "replicas": [3, 2]} for number in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    until(lambda: len(json.loads(ongoing(cluster, "list", "--json"))) == 1, "one partition has moved")
    for flags in (("--list",), ("--verify", "--reassignment-json-file", str(plan), "--preserve-throttles")):
        theirs = run_tool(Tool.REASSIGN_PARTITIONS, "--bootstrap-server", cluster.bootstrap, *flags).stdout
        assert "moving-0" in theirs
        assert ongoing(cluster, *flags).split() == theirs.split()
    cancelled = ongoing(cluster, "--cancel", "--reassignment-json-file", str(plan))
    assert cancelled.startswith("Successfully cancelled partition reassignment for: moving-0\n")
    assert ongoing(cluster, "--list") == "No partition reassignments found.\n"


def ongoing(cluster: Cluster, *arguments: str) -> str:
    return run_command("reassign", cluster.bootstrap, *arguments).stdout
