"""A node of three ends or freezes: others lead its partitions, nothing acknowledged is missing, and it comes back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.apache_kafka.tools import Tool, tool_command
from compat_tests.clients import READERS, WRITERS, Message

from .cluster import Cluster
from .topics import create_replicated_topic

CLIENTS = ["kafka-python", "confluent-kafka"]

Disturb = Callable[[Cluster, int], None]
END: dict[str, tuple[Disturb, Disturb]] = {
    "kill": (Cluster.kill, Cluster.start),
    "stop": (Cluster.stop, Cluster.start),
    "pause": (Cluster.pause, Cluster.resume),
}


@pytest.mark.parametrize("disturbance", END)
def test_another_replica_leads_and_has_everything(cluster: Cluster, topic: str, disturbance: str) -> None:
    create_replicated_topic(cluster, topic)
    begin, end = END[disturbance]
    leader = cluster.leader(topic)
    before = [Message(b"before %d" % number) for number in range(100)]
    after = [Message(b"after %d" % number) for number in range(100)]
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, before, idempotent=True)
    begin(cluster, leader)
    cluster.wait_for(topic, 0, lambda view: view.leader not in (leader, -1), "is led by another replica")
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, after, idempotent=True)
    end(cluster, leader)
    cluster.wait_until_in_sync(topic)
    found = READERS["confluent-kafka"](cluster.bootstrap, topic, 1, 200)
    assert [each.message.value for each in found] == [each.value for each in before + after]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_goes_on_with_the_next_leader(cluster: Cluster, topic: str, client: str) -> None:
    create_replicated_topic(cluster, topic, configs={"retention.ms": "-1"})  # the records are of 1970
    write, read = WRITERS[client], READERS[client]
    values = [Message(b"%d" % number) for number in range(50)]
    write(cluster.bootstrap, topic, values)
    cluster.kill(cluster.leader(topic))
    write(cluster.bootstrap, topic, values)
    assert len(read(cluster.bootstrap, topic, 1, 100)) == 100


@pytest.mark.java
def test_a_java_producer_goes_on_with_the_next_leader(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """Idempotent: each record is there once, and in order."""
    create_replicated_topic(cluster, topic)
    properties = tmp_path / "producer.properties"
    properties.write_text("enable.idempotence=true\nretries=2147483647\n")  # the tool's own setting is no retries
    command = tool_command(
        Tool.VERIFIABLE_PRODUCER,
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--acks", "-1"),
        *("--max-messages", "600", "--throughput", "200", "--command-config", str(properties)),
    )
    acknowledged: list[int] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as producer:
        assert producer.stdout is not None
        for line in producer.stdout:
            told = json.loads(line)
            assert told["name"] != "producer_send_error", line
            if told["name"] == "producer_send_success":
                acknowledged.append(int(told["value"]))
                if len(acknowledged) == 100:
                    cluster.kill(cluster.leader(topic))
    assert producer.returncode == 0
    assert sorted(acknowledged) == list(range(600))
    found = READERS["confluent-kafka"](cluster.bootstrap, topic, 1, 600)
    assert [each.message.value for each in found] == [b"%d" % number for number in range(600)]


def test_topics_are_created_while_the_active_controller_is_gone(cluster: Cluster, unique: Callable[[str], str]) -> None:
    for disturb in (Cluster.kill, Cluster.stop):
        name = unique("topic")
        ended = cluster.active_controller()
        disturb(cluster, ended)
        cluster.wait_until_fenced(ended)
        create_replicated_topic(cluster, name, replication_factor=2)
        assert cluster.active_controller() != ended
        cluster.start(ended)
        assert cluster.leader(name) > 0
