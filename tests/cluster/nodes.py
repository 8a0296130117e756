"""Three nodes of one cluster in a simulated world: their configuration, their disks, and who of them runs."""

from __future__ import annotations

import random
from collections.abc import Mapping

import trio

from pykbroker.metadata.features import ELR_VERSION
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.server.quorum.formatting import format_unformatted
from pykbroker.server.quorum.initial_controllers import InitialController
from pykbroker.sim.clock import EPOCH_MS, SimulatedClock
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.sim.node import SimulatedNode

from .plan import Plan

NODE_IDS = (1, 2, 3)
BROKER_PORT, CONTROLLER_PORT = 9092, 9093
CLOCKS_MS = 5_000


def host(node_id: int) -> str:
    return f"node{node_id}"


def _quorum_properties(*, is_dynamic: bool) -> dict[str, str]:
    if is_dynamic:
        return {"controller.quorum.bootstrap.servers": ",".join(f"{host(each)}:{CONTROLLER_PORT}" for each in NODE_IDS)}
    return {"controller.quorum.voters": ",".join(f"{each}@{host(each)}:{CONTROLLER_PORT}" for each in NODE_IDS)}


def node_properties(node_id: int, plan: Plan) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host(node_id)}:{BROKER_PORT},CONTROLLER://{host(node_id)}:{CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        **_quorum_properties(is_dynamic=plan.is_dynamic),
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "controller.quorum.election.timeout.ms": "300",
        "controller.quorum.fetch.timeout.ms": "600",
        "controller.quorum.election.backoff.max.ms": "200",
        "broker.session.timeout.ms": "1500",
        "broker.heartbeat.interval.ms": "300",
        "replica.fetch.backoff.ms": "200",
        "request.timeout.ms": "2000",
        **plan.properties,
    }


class SimulatedCluster:
    """Each machine's monotonic clock has a rate of its own, and its wall clock is off by CLOCKS_MS at most."""

    def __init__(
        self, rng: random.Random, network: SimulatedNetwork, plan: Plan, overrides: Mapping[str, str] | None = None
    ) -> None:
        self.nodes: dict[int, SimulatedNode] = {}
        self.cluster_id = uuid_to_text(random_uuid(rng))
        self.directory_ids = {node_id: random_uuid(rng) for node_id in NODE_IDS}
        """Of voters that stand in the log."""
        for node_id in NODE_IDS:
            clock = SimulatedClock(EPOCH_MS + rng.randint(-CLOCKS_MS, CLOCKS_MS), rate=rng.uniform(0.98, 1.02))
            node = SimulatedNode(
                rng,
                network,
                name=host(node_id),
                overrides={**node_properties(node_id, plan), **(overrides or {})},
                clock=clock,
            )
            node.disk.now_ms = None
            self._format(node, rng, plan)
            node.disk.now_ms = clock.now_ms
            self.nodes[node_id] = node

    def _format(self, node: SimulatedNode, rng: random.Random, plan: Plan) -> None:
        for path in plan.log_directories:
            node.disk.make_directory(path)
        voters = {
            node_id: InitialController(node_id, host(node_id), CONTROLLER_PORT, directory_id)
            for node_id, directory_id in self.directory_ids.items()
        }
        format_unformatted(
            node.disk,
            node.config,
            self.cluster_id,
            rng=rng,
            now_ms=EPOCH_MS,
            feature_levels={ELR_VERSION: int(plan.has_elr)},
            initial_controllers=voters if plan.is_dynamic else None,
        )

    async def start(self, nursery: trio.Nursery) -> None:
        """All at once: one alone finds no leader."""
        async with trio.open_nursery() as starting:
            for node in self.nodes.values():
                starting.start_soon(node.start, nursery)
