"""The last log lines of each broker in this process, told apart by a context variable.

A broker's thread sets it; Trio's tasks and worker threads inherit it. While brokers run, the logger `pykbroker` keeps
lines from INFO on, and passes on to the program's own handlers only what they would have seen without that. A line that
was written while a request was handled has its number in the broker's journal, such as `#12`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.server.runtime import causes
else:
    causes = LazyModule("pykbroker.server.runtime.causes")

MOST_LINES: Final = 2_000
_LOGGER: Final = logging.getLogger("pykbroker")


class BrokerLog:
    """The last lines of one broker, `MOST_LINES` at most. name: of the broker."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._count = 0

    @property
    def count(self) -> int:
        """The number of lines so far: a mark for `lines`."""
        return self._count

    def lines(self, since: int = 0) -> list[str]:
        """Return the lines that came behind the mark and are still there."""
        lines = list(self._lines)
        return lines[max(0, len(lines) - (self._count - since)) :]

    def take_this_context(self) -> None:
        """Take the lines of the calling thread, and of what it starts."""
        _log_of_context.set(self)

    def add(self, line: str) -> None:
        self._count += 1
        self._lines.append(line)


_log_of_context: ContextVar[BrokerLog | None] = ContextVar("pykbroker_log", default=None)


class _Capture(logging.Handler):
    """The handler of the logger `pykbroker`, which is there as long as a broker runs."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(
            logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(name)s%(request)s %(message)s", "%H:%M:%S")
        )
        self._users = 0
        self._guard = threading.Lock()
        self._before = (logging.NOTSET, True)

    def emit(self, record: logging.LogRecord) -> None:
        log = _log_of_context.get()
        if log is not None:
            number = causes.current_cause()
            record.request = f" #{number}" if number else ""
            log.add(self.format(record))
        level, propagates = self._before
        root = logging.getLogger()
        if propagates and root.handlers and record.levelno >= (level or root.getEffectiveLevel()):
            root.handle(record)

    def begin(self) -> None:
        with self._guard:
            self._users += 1
            if self._users > 1:
                return
            self._before = _LOGGER.level, _LOGGER.propagate
            _LOGGER.setLevel(min(_LOGGER.getEffectiveLevel(), logging.INFO))
            _LOGGER.propagate = False
            _LOGGER.addHandler(self)

    def end(self) -> None:
        with self._guard:
            self._users -= 1
            if self._users:
                return
            _LOGGER.removeHandler(self)
            level, _LOGGER.propagate = self._before
            _LOGGER.setLevel(level)


_capture = _Capture()


def begin_capture() -> None:
    """Keep the lines of brokers; each call needs an `end_capture`."""
    _capture.begin()


def end_capture() -> None:
    _capture.end()
