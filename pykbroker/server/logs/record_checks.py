"""Record checks are work on records that takes longer than a turn (`storage.files.steps`); it has turns on the event
loop, and threads.

Checks of clients' batches are such work, and lookups of timestamps.

In Python a thread that computes takes the interpreter's lock from the event loop, 5 ms at a time and at each system
call. So threads have what codecs do without that lock, and records are walked on the loop, a millisecond at a time: of
all checks one has a turn, then everybody else who is ready to run, then the next check. Places for what takes memory,
threads and turns are given to the client that has had the least so far (`fair_queue`).

A check ends at its next turn when its handler is cancelled, or its client has left; a thread ends its job first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import trio

from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget
from pykbroker.storage.files.steps import JOB_FAILURES, Job, Steps

from ..runtime.fair_queue import FairLevel, FairQueue, FairShare
from ..runtime.threads import Threads

T = TypeVar("T")

_MEDIUM_PLACES = 4
_LARGE_PLACES = 1
_JOBS_AT_ONCE = 2
"""A loop that has to share the processors with more threads answers late."""

# In units of a turn.
_MEDIUM_COST = 10_000
_LARGE_COST = 80_000


class NobodyWaits(Exception):
    """The client that wanted the check to be made is gone."""


class RecordChecks:
    """The checks of one node, of one kind. beside: another kind, with which turns are shared, and nothing else."""

    def __init__(self, threads: Threads, *, beside: RecordChecks | None = None) -> None:
        self._threads = threads
        self._level: FairLevel = FairLevel() if beside is None else beside._level
        level = self._level
        self._turns: FairQueue = FairQueue(1, level) if beside is None else beside._turns
        self._jobs = FairQueue(_JOBS_AT_ONCE, level)
        self._medium = FairQueue(_MEDIUM_PLACES, level)
        self._large = FairQueue(_LARGE_PLACES, level)

    async def finish(
        self,
        step: Job | None,
        steps: Steps[T],
        budget: CheckBudget,
        client: FairShare,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> T:
        """Go on with work that has come to its first step. Raises what the work does, and `NobodyWaits`."""
        memory: FairQueue | None = None
        found: Job | T | None = step
        try:
            while found is None or isinstance(found, Job):
                go_on: Callable[[], Job | None] = partial(next, steps)
                if found is not None:
                    wanted = self._large if found.is_large else self._medium
                    if memory is not wanted:
                        if memory is not None:
                            memory.leave(client, 0)
                        memory = None
                        await wanted.enter(client)
                        memory = wanted
                    go_on = await self._run(found, steps, client)
                found = await self._in_turn(partial(proceed, go_on), budget, client)
                if not is_wanted():
                    raise NobodyWaits
            return found
        finally:
            steps.close()
            if memory is not None:
                memory.leave(client, 0)

    async def _run(self, job: Job, steps: Steps[T], client: FairShare) -> Callable[[], Job | None]:
        """Go on with the check behind its job."""
        await self._jobs.enter(client)
        try:
            result = await self._threads.run(job.run)
        except JOB_FAILURES as error:
            return partial(steps.throw, error)
        else:
            return partial(steps.send, result)
        finally:
            self._jobs.leave(client, _LARGE_COST if job.is_large else _MEDIUM_COST)

    async def _in_turn(self, work: Callable[[], T], budget: CheckBudget, client: FairShare) -> T:
        """Use up the units of a new turn, and return what the work comes to."""
        await self._turns.enter(client)
        budget.left = TURN_UNITS
        try:
            await trio.lowlevel.checkpoint()
            return work()
        finally:
            self._turns.leave(client, TURN_UNITS - budget.left)


def proceed(go_on: Callable[[], Job | None]) -> Any:
    """The work's next step, or what it comes to."""
    try:
        return go_on()
    except StopIteration as end:
        return end.value
