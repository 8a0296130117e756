"""A handler that goes through what a request names takes turns on the event loop, and others have theirs in between.

Behind its first turn a request is a long one. Of all long requests of a listener one at a time has its turn, that of
the client that has had the least so far, and everybody else who is ready to run comes between two of them: with a
hundred long requests in hand nobody waits longer for a short one than with one. The same queue has those who receive or
send much, and those who have one small request right behind another; `Connection` and `Transport.send` ask for it
through the dispatcher. `tests/api/huge_requests.py` has one huge request for each API.

A turn is counted and not timed, so that a simulation with one seed has one order of events: a step is some work of
about a microsecond, and a turn is over after a thousand (`STEPS_PER_TURN`). After the end of a turn the world may have
changed: topics are gone, leaders are elsewhere. So a handler looks at them anew, entry by entry, and keeps nothing of
the node's state from one turn to the next.
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

STEPS_PER_TURN: Final = 1000
STEPS_IN_FIRST_TURN: Final = 500
"""Many requests may begin in one round of the loop."""

_TURNS_WITHOUT_WAITING: Final = 4
"""In one round of the loop: a few clients that send much would have to wait for each other with half of a frame."""

T = TypeVar("T")
HashableT = TypeVar("HashableT", bound=Hashable)
OrderedT = TypeVar("OrderedT", bound="SupportsRichComparison")


class _Rounds(trio.abc.Instrument):
    """The instrument counts the rounds of the running loop."""

    def __init__(self) -> None:
        self.number = 0

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1


_ROUNDS: Final = trio.lowlevel.RunVar[_Rounds]("rounds")


def _round() -> int:
    """Return the number of this round of the loop, in which each task that is ready to run has one step."""
    try:
        return _ROUNDS.get().number
    except LookupError:
        rounds = _Rounds()
        trio.lowlevel.add_instrument(rounds)
        _ROUNDS.set(rounds)
        return rounds.number


class LongRequests:
    """The long requests of one listener take turns here. A request that has to wait for its turn has the only one of
    its round of the loop.
    """

    def __init__(self) -> None:
        self._queue = FairQueue(1, FairLevel())
        self._round = -1
        self._turns = 0
        """Of this round."""

    async def next_turn(self, client: FairShare) -> None:
        """Return when it is this request's turn, in a later round of the loop."""
        await self._queue.enter(client)
        try:
            await trio.lowlevel.checkpoint()
            while not self._begins_turn(1):
                await trio.lowlevel.checkpoint()
        finally:
            self._queue.leave(client, STEPS_PER_TURN)

    def has_turn(self) -> bool:
        """Tell whether the caller may go on in this round: few have had a turn in it, and nobody waits for one."""
        return self._queue.has_free_place and self._begins_turn(_TURNS_WITHOUT_WAITING)

    def _begins_turn(self, most: int) -> bool:
        number = _round()
        if number != self._round:
            self._round, self._turns = number, 0
        self._turns += 1
        return self._turns <= most


class Turn:
    """A turn belongs to one request, and is followed by the request's next one.

    is_long: the request took more than one turn, so that its answer is a large one, too.
    """

    __slots__ = ("_client", "_others", "_steps_left", "is_long")

    def __init__(self, others: LongRequests | None = None, client: FairShare | None = None) -> None:
        self._others = others or LongRequests()
        self._client = client or FairShare()
        self._steps_left = STEPS_IN_FIRST_TURN
        self.is_long = False

    async def took(self, steps: int = 1) -> None:
        """Count so many steps as done, and return in the next turn where this one is over."""
        if self.ends_with(steps):
            await self.next()

    def ends_with(self, steps: int) -> bool:
        """Count so many steps as done, and tell whether `next` is to follow: for those who seldom have to wait."""
        self._steps_left -= steps
        return self._steps_left <= 0

    async def next(self) -> None:
        self._steps_left = STEPS_PER_TURN
        self.is_long = True
        await self._others.next_turn(self._client)

    async def through(self, work: Generator[int, None, T]) -> T:
        """Carry out the work, whose every yield says how many steps it took, and return what it comes to."""
        while True:
            try:
                steps = next(work)
            except StopIteration as done:
                result: T = done.value
                return result
            await self.took(steps)

    async def ordered(self, entries: Iterable[OrderedT]) -> Iterator[OrderedT]:
        """Sort the entries by the thousand, and merge them as far as somebody asks."""
        return await self.through(ordered(entries))

    async def distinct(self, entries: Iterable[HashableT]) -> dict[HashableT, None]:
        """Return the entries without repetition, in their order."""
        found: dict[HashableT, None] = {}
        for portion in portions(entries):
            found.update(dict.fromkeys(portion))
            await self.took(len(portion) // 5)
        return found
