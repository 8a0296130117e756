"""`pykbroker top` on a terminal: another screen, redrawn at each look, at each key and when its size changes."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

import trio
from rich.console import Console
from rich.live import Live
from rich.text import Text

from .command import CommandFailed
from .output import stdout_is_terminal
from .top_keys import keys, single_keys
from .top_screen import Choice, SortKey, screen_lines
from .top_text import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_SORT_KEYS = {each.value: each for each in SortKey}
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1}
_PAGES = {"page up": -1, "page down": 1, " ": 1}


class LiveScreen:
    """A screen with the newest snapshot, until `q` or a signal."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._console = Console()
        self._choice = Choice()
        self._snapshot: Snapshot | None = None
        self._live: Live | None = None

    async def run(self, snapshots: AsyncGenerator[Snapshot, None]) -> None:
        """Return at `q`, and when there are no more snapshots. Raises CommandFailed when the terminal is gone."""
        with single_keys() as keyboard, self._screen(), trio.open_signal_receiver(signal.SIGWINCH) as resized:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._redraw_at, resized)
                if keyboard is not None:
                    nursery.start_soon(self._take_keys, keyboard, nursery.cancel_scope)
                async with aclosing(snapshots):
                    async for snapshot in snapshots:
                        if not stdout_is_terminal():
                            break
                        self._snapshot = snapshot
                        self._draw()
                nursery.cancel_scope.cancel()
        if not stdout_is_terminal():
            raise CommandFailed("The terminal is gone")

    def _screen(self) -> Live:
        self._live = Live(
            Text("looking at the cluster ..."),
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        return self._live

    async def _redraw_at(self, signals: AsyncIterator[int]) -> None:
        async for _ in signals:
            self._draw()

    async def _take_keys(self, keyboard: int, scope: trio.CancelScope) -> None:
        async for key in keys(keyboard):
            if key in ("q", "Q"):
                break
            self._choose(key)
            self._draw()
        scope.cancel()

    def _choose(self, key: str) -> None:
        topics = 0 if self._snapshot is None else len(self._snapshot.view.topics)
        if key in _SORT_KEYS:
            self._choice = self._choice.sorted_by(_SORT_KEYS[key])
        elif key in _STEPS:
            self._choice = self._choice.scrolled(_STEPS[key], topics)
        elif key in _PAGES:
            self._choice = self._choice.scrolled(_PAGES[key] * max(1, self._console.height // 2), topics)

    def _draw(self) -> None:
        if self._snapshot is None or self._live is None:
            return
        width, height = self._console.size
        lines = screen_lines(self._snapshot, self._choice, width, height, self._interval_s)
        self._live.update(Text("\n").join(lines), refresh=True)
