"""Control of one node: what a test, or who asks over HTTP, may see of it and do to it.

A control outlives its node: it is there before the first start, through kills and starts, and behind the last end. What it
is in the way of, it puts into the environment that a start gets (`equip`). A node without control has nothing of this, and
pays nothing for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node

from .journal.journal import DEFAULT_BYTES, Journal
from .journal.journal_tap import JournalTap
from .savepoints.requests import Savepoints


class Control:
    """The control of a node. journal_bytes: the bound of its journal. now_ns: the wall clock."""

    def __init__(self, *, journal_bytes: int = DEFAULT_BYTES, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.journal = Journal(now_ns, journal_bytes)
        self.savepoints = Savepoints(lambda: self.node)
        self.node: Node | None = None
        """The node while it runs."""

    def equip(self, environment: Environment) -> Environment:
        """Return the environment for a start, with everything in it that control is in the way of."""
        return replace(environment, tap=JournalTap(self.journal))
