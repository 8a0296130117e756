"""A gate between a node and others: where it is closed nothing comes in and nothing goes out, and no connection breaks.

It is closed to clients, to other nodes, or to both. What was sent before, and what the system still takes in the node's
place (new connections among it), waits and goes through when the gate is open again, as after packets that were lost.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import trio

from pykbroker.server.runtime.signal import Signal


class Side(Enum):
    """A side is who may be at the other end of a connection."""

    CLIENTS = "clients"
    NODES = "nodes"


class Closable(Protocol):
    def close(self) -> None: ...


class Gate:
    """The gate of one node."""

    def __init__(self) -> None:
        self._closed_to: frozenset[Side] = frozenset()
        self._changed = Signal()
        self._lingering: list[tuple[Side, Closable]] = []

    def close_to(self, sides: frozenset[Side]) -> None:
        """Close the gate to these, and open it to others."""
        self._closed_to = sides
        left, self._lingering = self._lingering, []
        for side, connection in left:
            self.linger(side, connection)
        self._changed.set()

    def is_closed_to(self, side: Side) -> bool:
        return side in self._closed_to

    @property
    def is_closed(self) -> bool:
        """Tell whether it is closed to anybody."""
        return bool(self._closed_to)

    @property
    def is_closed_to_all(self) -> bool:
        return len(self._closed_to) == len(Side)

    async def changed(self) -> None:
        """Return when the gate was opened or closed, or a connection that may wait here was closed."""
        await self._changed.next()

    def wake(self) -> None:
        """Have those look again who wait here."""
        self._changed.set()

    async def until_open_to(self, side: Side) -> None:
        while side in self._closed_to:
            await self._changed.next()
        await trio.lowlevel.checkpoint_if_cancelled()

    def linger(self, side: Side, connection: Closable) -> None:
        """Close a connection: its peer hears of it when the gate is open."""
        if side in self._closed_to:
            self._lingering.append((side, connection))
        else:
            connection.close()
