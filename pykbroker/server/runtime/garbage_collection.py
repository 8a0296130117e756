"""The garbage collector goes over new objects while a broker serves, and over everything in quiet moments.

A pass looks at each object of the generations that it is about, and nothing runs meanwhile: ten milliseconds beside
70,000 objects. CPython has a full pass whenever what is there has grown by a quarter, so requests with many entries
would have one of a tenth of a second several times a second. Nearly everything here is freed by its reference count,
and cycles of objects that live for a moment by the passes over the two young generations.

So an allocation sets off no full pass. Nor does what a round of the loop has in hand, such as fifty requests whose
answers wait for an append, set off passes over the youngest objects, which are all alive, and gone as soon as they are
answered (`passes_between_rounds`). What outlives the young generations is looked at once, as long as that is
little, and then frozen: later passes leave it out. A real full pass, over what was frozen too, has time. It comes ten
minutes after the last one, or later, when the loop has little to do, and after an hour in any case.

The settings belong to the whole process, so only a program that is nothing but a broker has this: `pykbroker start`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import trio

_YOUNGEST = 2_500
"""So many more objects than before set off a pass over the youngest."""
_PASSES_TO_MIDDLE = 1
"""So many passes over the youngest alone come before one over the middle generation, too: CPython's own bounds have the
middle generation looked at as often.
"""
_NEVER = 1 << 30
_LOOK_EVERY_S = 0.2
_FULL_PASS_AFTER_S = 600.0
_FULL_PASS_BY_S = 3600.0
_QUIET_SHARE = 0.1
"""Of the loop's time that tasks may take between two looks for that to count as quiet."""
_WORTH_A_PASS = 5
"""Collections of the middle generation, of up to 7,000 survivors each."""
_TOO_MANY_FOR_A_PASS = 10


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Let allocations set off passes over the young generations only."""
    thresholds = gc.get_threshold()
    gc.set_threshold(thresholds[0], thresholds[1], _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def passes_between_rounds() -> Iterator[None]:
    """Let a round of the loop make its objects without a pass over them."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_YOUNGEST, _PASSES_TO_MIDDLE, thresholds[2])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class Collector(Protocol):
    """The collector is the module `gc`, or what a test has in its place."""

    def collect(self) -> int: ...
    def freeze(self) -> None: ...
    def unfreeze(self) -> None: ...
    def get_count(self) -> tuple[int, int, int]: ...


class GarbageCollection:
    """The garbage collection decides when a pass over older objects comes.

    cpu_s: the CPU time of the loop's thread. Times are those of a monotonic clock, in seconds.
    """

    def __init__(
        self,
        collector: Collector = gc,
        *,
        wall_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], Awaitable[None]] = trio.sleep,
    ) -> None:
        self._collector = collector
        self._wall_s = wall_s
        self._cpu_s = cpu_s
        self._sleep = sleep
        self._frozen_since_full_pass = 0

    async def run(self) -> None:
        """Look again and again, until the surrounding scope is cancelled."""
        full_pass_s = self._wall_s()
        while True:
            wall_s, cpu_s = self._wall_s(), self._cpu_s()
            await self._sleep(_LOOK_EVERY_S)
            busy_share = (self._cpu_s() - cpu_s) / max(self._wall_s() - wall_s, _LOOK_EVERY_S)
            if self._is_full_pass_due(self._wall_s() - full_pass_s, busy_share):
                self._collect_everything()
                full_pass_s = self._wall_s()
            else:
                self._collect_new()

    def _collect_new(self) -> None:
        """Look at new objects, unless they are very many: then they belong to what the broker has taken up, such as
        partitions.
        """
        collections = self._collector.get_count()[2]
        if collections < _WORTH_A_PASS:
            return
        self._frozen_since_full_pass += collections
        if collections <= _TOO_MANY_FOR_A_PASS:
            self._collector.collect()
        self._collector.freeze()

    def _is_full_pass_due(self, since_s: float, busy_share: float) -> bool:
        if not self._frozen_since_full_pass or since_s < _FULL_PASS_AFTER_S:
            return False
        return busy_share <= _QUIET_SHARE or since_s >= _FULL_PASS_BY_S

    def _collect_everything(self) -> None:
        self._collector.unfreeze()
        self._collector.collect()
        self._collector.freeze()
        self._frozen_since_full_pass = 0
