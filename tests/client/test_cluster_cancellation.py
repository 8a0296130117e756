"""A cluster whose user is cancelled leaves no connection behind."""

from __future__ import annotations

import trio

from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.connection import Connection
from pykbroker.testing import Cluster as Brokers


def test_a_block_that_is_cancelled_closes_all_connections() -> None:
    async def run(servers: list[tuple[str, int]]) -> list[Connection]:
        with trio.CancelScope() as scope:
            async with Cluster(servers) as cluster:
                metadata = await cluster.refresh([])
                connections = [await cluster.node_connection(node) for node in metadata.nodes.values()]
                scope.cancel()
                await trio.lowlevel.checkpoint()
        return connections

    with Brokers(3) as brokers:
        connections = trio.run(run, parse_bootstrap_servers(brokers.bootstrap_servers))
    assert len(connections) == 3
    assert all(each.is_closed for each in connections)
