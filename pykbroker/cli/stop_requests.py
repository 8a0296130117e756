"""Requests to stop this process count from the first moment on, before there is an event loop that could hear them.

The first asks for a clean stop, the second one does not wait for it. Signals ask, and the end of the parent
(`parent_watch`). What is going on is not interrupted, so that a directory that is being made is made, and then removed;
but for what says so itself (`interrupting`), such as imports, which are most of a start. The module imports nothing
that takes time, since a signal that comes before `listen` ends the process in its own way.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import trio

_LATER_S: Final = 0.001
"""After so long the callback in which Python dropped a SystemExit is over, as a rule; in another one it is dropped, and
raised later, again.
"""


class StopRequests:
    """Counts requests. `ask` may be called from any thread, and from handlers of signals."""

    def __init__(self) -> None:
        self.count = 0
        self.reason = ""
        """Why the process stops, where that is no signal."""
        self._token: trio.lowlevel.TrioToken | None = None
        self._changed: trio.Event | None = None
        self._interrupts = False
        self._is_waking = False

    def __bool__(self) -> bool:
        return self.count > 0

    def listen(self) -> None:
        """Take SIGINT, SIGTERM and SIGHUP from now on; the last one not where it is ignored, as `nohup` has it."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._on_signal)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Raise SystemExit, with code 0, in the body when a stop is asked for, or was before. In the main thread."""
        hook = sys.unraisablehook

        def raise_again(dropped: sys.UnraisableHookArgs) -> None:
            """Python drops what is raised in a callback of a weak reference, of which imports have one each."""
            if dropped.exc_type is SystemExit and self and not self._interrupts:
                self._interrupts = True
                _thread.start_new_thread(self._wake_later, ())  # here, too, it would be dropped
            else:
                hook(dropped)

        self._interrupts = True
        sys.unraisablehook = raise_again
        try:
            if self:
                raise SystemExit(0)
            yield
        finally:
            self._interrupts = False
            sys.unraisablehook = hook

    def ask(self, reason: str = "") -> None:
        self.reason = self.reason or reason
        self.count += 1
        if self._interrupts:
            self._wake()
        if self._token is not None:
            import trio

            try:
                self._token.run_sync_soon(self._tell)
            except trio.RunFinishedError:
                pass

    def _wake(self) -> None:
        """Have the main thread call `_on_signal`."""
        self._is_waking = True
        _thread.interrupt_main(signal.SIGTERM)

    def _wake_later(self) -> None:
        time.sleep(_LATER_S)
        if self._interrupts:  # else the body has ended meanwhile, and what runs now is not interrupted
            self._wake()

    async def asked(self, times: int) -> None:
        """Wait until there were so many requests in all. Only one task may wait."""
        import trio

        self._token = trio.lowlevel.current_trio_token()
        while True:
            self._changed = trio.Event()
            if self.count >= times:
                return
            await self._changed.wait()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The handler of all signals, in the main thread."""
        is_request, self._is_waking = not self._is_waking, False
        interrupts, self._interrupts = self._interrupts, False
        if is_request:
            self.ask()
        if interrupts:
            raise SystemExit(0)
