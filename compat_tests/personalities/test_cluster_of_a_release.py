"""Three nodes that offer what an older release offers: clients see it, and the nodes talk to each other as ever."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers import BrokerProcess, Pykbroker, pykbroker_command
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.conftest import assert_all_went_well
from compat_tests.ports import take_ports
from compat_tests.waiting import DEADLINE_S, until
from compat_tests.wire import Closed, Wire
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import MetadataRequest

from .releases import PykbrokerAs

NODES = (1, 2, 3)
FETCH = 1
CLUSTER_ID = "rGKhQ5uFQ7WqXg2Vd1mY0A"
MESSAGES = [Message(b"value %d" % number, timestamp_ms=1_700_000_000_000 + number) for number in range(50)]

pytestmark = pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")


class Node(PykbrokerAs):
    """A node with a listener for clients and one for nodes."""

    def __init__(self, directory: Path, node_id: int, nodes_port: int, voters: str) -> None:
        super().__init__(directory, "2.8")
        self.nodes_address = ("127.0.0.1", nodes_port)
        protocols = "PLAINTEXT:PLAINTEXT,NODES:PLAINTEXT,CONTROLLER:PLAINTEXT"
        self.properties |= {
            "node.id": str(node_id),
            "listeners": f"{self.properties['listeners']},NODES://127.0.0.1:{nodes_port}",
            "listener.security.protocol.map": protocols,
            "inter.broker.listener.name": "NODES",
            "controller.quorum.voters": voters,
            "group.initial.rebalance.delay.ms": "0",
        }

    def prepare(self) -> None:
        command = pykbroker_command("format", "-t", CLUSTER_ID, "-c", str(self.properties_file))
        subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    ports = take_ports(len(NODES))
    made = [Node(tmp_path / str(node), node, port, "") for node, port in zip(NODES, ports, strict=True)]
    voters = ",".join(f"{number}@127.0.0.1:{node.controller_port}" for number, node in zip(NODES, made, strict=True))
    for node in made:
        node.properties["controller.quorum.voters"] = voters
    for node in made:
        node.launch()
    for node in made:
        node.wait_until_it_answers()
    yield made
    for node in made:
        node.close()
        assert_all_went_well(node)


def fetch_versions(address: tuple[str, int]) -> tuple[int, int]:
    with Wire(address) as wire:
        answer = wire.call(ApiVersionsRequest(client_software_name="compat", client_software_version="1"), 3)
    assert isinstance(answer, ApiVersionsResponse)
    return next((each.min_version, each.max_version) for each in answer.api_keys if each.api_key == FETCH)


def test_replicas_follow_groups_and_clients_are_served(nodes: list[Node], kind: str) -> None:
    bootstrap = ",".join(node.bootstrap for node in nodes)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    until(lambda: len(admin.list_topics(timeout=30).brokers) == len(NODES), "all nodes are there")
    for future in admin.create_topics([NewTopic("replicated", 1, 3, config={"retention.ms": "-1"})]).values():
        future.result(DEADLINE_S)
    written = WRITERS["confluent-kafka"](bootstrap, "replicated", MESSAGES)
    assert READERS["kafka-python"](bootstrap, "replicated", 1, len(MESSAGES)) == written
    for node in nodes:
        assert fetch_versions(node.address) == (4, 12)
        assert fetch_versions(node.nodes_address) == (4, 18)
        with Wire(node.address) as wire, pytest.raises(Closed):
            wire.call(MetadataRequest(topics=[]), 12)

    def in_sync() -> bool:
        topic = admin.list_topics("replicated", timeout=30).topics["replicated"]
        return sorted(topic.partitions[0].isrs) == list(NODES)

    until(in_sync, "all replicas are in sync")
    assert READERS["aiokafka"](bootstrap, "replicated", 1, len(MESSAGES)) == written


def test_a_node_that_shares_its_listener_does_not_start(tmp_path: Path, kind: str) -> None:
    class Shared(Pykbroker):
        def command(self) -> list[str]:
            return [*super().command(), "--as", "2.8"]

    node: BrokerProcess = Shared(tmp_path / "node", {"controller.quorum.voters": "1@127.0.0.1:1,2@127.0.0.1:2"})
    node.launch()
    assert node.process is not None
    assert node.process.wait(DEADLINE_S) == 1
    assert "--as needs a listener for the nodes of a cluster alone" in node.log_text()
