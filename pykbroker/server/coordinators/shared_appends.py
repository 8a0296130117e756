"""Steps of a coordinator share an append: what arrives in one turn of the event loop is one batch.

A hundred consumers that commit at the same time cost one batch, one write and one look at the high watermark. Steps
that share a batch share its fate: all are in the log, or none is. Records of transactions, and steps with effects, do
not wait (`wants`).

The setting is Kafka's `group.coordinator.append.linger.ms`: -1 is the end of the turn, more waits for more. No answer
is late by that where nothing else is to be done: the turn ends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

import trio

from pykbroker.state_machine import Result

from ..runtime.signal import Signal

PlaceT = TypeVar("PlaceT", bound=Hashable)

AT_THE_END_OF_THE_TURN = -1
AT_ONCE = 0


class HeldStep(NamedTuple):
    """A held step waits for its append. now_ms: when it was made, by the monotonic clock. cause: the request that it
    was made for, or 0 (`runtime.causes`).
    """

    result: Result[Any]
    now_ms: int
    cause: int = 0


class SharedAppends(Generic[PlaceT]):
    """The steps are held by place, a place being a shard.

    append: appends what is held for a place, in the order in which it came, and takes it from here.
    """

    def __init__(self, linger_ms: int, append: Callable[[PlaceT], object]) -> None:
        self._linger_ms = linger_ms
        self._append = append
        self._held: dict[PlaceT, list[HeldStep]] = {}
        self._work = Signal()
        self._is_running = False

    def wants(self, place: PlaceT, step: HeldStep) -> bool:
        """Tell whether the step is to be held. What a producer has in a transaction is a batch of its own, and so is
        what is encoded already; effects do not wait for a turn; nor do answers that nothing was written for, unless the
        state that they tell of is still held.
        """
        result = step.result
        if not self._is_running or self._linger_ms == AT_ONCE:
            return False
        if result.producer is not None or result.effects or result.prepared:
            return False
        return bool(result.records) or place in self._held

    def hold(self, place: PlaceT, step: HeldStep) -> None:
        held = self._held.get(place)
        if held is not None:
            held.append(step)  # whoever was the first has said so
            return
        self._held[place] = [step]
        self._work.set()

    def take(self, place: PlaceT) -> list[HeldStep]:
        """Return what is held; it is the caller's from now on."""
        return self._held.pop(place, [])

    async def run(self) -> None:
        """Append what is held, turn by turn, until the surrounding scope is cancelled."""
        self._is_running = True
        try:
            while True:
                await self._work.wait()
                if self._linger_ms > AT_ONCE:
                    await trio.sleep(self._linger_ms / 1000)
                self._work.clear()
                for place in list(self._held):
                    self._append(place)
        finally:
            self._is_running = False
