"""A bar on the terminal for work that takes longer than a second; nothing is drawn elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .output import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER_S: Final = 1.0
_BESIDE: Final = "{task.completed:.0f}/{task.total:.0f}"


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[..., None]]:
    """Yield a function that is told of every step, or of several at once."""
    bar = _Bar(what, total)
    try:
        yield bar.advance if is_terminal(sys.stderr) else _ignore
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
            self._bar = started_bar(self._what, self._total, _BESIDE)
        self._bar.update(self._bar.task_ids[0], completed=self._done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def started_bar(what: str, total: int, beside: str, *, draws_itself: bool = True) -> Progress:
    """Draw a bar on standard error. beside: the text beside it, with rich's fields of a task.

    draws_itself: False where the caller says when, and prints around the bar.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        *([TextColumn("{task.description}")] if what else []),
        BarColumn(),
        TextColumn(beside),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=draws_itself,
        redirect_stdout=draws_itself,
        redirect_stderr=draws_itself,
    )
    bar.add_task(what, total=total, state="")
    bar.start()
    return bar


def _ignore(steps: int = 1) -> None:
    del steps
