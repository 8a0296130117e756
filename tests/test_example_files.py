"""The examples of clusters, in containers and on hosts: every node can load its own, and they fit one another."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pykbroker.config import BrokerConfig
from pykbroker.protocol.uuids import uuid_from_text

ROOT = Path(__file__).parents[1]
COMPOSE_FILE = ROOT / "docker" / "compose-cluster.yaml"
FOLDERS = [ROOT / "docker" / "cluster", ROOT / "docs" / "cluster"]
NODE_IDS = [1, 2, 3]


def load(folder: Path) -> list[BrokerConfig]:
    return [BrokerConfig.load(folder / f"node-{node_id}.properties", {}) for node_id in NODE_IDS]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_the_nodes_of_an_example_form_one_cluster(folder: Path) -> None:
    nodes = load(folder)
    assert [node.node_id for node in nodes] == NODE_IDS
    assert [node.unknown_keys for node in nodes] == [[], [], []]
    assert all(node.quorum_voters == nodes[0].quorum_voters for node in nodes)
    for node in nodes:
        (controller,) = node.listeners.controller
        assert node.quorum_voters[node.node_id] == (controller.host, controller.port)
    advertised = [str(listener) for node in nodes for listener in node.listeners.advertised]
    assert len(set(advertised)) == len(advertised)
    same = [
        {key: text for key, text in node.originals.items() if key.endswith((".factor", ".replicas", ".isr"))}
        for node in nodes
    ]
    assert same[0] == same[1] == same[2]
    assert same[0]["min.insync.replicas"] == "2"


def test_each_container_has_its_properties_its_port_and_its_volume() -> None:
    services = re.split(r"^  (?=node-\d:)", COMPOSE_FILE.read_text().split("\nservices:\n")[1], flags=re.MULTILINE)[1:]
    for node_id, node, service in zip(NODE_IDS, load(FOLDERS[0]), services, strict=True):
        assert service.startswith(f"node-{node_id}:")
        assert f"./cluster/node-{node_id}.properties:/mnt/shared/config/server.properties:ro" in service
        assert f"data-{node_id}:/var/lib/pykbroker" in service
        on_host = node.listeners.advertised_for("PLAINTEXT")
        between = node.listeners.advertised_for("DOCKER")
        assert on_host is not None
        assert between is not None
        assert f'"{on_host.port}:{on_host.port}"' in service
        assert between.host == f"node-{node_id}"
        assert [Path(path).parent for path in node.log_dirs] == [Path("/var/lib/pykbroker")]


def test_the_cluster_id_of_the_containers_is_one() -> None:
    (cluster_id,) = re.findall(r"CLUSTER_ID: (\S+)", COMPOSE_FILE.read_text())
    assert len(uuid_from_text(cluster_id)) == 16


@pytest.mark.skipif(shutil.which("docker") is None, reason="needs docker")
def test_docker_takes_the_compose_file() -> None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("needs docker compose")
    command = ["docker", "compose", "-f", str(COMPOSE_FILE), "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
