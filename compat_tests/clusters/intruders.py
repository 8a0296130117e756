"""Nodes that are not meant to come up: started beside a cluster, until they end, for what they say then."""

from __future__ import annotations

import subprocess

from compat_tests.clients import READERS, WRITERS, Message

from .cluster import Cluster
from .nodes import Node

END_DEADLINE_S = 120.0
MESSAGES = [Message(b"%d" % number) for number in range(10)]


def refusal(node: Node) -> str:
    """Starts the node and waits until it ends, with exit code 1 and one line, which is returned."""
    already = len(node.log_text())
    node.launch()
    assert node.process is not None
    try:
        code = node.process.wait(END_DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"node {node.node_id} does not end\n{node.log_tail()}") from None
    finally:
        node.kill()
    said = node.log_text()[already:]
    assert "Traceback" not in said, said
    errors = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert (code, len(errors)) == (1, 1), said
    assert "pykbroker ready" not in said, said
    return errors[0]


def assert_unharmed(cluster: Cluster, topic: str, *node_ids: int) -> None:
    """These nodes still run, and one of them leads; what is written is read."""
    for node_id in node_ids:
        process = cluster.nodes[node_id].process
        assert process is not None
        assert process.poll() is None, cluster.nodes[node_id].log_tail()
    assert cluster.active_controller() in node_ids
    bootstrap = ",".join(cluster.nodes[each].bootstrap for each in node_ids)
    WRITERS["confluent-kafka"](bootstrap, topic, MESSAGES)
    READERS["confluent-kafka"](bootstrap, topic, 1, len(MESSAGES))
