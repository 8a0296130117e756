"""The clocks of a broker or a cluster in a test: time passes for what has a limit, and for nobody who waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.control.clocks import advance
    from pykbroker.control.control import Control

    from .loop_thread import LoopThread
else:
    advance = LazyModule("pykbroker.control.clocks.advance")


class Controlled(Protocol):
    """A cluster that is open: its loop, and the control of each of its nodes."""

    def running_loop(self) -> LoopThread: ...

    @property
    def controls(self) -> Sequence[Control]: ...


class Clock:
    """The clocks of all nodes, one for each scope: retention, tombstones, transactions, producers, offsets, tokens and
    sessions.
    """

    def __init__(self, kafka: Controlled) -> None:
        self._kafka = kafka

    def advance(self, duration: str | timedelta, *, scope: str) -> None:
        """Let time pass in a scope, or in `all`, and return when what became due has happened.

        What is there is older by so much from then on; what comes later is not. Timestamps stay as they are. Raises
        BadDuration and UnknownScope, which are ValueErrors, and AdvanceNotDone, a TimeoutError, after 30 seconds.
        """
        self._kafka.running_loop().call(self._advance, duration, scope)

    async def _advance(self, duration: str | timedelta, scope: str) -> None:
        await advance.advance(self._kafka.controls, duration, scope)

    def advanced(self, scope: str) -> timedelta:
        """Return how much time was let pass in a scope, in all. Raises UnknownScope."""
        self._kafka.running_loop()
        return timedelta(milliseconds=self._kafka.controls[0].clocks.advanced_ms(scope))


class AsyncClock:
    """`Clock` for coroutines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def advance(self, duration: str | timedelta, *, scope: str) -> None:
        """Let time pass as `Clock.advance` does."""
        await self._clock._kafka.running_loop().call_async(self._clock._advance, duration, scope)

    def advanced(self, scope: str) -> timedelta:
        return self._clock.advanced(scope)
