"""A handler's turn on the event loop. Whoever goes through what a request names gives others their turn in between.

Behind its first turn a request is a long one. Of all long requests of a listener one at a time has its turn, that of
the client that has had the least so far, and everybody else who is ready to run comes between two of them: with a
hundred long requests in hand nobody waits longer for a short one than with one.

A turn is counted and not timed, so that a simulation with one seed has one order of events: a step is some work of
about a microsecond. After the end of a turn the world may have changed: topics are gone, leaders are elsewhere. So a
handler looks at them anew, entry by entry, and keeps nothing of the node's state from one turn to the next.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from pykbroker.long_work import PORTION as PORTION
from pykbroker.long_work import ordered
from pykbroker.long_work import portions as portions

from .fair_queue import FairLevel, FairQueue, FairShare

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

STEPS_PER_TURN: Final = 4000
STEPS_IN_FIRST_TURN: Final = 1000
"""Many requests may begin in one round of the loop."""

T = TypeVar("T")
HashableT = TypeVar("HashableT", bound=Hashable)
OrderedT = TypeVar("OrderedT", bound="SupportsRichComparison")


class LongRequests:
    """Those of one listener: whose turn it is."""

    def __init__(self) -> None:
        self._queue = FairQueue(1, FairLevel())

    async def next_turn(self, client: FairShare) -> None:
        """Returns when it is this request's turn. The one after it begins in a later round of the loop."""
        await self._queue.enter(client)
        try:
            await trio.lowlevel.checkpoint()
        finally:
            self._queue.leave(client, STEPS_PER_TURN)


class Turn:
    """One request's turns. is_long: it took more than one, so that its answer is a large one, too."""

    __slots__ = ("_client", "_others", "_steps", "_steps_left", "is_long")

    def __init__(
        self, others: LongRequests | None = None, client: FairShare | None = None, *, steps: int = STEPS_PER_TURN
    ) -> None:
        """steps: of each turn but the first."""
        self._others = others or LongRequests()
        self._client = client or FairShare()
        self._steps = steps
        self._steps_left = STEPS_IN_FIRST_TURN
        self.is_long = False

    async def took(self, steps: int = 1) -> None:
        """So many steps are done; returns in the next turn, where this one is over."""
        if self.ends_with(steps):
            await self.next()

    def ends_with(self, steps: int) -> bool:
        """So many steps are done. Whether `next` is to follow: for those who seldom have to wait."""
        self._steps_left -= steps
        return self._steps_left <= 0

    async def next(self) -> None:
        self._steps_left = self._steps
        self.is_long = True
        await self._others.next_turn(self._client)

    async def through(self, work: Generator[int, None, T]) -> T:
        """What the work comes to, whose every yield says how many steps it took."""
        while True:
            try:
                steps = next(work)
            except StopIteration as done:
                result: T = done.value
                return result
            await self.took(steps)

    async def ordered(self, entries: Iterable[OrderedT]) -> Iterator[OrderedT]:
        """The entries sorted by the thousand, and merged as far as somebody asks."""
        return await self.through(ordered(entries))

    async def distinct(self, entries: Iterable[HashableT]) -> dict[HashableT, None]:
        """The entries without repetition, in their order."""
        found: dict[HashableT, None] = {}
        for portion in portions(entries):
            found.update(dict.fromkeys(portion))
            await self.took(len(portion) // 5)
        return found
