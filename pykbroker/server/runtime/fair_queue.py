"""The fair queue gives places for work to many clients: the next free place goes to the client that has had the least
so far.

This is start-time fair queueing. `FairShare.used` of a client grows with what its work has cost. A client that was not
here for a while begins where the others are (`FairLevel`), so that nobody saves up a claim, and a client that connects
anew does not overtake those who have waited. Queues for the parts of one work share one level. Costs are counted and
not timed, so that a simulation with one seed has one order of events.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count

import trio


class FairShare:
    """The share is one client's account. A client waits in one place at a time, as a connection has one request in
    hand.
    """

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0.0


class FairLevel:
    """The level is what a client has had that was there all the time and always wanted something."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class FairQueue:
    """The queue hands out so many places. A client that has entered must leave."""

    def __init__(self, places: int, level: FairLevel) -> None:
        self._free = places
        self._level = level
        self._arrivals = count()
        self._waiting: list[tuple[float, int, trio.Event]] = []

    @property
    def has_free_place(self) -> bool:
        return bool(self._free)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def enter(self, client: FairShare) -> None:
        """Return with a place, at once where one is free."""
        client.used = max(client.used, self._level.value)
        if self._free:
            self._free -= 1
            return
        waiting = client.used, next(self._arrivals), trio.Event()
        heappush(self._waiting, waiting)
        try:
            await waiting[2].wait()
        except trio.Cancelled:
            if waiting[2].is_set():  # the place came between the cancellation and this
                self.leave(client, 0)
            else:
                self._waiting.remove(waiting)
                heapify(self._waiting)
            raise

    def leave(self, client: FairShare, cost: float) -> None:
        """Give the place back, to the client that waits for it."""
        client.used += cost
        self._level.value += cost / (len(self._waiting) + 1)
        if self._waiting:
            heappop(self._waiting)[2].set()
        else:
            self._free += 1
