"""The plan of a cluster on this host: its nodes, their ports and their properties.

Brokers have the ids from 1 on. Without controllers of their own the first of them are controllers, too: three of them,
or one where there are fewer than three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST = "127.0.0.1"
FIRST_CONTROLLER_ID = 3001
"""Of controllers that are no brokers: far from the brokers' ids, so that more of those can be added."""
MOST_BROKERS = 100
MOST_CONTROLLERS = 9

OWN_KEYS: Final = frozenset(
    (
        *("node.id", "broker.id", "process.roles", "log.dir", "log.dirs", "metadata.log.dir", "listeners"),
        *("advertised.listeners", "listener.security.protocol.map", "controller.listener.names"),
        *("inter.broker.listener.name", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
    )
)
"""Each node has its own values of these."""


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


def listener_count(brokers: int, controllers: int = 0) -> int:
    """Return how many ports a cluster takes. controllers: nodes that are no brokers."""
    return brokers + (controllers or _combined(brokers))


def plan_cluster(brokers: int, controllers: int, ports: Sequence[int]) -> ClusterPlan:
    """Plan nodes and their ports, brokers first. ports: `listener_count` of them."""
    combined = 0 if controllers else _combined(brokers)
    of_controllers = ports[brokers:]
    nodes = [
        PlannedNode(number + 1, ports[number], of_controllers[number] if number < combined else None)
        for number in range(brokers)
    ]
    nodes += [PlannedNode(FIRST_CONTROLLER_ID + number, None, of_controllers[number]) for number in range(controllers)]
    return ClusterPlan(tuple(nodes))


def _combined(brokers: int) -> int:
    """Return how many brokers are controllers, too, where there are no others."""
    return 3 if brokers >= 3 else 1


def node_properties(
    plan: ClusterPlan, node: PlannedNode, directory: Path, configs: Mapping[str, str]
) -> dict[str, str]:
    """Return a node's properties. configs: the user's, for every node, and none of `OWN_KEYS`."""
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
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",
        **configs,
    }
