"""Clusters of both kinds of brokers whose listeners a test has given: how they become one, and that they replicate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .apache_kafka.broker import CLUSTER_ID
from .apache_kafka.tools import Tool, run_tool
from .brokers import BrokerProcess, Pykbroker
from .waiting import until

_PAUSE_S = 0.1
"""Between two records of a producer that goes on for a while."""


def voter_properties(number: int, nodes: Sequence[BrokerProcess]) -> dict[str, str]:
    """Of a node that is broker and controller, as all of them are. number: from 1 on."""
    return {
        "node.id": str(number),
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(
            f"{number}@127.0.0.1:{node.controller_port}" for number, node in enumerate(nodes, 1)
        ),
    }


@contextmanager
def together(nodes: Sequence[BrokerProcess]) -> Iterator[None]:
    """Format the nodes and start them; they are killed at the end."""
    try:
        for node in nodes:
            node.set_up()
            if isinstance(node, Pykbroker):
                run_tool(Tool.STORAGE, "format", "-t", CLUSTER_ID, "-c", str(node.properties_file))
            node.launch()
        for node in nodes:
            node.wait_until_it_answers()
        yield
    finally:
        for node in nodes:
            node.kill()


def join(node: BrokerProcess, number: int, first: BrokerProcess | None) -> None:
    """Give a node its place, with the listener BROKERS: the first is broker and controller, others are brokers."""
    voter = first or node
    listeners = f"BROKERS://{node.bootstrap}"
    if first is None:
        listeners += f",CONTROLLER://127.0.0.1:{node.controller_port}"
    node.properties |= {
        "node.id": str(number),
        "listeners": listeners,
        "advertised.listeners": f"BROKERS://{node.bootstrap}",
        "controller.quorum.voters": f"1@127.0.0.1:{voter.controller_port}",
    }
    if first is not None:
        node.properties["process.roles"] = "broker"
    node.set_up()


def replicate(nodes: Sequence[BrokerProcess], client: dict[str, Any], lasts_s: float) -> None:
    """Write for a while to partitions of which each node has a replica: nothing fails, and all stay in sync.

    client: of librdkafka, how it logs in at the nodes.
    """
    client = {"bootstrap.servers": nodes[0].bootstrap, **client}
    admin = AdminClient(client)
    until(lambda: len(admin.list_topics(timeout=30).brokers) == len(nodes), "all brokers are there")
    admin.create_topics([NewTopic("copied", 3, len(nodes), config={"min.insync.replicas": str(len(nodes))})])[
        "copied"
    ].result()
    producer = Producer(client | {"acks": "all", "linger.ms": 0})
    failed: list[str] = []
    deadline, number = time.monotonic() + lasts_s, 0
    while time.monotonic() < deadline:
        producer.produce(
            "copied",
            str(number),
            partition=number % 3,
            on_delivery=lambda error, _: error and failed.append(str(error)),
        )
        producer.flush(30)
        number += 1
        time.sleep(_PAUSE_S)
    assert failed == []
    described = admin.list_topics("copied", timeout=30).topics["copied"]
    everyone = list(range(1, len(nodes) + 1))
    assert [sorted(each.isrs) for each in described.partitions.values()] == [everyone] * 3
