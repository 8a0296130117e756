"""Connections to other nodes: whoever uses or closes one, the other is not disturbed."""

from __future__ import annotations

import random

import pytest
import trio

from pykbroker.client.errors import ConnectionRefused
from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pykbroker.protocol.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from pykbroker.server.network.node_connections import NodeAddress, NodeConnections
from pykbroker.server.runtime.threads import OnTheLoop
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
        moved = NodeAddress(here.destination.node, there.destination.host, there.destination.port)
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


def test_nothing_is_kept_of_nodes_to_which_there_is_no_connection() -> None:
    async def run() -> None:
        network = SimulatedNetwork(random.Random(1))
        here = TestController(2, AllocateProducerIdsRequest, _answers)
        connections = NodeConnections(network, client_id="broker-1", request_timeout_ms=5_000)
        for node_id in range(100):
            with pytest.raises(ConnectionRefused):
                await connections.connection(NodeAddress(f"controller {node_id}", "127.0.0.1", 1))
        assert not connections._connecting
        async with here.serving(network):
            opened = await connections.connection(here.destination)
            assert await connections.connection(here.destination) is opened
            await connections.close(here.destination.node)
        assert not connections._connecting

    run_deterministic(run, seed=1)


class CountingThreads(OnTheLoop):
    jobs = 0

    async def run(self, fn, *args):  # type: ignore[no-untyped-def]
        self.jobs += 1
        return await super().run(fn, *args)


@pytest.mark.parametrize(("partitions", "jobs"), [(10, 0), (1500, 1)])
def test_an_answer_of_many_entries_is_unpacked_in_a_thread(partitions: int, jobs: int) -> None:
    answered = ListPartitionReassignmentsResponse(
        topics=[
            OngoingTopicReassignment(
                name="apples", partitions=[OngoingPartitionReassignment(partition_index=i) for i in range(partitions)]
            )
        ]
    )

    async def answers(request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        return answered

    async def run() -> None:
        network, threads = SimulatedNetwork(random.Random(1)), CountingThreads()
        here = TestController(2, ListPartitionReassignmentsRequest, answers)
        connections = NodeConnections(network, client_id="broker-1", request_timeout_ms=5_000, threads=threads)
        async with here.serving(network):
            response = await connections.request(
                here.destination, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse
            )
            await connections.aclose()
        assert response == answered
        assert threads.jobs == jobs

    run_deterministic(run, seed=1)
