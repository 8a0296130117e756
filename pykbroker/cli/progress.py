"""A bar on the terminal for work that takes longer than a second; nothing is drawn elsewhere.

A timer draws the bar, so that a first step of a minute has one as well.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .output import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER_S: Final = 1.0
BESIDE_COUNTS: Final = "{task.completed:.0f}/{task.total:.0f}"
BESIDE_SHARE: Final = "{task.percentage:.0f} %"
_PORTION_BYTES: Final = 1 << 20


@contextmanager
def progress(what: str, total: int, beside: str = BESIDE_COUNTS) -> Iterator[Callable[..., None]]:
    """Yield a function that is told of every step, or of several at once. beside: as in `started_bar`."""
    if not is_terminal(sys.stderr):
        yield _ignore
        return
    bar = _Bar(what, total, beside, time.monotonic())
    try:
        yield bar.advance
    finally:
        bar.close()


def in_portions(advance: Callable[[int], None]) -> Callable[[int], None]:
    """Return what passes bytes on when there are many: a redraw for each line takes longer than its reading."""
    waiting = 0

    def add(size_bytes: int) -> None:
        nonlocal waiting
        waiting += size_bytes
        if waiting >= _PORTION_BYTES:
            advance(waiting)
            waiting = 0

    return add


class Stages:
    """The stages of a work whose parts cannot be counted: a bar names the one that is under way."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._since_s = time.monotonic()
        self._begun = 0
        self._bar: _Bar | None = None

    def begin(self, what: str) -> None:
        """Name the stage that begins; the one before has ended then."""
        if not is_terminal(sys.stderr):
            return
        if self._bar is None:
            self._bar = _Bar(what, self._total, BESIDE_COUNTS, self._since_s)
            self._bar.advance(self._begun)
        else:
            self._bar.advance(what=what)
        self._begun += 1

    @contextmanager
    def others_write(self, heading: str, then: str) -> Iterator[None]:
        """Mark a stage in which another process writes to the terminal: a heading stands above, and no bar below.

        then: the stage that follows.
        """
        if is_terminal(sys.stderr):
            self.close()
            print(heading, file=sys.stderr, flush=True)
            self._begun += 1
        yield
        self.begin(then)

    def close(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()


@contextmanager
def stages(total: int) -> Iterator[Stages]:
    """Yield the stages of a work, of which there are so many."""
    made = Stages(total)
    try:
        yield made
    finally:
        made.close()


class _Bar:
    def __init__(self, what: str, total: int, beside: str, since_s: float) -> None:
        self._what, self._total, self._beside = what, total, beside
        self._done = 0
        self._bar: Progress | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(max(0.0, since_s + SHOWN_AFTER_S - time.monotonic()), self._draw)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, steps: int = 1, *, what: str | None = None) -> None:
        """Count the steps. what: what is done from now on."""
        with self._lock:
            self._done += steps
            self._what = self._what if what is None else what
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=self._done, description=self._what)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_closed = True
            if self._bar is not None:
                self._bar.stop()

    def _draw(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._bar = started_bar(self._what, self._total, self._beside)
                self._bar.update(self._bar.task_ids[0], completed=self._done)


def started_bar(what: str, total: int, beside: str, *, draws_itself: bool = True) -> Progress:
    """Draw a bar on standard error. beside: the text beside it, with rich's fields of a task.

    draws_itself: False where the caller says when, and prints around the bar.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        *([TextColumn("{task.description}", markup=False)] if what else []),
        BarColumn(),
        TextColumn(beside),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=draws_itself,
        redirect_stdout=draws_itself and is_terminal(sys.stdout),  # what goes to a file would come out here
        redirect_stderr=draws_itself,
    )
    bar.add_task(what, total=total, state="")
    bar.start()
    return bar


def _ignore(steps: int = 1) -> None:
    del steps
