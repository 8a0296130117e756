"""An advance of the clocks of a cluster's nodes: all of them at once, and what it makes due has happened at its end."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import trio

from pykbroker.metadata.image import MetadataImage
from pykbroker.server.quorum.metadata_publisher import MetadataPublisher

from .clocked_node import ClockedNode
from .clocks import scopes_of
from .duration import duration_ms
from .looks import Look, looks

LONGEST_S: Final = 30.0
_WATCH_S: Final = 0.05


class AdvanceNotDone(TimeoutError):
    """The clocks are advanced, and something of what became due has not happened in time."""


async def advance(
    nodes: Sequence[ClockedNode], duration: str | timedelta, scope: str, *, timeout_s: float = LONGEST_S
) -> None:
    """Advance the clocks of the nodes in a scope, and return when what is due has happened.

    Nodes that do not run or end meanwhile, are paused or cut off have their clocks advanced, too, and are not waited
    for. Raises BadDuration, UnknownScope, and AdvanceNotDone after `timeout_s`.
    """
    scopes, by_ms = scopes_of(scope), duration_ms(duration)
    at_ms = max(node.now_ms() for node in nodes) + 1
    for node in nodes:
        node.clocks.advance(scopes, by_ms, at_ms)
    await trio.sleep(0.002)  # what comes behind the advance has a later timestamp
    await _look([node for node in nodes if node.answers], scopes, timeout_s)


async def _look(nodes: Sequence[ClockedNode], scopes: Sequence[str], timeout_s: float) -> None:
    pending: list[tuple[int, str]] = []

    async def take(node: ClockedNode, name: tuple[int, str], look: Look) -> None:
        pending.append(name)
        async with _while_it_runs(node):
            await look()
        pending.remove(name)

    with trio.move_on_after(timeout_s) as waiting:
        async with trio.open_nursery() as nursery:
            for node in nodes:
                parts = None if node.node is None else node.node.parts
                if parts is not None:
                    for scope, look in looks(parts, scopes):
                        nursery.start_soon(take, node, (parts.node.node_id, scope), look)
        if "tokens" in scopes:
            await _same_images(nodes)
    if waiting.cancelled_caught:
        left = (
            ", ".join(f"{scope} on node {node_id}" for node_id, scope in sorted(set(pending)))
            or "tokens of other nodes"
        )
        raise AdvanceNotDone(
            f"the clocks are advanced, and after {timeout_s:g} s something is still to be done: {left}"
        )


async def _same_images(nodes: Sequence[ClockedNode]) -> None:
    """Return when each node has seen what any of them has of the metadata now."""
    running = [(each, each.node.parts.node) for each in nodes if each.node is not None and each.node.parts is not None]
    newest = max((node.metadata.applied_offset for _, node in running), default=0)
    for each, node in running:
        async with _while_it_runs(each):
            await node.image_conditions.until(partial(_has_applied, node.metadata, newest), math.inf)


@asynccontextmanager
async def _while_it_runs(node: ClockedNode) -> AsyncIterator[None]:
    """Give up the body when the node ends: nobody would tell that what is due has happened."""
    running = node.node

    async def watch(scope: trio.CancelScope) -> None:
        while node.node is running:  # noqa: ASYNC110 - a node that is killed tells nobody
            await trio.sleep(_WATCH_S)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel()


def _has_applied(metadata: MetadataPublisher, offset: int, image: MetadataImage) -> bool:
    return metadata.applied_offset >= offset
