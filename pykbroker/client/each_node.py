"""One question to many nodes at once; a node that is down does not hide the answers of the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

import trio

from .cluster import Cluster
from .connection import Connection
from .errors import ClientError, TimedOut
from .metadata import Node

T = TypeVar("T")

_NODES_AT_ONCE: Final = 16
_CONNECTION_TIMEOUT_S: Final = 10.0
"""For a connection and the first answer on it: a node that hangs must not hold up what the others say."""


async def connection_in_time(cluster: Cluster, node: Node) -> Connection:
    """Return a connection to a node. Raises ClientError, TimedOut where the node hangs."""
    with trio.move_on_after(_CONNECTION_TIMEOUT_S):
        return await cluster.node_connection(node)
    raise TimedOut(f"Broker {node.node_id} at {node} did not answer within {_CONNECTION_TIMEOUT_S:g} s")


async def ask_each(
    cluster: Cluster,
    nodes: Collection[Node],
    ask: Callable[[Connection], Awaitable[T]],
    *,
    on_answer: Callable[[], None] = lambda: None,
) -> dict[int, T | ClientError]:
    """Return the answer of each node, or why there is none, by node id.

    Nobody is asked twice. The connection's own limits of time bound the wait for each. on_answer: called for each node.
    """
    found: dict[int, T | ClientError] = {}
    limiter = trio.CapacityLimiter(_NODES_AT_ONCE)

    async def one(node: Node) -> None:
        async with limiter:
            try:
                found[node.node_id] = await ask(await connection_in_time(cluster, node))
            except ClientError as error:
                found[node.node_id] = error
            on_answer()

    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(one, node)
    return dict(sorted(found.items()))
