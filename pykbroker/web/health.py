"""The health of a node, for whoever restarts it (`/healthz`) and whoever sends it clients (`/readyz`).

`/healthz` is answered by the node's loop, so that an answer says that the loop turns. `/readyz` says what keeps clients
from being served, a log directory that is offline or full included. Both answer 200, or 503 with the reason as one
line of text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .answers import answer_text
from .room import RoomLook, log_directories
from .site import page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pykbroker.server.node.composition.parts import NodeParts
    from pykbroker.server.node.node import Node

_MOST_BEHIND: Final = 1_000
"""An image is some records behind while it takes them; more of them are a node that does not keep up."""


def health_pages(node: Node) -> dict[str, ASGIApp]:
    """Return the two pages by their paths."""

    look = RoomLook()

    async def healthz(scope: Scope, receive: Receive, send: Send) -> None:
        await _say(send, why_not_healthy(node))

    async def readyz(scope: Scope, receive: Receive, send: Send) -> None:
        await _say(send, await why_not_ready(node, look))

    return {"/healthz": page(healthz), "/readyz": page(readyz)}


async def _say(send: Send, reason: str) -> None:
    await answer_text(send, 503 if reason else 200, reason or "ok")


def why_not_healthy(node: Node) -> str:
    """Return why a node does not run; empty where it does."""
    return "the node has ended" if node.stopped.is_set() else ""


async def why_not_ready(node: Node, look: RoomLook) -> str:
    """Return what keeps clients from being served; empty where nothing does. look: asks the volumes."""
    if reason := why_not_healthy(node):
        return reason
    if node.is_stopping:
        return "the node shuts down"
    if node.parts is None or not node.serves:
        return "the node starts: it opens its logs, looks for its quorum and registers"
    parts = node.parts
    return _why_metadata(parts) or _why_broker(parts) or await _why_directories(parts, look)


def _why_metadata(parts: NodeParts) -> str:
    node = parts.node
    behind = node.raft.high_watermark - node.metadata.applied_offset
    return f"the metadata are {behind} records behind the quorum" if behind > _MOST_BEHIND else ""


def _why_broker(parts: NodeParts) -> str:
    node, role = parts.node, parts.broker_role
    if role is None:
        return ""
    registration = node.image.brokers.get(node.node_id)
    if registration is None:
        return "the broker is not registered"
    if registration.fenced:
        return "the broker is fenced: no controller hears its heartbeats"
    if registration.in_controlled_shutdown:
        return "the broker leaves the cluster"
    return ""


async def _why_directories(parts: NodeParts, look: RoomLook) -> str:
    directories = log_directories(parts)
    offline = [each.path for each in directories if each.space is None]
    if offline:
        return f"log directories are offline: {', '.join(offline)}"
    rooms = await look.rooms(directories)
    return "; ".join(f"{path}: {room.want[:1].lower()}{room.want[1:]}" for path, room in rooms.items() if room.want)
