"""When the garbage collector goes over everything: in a quiet moment, and not when an allocation happens to ask for it.

A full pass looks at every object of the process, and nothing runs meanwhile: a tenth of a second beside a few hundred
thousand objects. CPython has one whenever what is there has grown by a quarter, so requests with many entries would
have them several times a second. Nearly everything here is freed by its reference count, and cycles of objects that
live for a moment by the passes over new objects, which take a millisecond. What is left for a full pass can wait, so it
has a task: after some passes over new objects, when the loop has had little to do for a second, or when that did not
happen for ten minutes.

The settings belong to the whole process, so only a program that is nothing but a broker has this.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

_NEVER = 1 << 30
_LOOK_EVERY_S = 1.0
_LONGEST_POSTPONED_S = 600.0
_SHORTEST_BETWEEN_S = 30.0
_QUIET_SHARE = 0.1
"""Of the loop's time that tasks may take for a second to count as quiet."""
_PASSES_OF_NEW_OBJECTS = 10
"""So many passes over new objects leave something that a full pass might free: CPython's own number."""


@contextmanager
def no_full_collections() -> Iterator[None]:
    """What an allocation may set off is a pass over new objects."""
    thresholds = gc.get_threshold()
    gc.set_threshold(thresholds[0], thresholds[1], _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class FullCollections:
    """cpu_s: of the loop's thread. Times are those of a monotonic clock, in seconds."""

    def __init__(
        self,
        *,
        collect: Callable[[], object] = gc.collect,
        passes: Callable[[], int] = lambda: gc.get_count()[2],
        wall_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], Awaitable[None]] = trio.sleep,
    ) -> None:
        self._collect = collect
        self._passes = passes
        self._wall_s = wall_s
        self._cpu_s = cpu_s
        self._sleep = sleep

    async def run(self) -> None:
        """Collect when it is due, until the surrounding scope is cancelled."""
        collected_s = self._wall_s()
        while True:
            wall_s, cpu_s = self._wall_s(), self._cpu_s()
            await self._sleep(_LOOK_EVERY_S)
            share = (self._cpu_s() - cpu_s) / max(self._wall_s() - wall_s, _LOOK_EVERY_S)
            if self._is_due(self._wall_s() - collected_s, share):
                self._collect()
                collected_s = self._wall_s()

    def _is_due(self, since_s: float, busy_share: float) -> bool:
        if self._passes() < _PASSES_OF_NEW_OBJECTS or since_s < _SHORTEST_BETWEEN_S:
            return False
        return busy_share <= _QUIET_SHARE or since_s >= _LONGEST_POSTPONED_S
