"""Places for the work of many clients. The next free place goes to the client that has had the least so far.

Start-time fair queueing: `FairShare.used` of a client grows with what its work has cost. A client that was not here for
a while begins where the others are (`FairLevel`), so that nobody saves up a claim, and whoever connects anew is not in
front of those who have waited. Queues for the parts of one work have one level. Costs are counted and not timed, so
that a simulation with one seed has one order of events.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count

import trio


class FairShare:
    """One client's account. A client waits in one place at a time, as a connection has one request in hand."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0.0


class FairLevel:
    """What a client has had that was there all the time and always wanted something."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class FairQueue:
    """So many places. Whoever has entered must leave."""

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
        """Returns with a place, at once where one is free."""
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
        """The place is free again, for whoever waits."""
        client.used += cost
        self._level.value += cost / (len(self._waiting) + 1)
        if self._waiting:
            heappop(self._waiting)[2].set()
        else:
            self._free += 1
