"""The event loop of a simulation: it must not turn for ever while virtual time stands.

NoStandstill: a task that wakes itself again and again, or two that wake each other, would let a run go on without an
end, since virtual time moves where all tasks wait. How long one step holds the loop is told by `tests.loops`, for every
test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from pykbroker.sim.determinism import virtual_time_s
from tests.replication.simulation.invariants import ensure

MOST_TURNS = 50_000
_NAMED_BEHIND = MOST_TURNS // 2


class Standstill(trio.abc.Instrument):
    """The instrument counts the loop's turns at one moment; with too many it cancels `scope`."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._now_s = -1.0
        self._turns = 0
        self._steps: Counter[str] = Counter()
        self.found = ""

    def before_io_wait(self, _timeout_s: float) -> None:
        now_s = virtual_time_s()
        if now_s != self._now_s:
            self._now_s, self._turns = now_s, 0
            self._steps.clear()
            return
        self._turns += 1
        if self._turns == MOST_TURNS:
            self.found = f"{MOST_TURNS} turns of the loop at {now_s:.3f}: {self._steps.most_common(3)}"
            self._scope.cancel()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        if self._turns > _NAMED_BEHIND:
            self._steps[task.name] += 1


@contextmanager
def moving() -> Iterator[None]:
    """Raises AssertionError where virtual time stands still for too long; what runs within is cancelled then."""
    with trio.CancelScope() as scope:
        standstill = Standstill(scope)
        trio.lowlevel.add_instrument(standstill)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(standstill)
            ensure(not standstill.found, "NoStandstill", standstill.found)
