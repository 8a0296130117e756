"""The plan of `pykbroker cluster`: its nodes, their properties, and the places of their data.

Brokers have the ids from 1 on. Without controllers of their own the first of them are controllers, too: three of them,
or one where there are fewer than three. The data directory keeps the cluster's id and its controllers, because a voter
that is lost or changed is not for a command line to bring about.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.properties import read_properties
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.server.quorum.formatting import format_unformatted
from pykbroker.storage.files.disk import OsDisk

HOST = "127.0.0.1"
FIRST_CONTROLLER_ID = 3001
"""Of controllers that are no brokers: far from the brokers' ids, so that more of those can be added."""
MOST_BROKERS = 100
MOST_CONTROLLERS = 9

_OWN_KEYS = frozenset(
    (
        *("node.id", "broker.id", "process.roles", "log.dir", "log.dirs", "metadata.log.dir", "listeners"),
        *("advertised.listeners", "listener.security.protocol.map", "controller.listener.names"),
        *("inter.broker.listener.name", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
    )
)
_CLUSTER_FILE = "cluster.properties"


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """Ports are None where the node has no such listener."""

    node_id: int
    broker_port: int | None
    controller_port: int | None

    @property
    def name(self) -> str:
        return f"node-{self.node_id}"

    @property
    def roles(self) -> str:
        roles = [("broker", self.broker_port), ("controller", self.controller_port)]
        return ",".join(role for role, port in roles if port is not None)

    @property
    def listeners(self) -> str:
        listeners = [("PLAINTEXT", self.broker_port), ("CONTROLLER", self.controller_port)]
        return ",".join(f"{name}://{HOST}:{port}" for name, port in listeners if port is not None)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    nodes: tuple[PlannedNode, ...]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{node.broker_port}" for node in self.nodes if node.broker_port is not None)

    @property
    def voters(self) -> dict[int, str]:
        """Controllers and where they listen."""
        return {
            node.node_id: f"{HOST}:{node.controller_port}" for node in self.nodes if node.controller_port is not None
        }


def plan_cluster(brokers: int, controllers: int, base_port: int) -> ClusterPlan:
    """Plan nodes and ports, brokers first. controllers: nodes that are no brokers. Raises ConfigurationError."""
    combined = 0 if controllers else 3 if brokers >= 3 else 1
    last_port = base_port + brokers + (controllers or combined) - 1
    if last_port > 65535:
        raise ConfigurationError(f"--base-port {base_port} is too high: the last port would be {last_port}")
    first_controller_port = base_port + brokers
    nodes = [
        PlannedNode(number + 1, base_port + number, first_controller_port + number if number < combined else None)
        for number in range(brokers)
    ]
    nodes += [
        PlannedNode(FIRST_CONTROLLER_ID + number, None, first_controller_port + number) for number in range(controllers)
    ]
    return ClusterPlan(tuple(nodes))


def node_properties(
    plan: ClusterPlan, node: PlannedNode, directory: Path, configs: Mapping[str, str]
) -> dict[str, str]:
    """Return a node's properties. configs: the user's, for every node. Raises ConfigurationError."""
    for key in configs:
        if key in _OWN_KEYS:
            raise ConfigurationError(f"--config {key}: each node of the cluster gets its own from this command")
    brokers = sum(each.broker_port is not None for each in plan.nodes)
    replicas, in_sync = min(brokers, 3), 2 if brokers >= 3 else 1
    return {
        "process.roles": node.roles,
        "node.id": str(node.node_id),
        "listeners": node.listeners,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.voters": ",".join(f"{node_id}@{address}" for node_id, address in plan.voters.items()),
        "log.dirs": str(directory),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",
        **configs,
    }


def set_up_cluster(plan: ClusterPlan, directory: Path, configs: Mapping[str, str]) -> dict[int, Path]:
    """Formats what is new, and writes the properties of each node; returns their files.

    Raises ConfigurationError, StorageError, OSError.
    """
    directory = directory.absolute()
    all_properties = {
        node.node_id: node_properties(plan, node, directory / node.name / "data", configs) for node in plan.nodes
    }
    all_configs = {node_id: BrokerConfig(properties) for node_id, properties in all_properties.items()}
    directory.mkdir(parents=True, exist_ok=True)
    cluster_id = _cluster_id(plan, directory)
    files = {}
    for node in plan.nodes:
        files[node.node_id] = directory / node.name / "server.properties"
        files[node.node_id].parent.mkdir(exist_ok=True)
        files[node.node_id].write_text(javaproperties.dumps(all_properties[node.node_id], timestamp=False))
        now_ms = time.time_ns() // 1_000_000
        config = all_configs[node.node_id]
        format_unformatted(OsDisk(), config, cluster_id, rng=random.SystemRandom(), now_ms=now_ms)
    return files


def _cluster_id(plan: ClusterPlan, directory: Path) -> str:
    """That of the directory's cluster, or a new one. Raises ConfigurationError."""
    controllers = ",".join(map(str, plan.voters))
    file = directory / _CLUSTER_FILE
    if not file.exists():
        cluster_id = uuid_to_text(random_uuid(random.SystemRandom()))
        file.write_text(javaproperties.dumps({"cluster.id": cluster_id, "controllers": controllers}, timestamp=False))
        return cluster_id
    kept = read_properties(file)
    if kept.keys() < {"cluster.id", "controllers"}:
        raise ConfigurationError(f"{file} does not tell cluster.id and controllers")
    if kept["controllers"] != controllers:
        raise ConfigurationError(
            f"the cluster in {directory} has the controllers {kept['controllers']}, not {controllers}: "
            "start it with the number of controllers that it was made with"
        )
    return kept["cluster.id"]
