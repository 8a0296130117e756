"""A clocked node is what an advance asks of a node's control."""

from __future__ import annotations

from typing import Protocol

from pykbroker.server.node.node import Node

from .clocks import Clocks


class ClockedNode(Protocol):
    """A node with its clocks, whether or not it runs.

    node: while it does. answers: whether it does, and is neither paused nor cut off.
    """

    clocks: Clocks
    node: Node | None

    @property
    def answers(self) -> bool: ...

    def now_ms(self) -> int: ...
