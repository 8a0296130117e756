"""A bar on the terminal while a starting node opens its logs; elsewhere the node's own log tells."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from .progress import started_bar

if TYPE_CHECKING:
    from rich.progress import Progress

    from pykbroker.server.logs.log_loading import LoadProgress, OnLoading


class LoadingBar:
    """Called with every progress; drawn from the first call to the one that says that it is done."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def __call__(self, progress: LoadProgress) -> None:
        if progress.is_done:
            self.close()
            return
        if self._bar is None:
            self._bar = _started_bar()
        self._bar.update(
            self._bar.task_ids[0],
            total=progress.bytes_to_check or progress.logs,
            completed=progress.bytes_checked if progress.bytes_to_check else progress.logs_opened,
            state=str(progress),
            refresh=True,
        )

    def close(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()
            _move_log_to(sys.stderr)


def _started_bar() -> Progress:
    bar = started_bar("", 0, "{task.fields[state]}")
    _move_log_to(sys.stderr)  # now a stand-in that writes above the bar
    return bar


def _move_log_to(stream: TextIO) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)


@contextmanager
def loading_bar(stream: TextIO | None) -> Iterator[OnLoading | None]:
    """Return None where nobody watches the stream, which is standard error, or where that is closed."""
    if stream is None or not stream.isatty():
        yield None
        return
    bar = LoadingBar()
    try:
        yield bar
    finally:
        bar.close()
