"""`pykbroker cluster` with three nodes: clients work with it, a node that dies is said, a restart finds all again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.waiting import until
from tests.cli.cluster_command import ClusterCommand

MESSAGES = [Message(b"%d" % number) for number in range(100)]


def test_three_nodes_in_one_command(start_cluster: Callable[..., ClusterCommand], tmp_path: Path) -> None:
    arguments = ("--data-dir", "d", "--config", "auto.create.topics.enable=true", "--config", "num.partitions=1")
    cluster = start_cluster(*arguments)
    bootstrap = cluster.wait_until_ready()
    assert len(bootstrap.split(",")) == 3
    WRITERS["confluent-kafka"](bootstrap, "kept", MESSAGES)
    cluster.nodes()[2].kill()
    said = "pykbroker cluster: node-2 was ended by SIGKILL; the other nodes go on\n"
    until(lambda: said in cluster.lines, "the end of node 2 is said")
    WRITERS["kafka-python"](bootstrap, "kept", MESSAGES)
    assert cluster.end(signal.SIGINT) == 0, cluster.log()
    assert {line.split(" | ")[0] for line in cluster.lines if " | " in line} == {"node-1", "node-2", "node-3"}
    assert "Traceback" not in cluster.log()
    again = start_cluster(*arguments)
    assert again.wait_until_ready() == bootstrap
    assert len(READERS["confluent-kafka"](bootstrap, "kept", 1, 200)) == 200
    assert again.end() == 0, again.log()


def test_brokers_beside_controllers_of_their_own(start_cluster: Callable[..., ClusterCommand], tmp_path: Path) -> None:
    cluster = start_cluster("--brokers", "2", "--controllers", "1", "--ephemeral")
    bootstrap = cluster.wait_until_ready()
    WRITERS["confluent-kafka"](bootstrap, "shared", MESSAGES)
    assert len(READERS["kafka-python"](bootstrap, "shared", 1, 100)) == 100
    assert cluster.end() == 0, cluster.log()
    assert list(tmp_path.iterdir()) == []
