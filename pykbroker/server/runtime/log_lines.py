"""The broker's log lines have their set-up for the command line, their escaping of what peers sent, and a bound on
repetition here.

A line is text, or an object of JSON (`json_lines`). Not here: which loggers there are, and their levels (`loggers`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Final, TextIO

from .clock import Clock
from .loggers import TRACE, set_level

TEXT: Final = "text"
JSON: Final = "json"

_SHOWN_CHARACTERS = 120


def write_log_to(
    stream: TextIO = sys.stderr,
    level: int = logging.INFO,
    *,
    style: str = TEXT,
    levels: Mapping[str, str] | None = None,
) -> None:
    """Send all log records to `stream`, one line each.

    style: TEXT or JSON. levels: Kafka's names of levels by logger, which come after `level`.
    """
    logging.addLevelName(TRACE, "TRACE")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_formatter(style))
    handler.addFilter(RepetitionFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, each in (levels or {}).items():
        set_level(name, each)


def _formatter(style: str) -> logging.Formatter:
    if style == JSON:
        from .json_lines import JsonFormatter

        return JsonFormatter()
    return logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")


def printable(text: str | bytes | None) -> str:
    """Return what a peer sent as one line of ASCII: no peer writes lines into the broker's log."""
    if text is None:
        return "none"
    shown = ascii(text)[1:-1] if isinstance(text, str) else ascii(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "..."


class RepetitionFilter(logging.Filter):
    """The filter lets so many lines of one statement of the program pass in each `period_ms`; the next one tells how
    many were left out.

    The filter stands behind all other bounds: whatever a client can cause at will, in whichever module, fills no disk.
    Errors that are no failed requests are of the node's own, each with another name in it, and get more room.
    """

    def __init__(self, *, limit: int = 30, limit_of_errors: int = 1_000, period_ms: int = 10_000) -> None:
        super().__init__()
        self._limit = limit
        self._limit_of_errors = limit_of_errors
        self._period_ms = period_ms
        self._counts: dict[tuple[str, int], tuple[float, int]] = {}
        """By module and line: when its period ends, and how many lines came in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        place, now_ms = (record.pathname, record.lineno), record.created * 1000
        end_ms, count = self._counts.get(place, (0.0, 0))
        limit = self._limit_of_errors if record.levelno >= logging.ERROR and not record.exc_info else self._limit
        if not now_ms < end_ms <= now_ms + self._period_ms:  # a clock that was set back begins anew as well
            left_out, end_ms, count = max(0, count - limit), now_ms + self._period_ms, 0
            if left_out:
                record.msg, record.args = f"{record.getMessage()} ({left_out} similar lines were left out before)", ()
        self._counts[place] = end_ms, count + 1
        return count < limit


class RateLimitedLog:
    """The log takes at most `limit` lines in each `period_ms`, and then one that says how many were left out."""

    def __init__(self, logger: logging.Logger, clock: Clock, *, limit: int = 10, period_ms: int = 10_000) -> None:
        self._logger = logger
        self._clock = clock
        self._limit = limit
        self._period_ms = period_ms
        self._period_end_ms = 0
        self._written = 0
        self._left_out = 0

    def warning(self, message: str, *arguments: object) -> None:
        self._write(logging.WARNING, message, arguments)

    def info(self, message: str, *arguments: object) -> None:
        if self._logger.isEnabledFor(logging.INFO):
            self._write(logging.INFO, message, arguments)

    def _write(self, level: int, message: str, arguments: tuple[object, ...]) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._period_end_ms:
            if self._left_out:
                self._logger.log(level, "%d similar lines were left out", self._left_out)
            self._period_end_ms = now_ms + self._period_ms
            self._written = self._left_out = 0
        if self._written >= self._limit:
            self._left_out += 1
            return
        self._written += 1
        self._logger.log(level, message, *arguments)
