"""The checks of clients' batches that take longer than a turn: their turns on the event loop, and their threads.

In Python a thread that computes takes the interpreter's lock from the event loop, 5 ms at a time and at each system
call. So threads have what codecs do without that lock, and records are walked on the loop, a millisecond at a time: of
all checks one has a turn, then everybody else who is ready to run, then the next check. Places for what takes memory,
threads and turns are given to the client that has had the least so far (`fair_queue`).

A check ends at its next turn when its handler is cancelled, or its client has left; a thread ends its job first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.storage.validation import CheckedBatch, CheckSteps, Job

from .fair_queue import FairLevel, FairQueue, FairShare
from .threads import Threads

T = TypeVar("T")

_MEDIUM_PLACES = 4
_LARGE_PLACES = 1
_JOBS_AT_ONCE = 2
"""A loop that has to share the processors with more threads answers late."""

# In units of a turn.
_MEDIUM_COST = 10_000
_LARGE_COST = 80_000


class NobodyWaits(Exception):
    """Whoever wanted the check to be made is gone."""


class RecordChecks:
    """Those of one node."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        level = FairLevel()
        self._turns = FairQueue(1, level)
        self._jobs = FairQueue(_JOBS_AT_ONCE, level)
        self._medium = FairQueue(_MEDIUM_PLACES, level)
        self._large = FairQueue(_LARGE_PLACES, level)

    async def finish(
        self,
        step: Job | None,
        steps: CheckSteps,
        budget: CheckBudget,
        client: FairShare,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> CheckedBatch:
        """Go on with a check that has come to its first step. Raises `RecordsRejected`, `NobodyWaits`."""
        memory: FairQueue | None = None
        found: Job | CheckedBatch | None = step
        try:
            while not isinstance(found, CheckedBatch):
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

    async def _run(self, job: Job, steps: CheckSteps, client: FairShare) -> Callable[[], Job | None]:
        """How the check goes on behind its job."""
        await self._jobs.enter(client)
        try:
            result = await self._threads.run(job.run)
        except InvalidRecords as error:
            return partial(steps.throw, error)
        else:
            return partial(steps.send, result)
        finally:
            self._jobs.leave(client, _LARGE_COST if job.is_large else _MEDIUM_COST)

    async def _in_turn(self, work: Callable[[], T], budget: CheckBudget, client: FairShare) -> T:
        """What the work comes to that uses up the units of a new turn."""
        await self._turns.enter(client)
        budget.left = TURN_UNITS
        try:
            await trio.lowlevel.checkpoint()
            return work()
        finally:
            self._turns.leave(client, TURN_UNITS - budget.left)


def proceed(go_on: Callable[[], Job | None]) -> Job | CheckedBatch | None:
    """The check's next step, or what it has found."""
    try:
        return go_on()
    except StopIteration as end:
        checked: CheckedBatch = end.value
        return checked
