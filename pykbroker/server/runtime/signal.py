"""A signal tells tasks that something has changed, again and again; the tasks look for themselves what it is.

One event loop runs all tasks, and a task gives it up at an `await` alone. So nothing is set between the look at a
condition and the wait behind it, and a signal needs no lock. Two kinds of tasks wait:

- The loop of a component, such as a driver, owns its signal and calls `wait`. A set that comes while the loop is at
  work is kept, and the next `wait` returns at once. Many sets before a `wait` are one.
- Callers that wait for a condition call `next` until it is true: `while not ready(): await changed.next()`.

What happens once (a node has stopped, a flush is done) is a `trio.Event`.
"""

from __future__ import annotations

import math

import trio


class Signal:
    """A signal wakes every task that waits for it, in no particular order.

    count: how often the signal was set. A caller that looks, works and then waits keeps the count of its look.
    """

    __slots__ = ("_taken", "_waiting", "count")

    def __init__(self) -> None:
        self.count = 0
        self._taken = 0
        self._waiting = trio.lowlevel.ParkingLot()

    def set(self) -> None:
        self.count += 1
        if self._waiting:
            self._waiting.unpark_all()

    def clear(self) -> None:
        """Forget the sets so far: the owner is about to look at everything that they may have been for."""
        self._taken = self.count

    async def wait(self, timeout_s: float = math.inf) -> None:
        """Return when the signal was set since the last `wait` or `clear`, or when the time is over.

        A cancelled wait takes nothing: the set is there for the next one.
        """
        if timeout_s == math.inf:
            await self.next(self._taken)
        else:
            with trio.move_on_after(timeout_s):
                await self.next(self._taken)
        self._taken = self.count

    async def next(self, since: int | None = None) -> None:
        """Return when the signal is set after this call, or was set after its count was `since`."""
        if since is None or since == self.count:
            await self._waiting.park()
        else:
            await trio.lowlevel.checkpoint()
