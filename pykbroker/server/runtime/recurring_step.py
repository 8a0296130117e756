"""A recurring step is made again and again, at an interval, and at once for whoever cannot wait for that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .signal import Signal


class RecurringStep:
    """The step, and who waits for it."""

    def __init__(self, step: Callable[[], Awaitable[None]]) -> None:
        self._step = step
        self._wanted = Signal()
        self._made = Signal()
        self._begun = 0
        self._has_ended = False

    async def run(self, first_s: float, interval_s: float) -> None:
        """Make the step until cancelled; for the first time after `first_s`."""
        try:
            await self._wanted.wait(first_s)
            while True:
                self._begun += 1
                await self._step()
                self._made.set()
                await self._wanted.wait(interval_s)
        finally:
            self._has_ended = True
            self._made.set()

    async def at_once(self) -> None:
        """Return when a step is done that has begun after this call, or when there will be no more of them."""
        due = self._begun + 1
        while self._made.count < due and not self._has_ended:
            if self._begun < due:
                self._wanted.set()
            await self._made.next()
