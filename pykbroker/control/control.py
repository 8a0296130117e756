"""Control of one node: what a test, or who asks over HTTP, may see of it and do to it.

A control outlives its node: it is there before the first start, through kills and starts, and behind the last end.
What it is in the way of, it puts into the environment that a start gets (`equip`). A node without control has nothing
of this, and pays nothing for it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node, NodeReady
from pykbroker.server.runtime.causes import witness

from .audit.audit import Audit
from .clocks.clocks import Advances, Clocks
from .faults.faults import Faults
from .journal.exchange import Event
from .journal.journal import Journal
from .journal.journal_tap import JournalTap
from .journal.log_watch import LogWatch
from .nodes.mishaps import Mishaps
from .savepoints.requests import Savepoints

if TYPE_CHECKING:
    from .journal.requests import JournalRequests
    from .savepoints.node_copy import Rewind


class Control:
    """The control of a node. journal: None where nothing is to be recorded. audit: one that is shared by nodes."""

    def __init__(self, journal: Journal | None = None, audit: Audit | None = None) -> None:
        self.journal = journal
        self.faults: Final = Faults()
        self.audit = audit or Audit(lambda: [] if self.node is None else [self.node], self.now_ms)
        self.clocks = Clocks()
        self.savepoints = Savepoints(lambda: self.node)
        self.node: Node | None = None
        """The node while it runs."""
        self.mishaps = Mishaps(lambda: self.node)
        self._watch: LogWatch | None = None
        self.ready: NodeReady | None = None
        """Where it serves, since it does."""

    @cached_property
    def journal_requests(self) -> JournalRequests:
        """The journal, as other programs ask it."""
        from .journal.requests import JournalRequests

        return JournalRequests([] if self.journal is None else [self.journal])

    def rewind_to(self, number: int) -> Rewind:
        """Return what cuts a copy of the node back to where it was when an entry of the journal had ended. Raises
        PointLost, SavepointRefused.
        """
        from .replay.points import point_of
        from .replay.rewinding import rewind_copy
        from .savepoints.node_cut import parts_of

        parts, _ = parts_of(self.node)
        return rewind_copy(point_of(self.journal, number), parts.node.node_id, self.now_ms())

    def advances_at(self, number: int | None) -> Advances:
        """Return the advances of the clocks by now, or by when an entry of the journal had ended."""
        entries = [] if self.journal is None or number is None else self.journal.entries(number - 1)[:1]
        ended_ns = [each.at_ns if isinstance(each, Event) else each.answered_ns for each in entries]
        return self.clocks.advances_until(ended_ns[0] // 1_000_000 if ended_ns else self.now_ms() + 1)

    def node_ended(self) -> None:
        """Let go of a node that has ended, and of its logs."""
        self.node = self.ready = None
        if self._watch is not None:
            self._watch.let_go()

    def now_ms(self) -> int:
        """Return the time by the wall clock."""
        return time.time_ns() // 1_000_000

    @property
    def answers(self) -> bool:
        """Tell whether the node runs, and is neither paused nor cut off."""
        return self.mishaps.answers

    def equip(self, environment: Environment) -> Environment:
        """Return the environment for a start, with everything in it that control is in the way of.

        To be called by the task that starts the node: what state machines tell comes by a context variable.
        """
        environment = self.mishaps.equip(replace(environment, time=self.clocks.scopes(), notes_fetches=True))
        environment = self.faults.equip(environment, lambda: self.node)
        environment = replace(environment, tap=self.audit.tap(environment.tap))  # which sees what clients see
        if self.journal is None:
            return environment
        if self._watch is None or self._watch.disk is not self.mishaps.disk:
            self._watch = LogWatch(lambda: self.node, self.mishaps.disk)
        self._watch.look_at_all()  # a start has other logs, and what was not flushed may be missing
        tap = JournalTap(self.journal, lambda: self.node, environment.tap, self._watch)
        witness.set(tap.witness)
        return replace(environment, tap=tap)
