"""A bar on the terminal beside work whose end is known, from the work's second second on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Advance = Callable[[int], None]
"""Called with how much is done; cheap enough to be called for every batch."""

SHOWN_AFTER_S = 1.0
REFRESHED_AFTER_S = 0.2


@contextmanager
def progress(total: int, unit: str) -> Iterator[Advance | None]:
    """Draw on standard error where that is a terminal and standard output, whose lines it would break, is none.

    None where nobody watches.
    """
    bar = _Bar(total, unit)
    try:
        yield bar.advance if _has_a_watcher() else None
    finally:
        bar.close()


def _has_a_watcher() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and not (sys.stdout is not None and sys.stdout.isatty())


class _Bar:
    def __init__(self, total: int, unit: str) -> None:
        self._total = total
        self._unit = unit
        self._drawn: Progress | None = None
        self._next_refresh = time.monotonic() + SHOWN_AFTER_S

    def advance(self, done: int) -> None:
        now = time.monotonic()
        if now < self._next_refresh:
            return
        self._next_refresh = now + REFRESHED_AFTER_S
        if self._drawn is None:
            self._drawn = _started(self._total, self._unit)
        self._drawn.update(self._drawn.task_ids[0], completed=min(done, self._total))
        self._drawn.refresh()

    def close(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def _started(total: int, unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )
    bar.add_task("", total=total)
    bar.start()
    return bar
