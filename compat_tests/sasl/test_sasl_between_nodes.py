"""Nodes that authenticate with each other: a controller and brokers of both kinds, with SASL on every listener."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compat_tests.apache_kafka.broker import CLUSTER_ID, ApacheKafka
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import BrokerProcess, Pykbroker, pykbroker_command
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.mixed_nodes import join, replicate

from .modules import PLAIN_MODULE, SCRAM_MODULE

NODE = f'{PLAIN_MODULE} required username="node" password="node-secret" user_node="node-secret";'
SCRAM = f'{SCRAM_MODULE} required username="broker" password="broker-secret";'
USER = 'SCRAM-SHA-512=[name=broker,password="broker-secret"]'
BETWEEN = {
    "listener.security.protocol.map": "BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "controller.listener.names": "CONTROLLER",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": NODE,
    "listener.name.brokers.scram-sha-512.sasl.jaas.config": SCRAM,
    # Sessions end while the brokers work: they go on without a gap.
    "listener.name.brokers.connections.max.reauth.ms": "4000",
    "offsets.topic.replication.factor": "1",
    "process.roles": "broker,controller",
}
OVER_TWO_SESSIONS_S = 9.0
CREDENTIALS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "broker",
    "sasl.password": "broker-secret",
}


def node(make: type[BrokerProcess], directory: Path, number: int, first: BrokerProcess | None) -> BrokerProcess:
    """The first node is broker and controller; others are brokers of its cluster."""
    options = {"is_formatted": True} if make is ApacheKafka else {}
    broker = make(directory / f"node-{number}", BETWEEN, **options)
    join(broker, number, first)
    return broker


@pytest.mark.java
@pytest.mark.parametrize(
    "kinds",
    [(Pykbroker, Pykbroker, ApacheKafka), (ApacheKafka, Pykbroker, Pykbroker)],
    ids=["pykbroker leads the quorum", "Kafka leads the quorum"],
)
def test_brokers_replicate_over_sasl(
    kinds: tuple[type[BrokerProcess], ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    nodes: list[BrokerProcess] = []
    try:
        for number, kind in enumerate(kinds, 1):
            nodes.append(node(kind, tmp_path, number, nodes[0] if nodes else None))
            watch_log(request.node, nodes[-1])
            arguments = ["format", "-t", CLUSTER_ID, "-c", str(nodes[-1].properties_file), "-S", USER]
            if kind is ApacheKafka:
                run_tool(Tool.STORAGE, *arguments)
            else:
                subprocess.run(pykbroker_command(*arguments), check=True, capture_output=True, timeout=120)
            nodes[-1].start()
        replicate(nodes, CREDENTIALS, OVER_TWO_SESSIONS_S)
    finally:
        for each in reversed(nodes):
            each.stop()
    for each in nodes:
        assert_all_went_well(each)
