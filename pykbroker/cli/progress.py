"""A bar on the terminal for work that takes longer than a second; nothing is drawn elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER_S: Final = 1.0


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[..., None]]:
    """Yield a function that is told of every step, or of several at once."""
    bar = _Bar(what, total)
    try:
        yield bar.advance if sys.stderr.isatty() else _ignore
    finally:
        bar.close()


class _Bar:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._begun = time.monotonic()
        self._done = 0
        self._bar: Progress | None = None

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        if self._bar is None:
            if time.monotonic() - self._begun < SHOWN_AFTER_S:
                return
            self._bar = _started(self._what, self._total)
        self._bar.update(self._bar.task_ids[0], completed=self._done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _started(what: str, total: int) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar


def _ignore(steps: int = 1) -> None:
    del steps
