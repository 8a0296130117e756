"""Connections to other nodes: whoever uses or closes one, the other is not disturbed."""

from __future__ import annotations

import random

import trio

from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pykbroker.server.node_connections import Destination, NodeConnections
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork

from .controllers import TestController


async def _answers(request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse()


def test_the_connection_to_a_node_that_moved_is_replaced_while_somebody_else_closes_it() -> None:
    async def run() -> None:
        network = SimulatedNetwork(random.Random(1))
        here = TestController(2, AllocateProducerIdsRequest, _answers)
        there = TestController(3, AllocateProducerIdsRequest, _answers)
        moved = Destination(here.destination.node, there.destination.host, there.destination.port)
        connections = NodeConnections(network, client_id="broker-1", request_timeout_ms=5_000)
        async with here.serving(network), there.serving(network):
            for steps in range(8):  # behind each of the first steps of the replacement
                await connections.connection(here.destination)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(connections.connection, moved)
                    for _ in range(steps):
                        await trio.lowlevel.checkpoint()
                    await connections.close(moved.node)
            await connections.aclose()

    run_deterministic(run, seed=1)
