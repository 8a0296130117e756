"""Functions that take turns with the event loop, as those in real threads do, but where a simulation wants it.

An `InterleavedCall` runs a function in a greenlet. It stops where the function comes to a file operation (`hand_over`),
and everything else goes on until its next `step`. Between two stops nothing else runs. As in a real thread, Trio is out
of reach, and context variables are a copy. The package greenlet comes with the extra `test`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, Generic, TypeVar

from greenlet import greenlet

from .determinism import away_from_trio, back_in_trio

T = TypeVar("T")


_SHORTEST_WAIT_S = 0.00005


class LoopWaits(AssertionError):
    """The event loop waits for what a thread holds across file operations: it would stand still as long as the disk."""


class InterleavedCall(Generic[T]):
    """One call. draw_s: for how many seconds it stands still where it may stop; None where it goes on at once."""

    def __init__(self, function: Callable[[], T], draw_s: Callable[[], float | None]) -> None:
        self._function = function
        self._draw_s = draw_s
        self._stop_s = 0.0
        self._result: T
        context = copy_context()
        context.run(_call.set, self)
        self._greenlet: Any = greenlet(self._run)
        self._greenlet.gr_context = context

    def _run(self) -> None:
        self._result = self._function()

    def step(self) -> float | None:
        """Run to the next stop. Returns how many seconds that lasts, None at the end. Raises what the function does."""
        is_over = True
        try:
            with away_from_trio():
                self._greenlet.switch()
            is_over = self._greenlet.dead
        finally:
            if is_over:
                # What the function held is to be gone with it: files close when nobody knows of them any more.
                del self._greenlet, self._function
        return None if is_over else self._stop_s

    @property
    def result(self) -> T:
        return self._result

    def hand_over(self, *, waits: bool) -> None:
        """Let others go on. waits: one of them has what this one needs."""
        stop_s = self._draw_s()
        if waits:
            stop_s = max(stop_s or 0, _SHORTEST_WAIT_S)
        if stop_s is not None:
            self._stop_s = stop_s
            loop = self._greenlet.parent
            assert loop is not None
            loop.switch()


_call: ContextVar[InterleavedCall[Any] | None] = ContextVar("call", default=None)


def hand_over(*, waits: bool = False) -> None:
    """Let others go on, where this is an interleaved call; elsewhere nothing happens."""
    call = _call.get()
    if call is not None:
        call.hand_over(waits=waits)


def on_the_loop(function: Callable[[], object]) -> None:
    """Call a function of the simulated world as from the event loop, whoever calls."""
    if _call.get() is None:
        function()
    else:
        with back_in_trio():
            function()


class InterleavedTurn:
    """A turn for one at a time. Interleaved calls wait for it; the event loop must not have to.

    hand_over: called in front of each attempt to have it.
    """

    def __init__(self, hand_over: Callable[..., None] = hand_over) -> None:
        self._hand_over = hand_over
        self._lock = threading.Lock()
        self._call: InterleavedCall[Any] | None = None

    def __enter__(self) -> bool:
        self._hand_over()
        call = _call.get()
        while not self._lock.acquire(blocking=False):
            if call is not None:
                self._hand_over(waits=True)
            elif self._call is not None:
                raise LoopWaits("the event loop waits for a turn that a thread has")
            else:  # real threads
                self._lock.acquire()
                break
        self._call = call
        return True

    def __exit__(self, *exception: object) -> None:
        self._call = None
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()
