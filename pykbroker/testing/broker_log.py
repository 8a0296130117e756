"""The last log lines of each broker in this process, told apart by a context variable.

A broker's thread sets it; Trio's tasks and worker threads inherit it. While brokers run, the logger `pykbroker` keeps
lines from INFO on, and leaves to the program's own handlers only what they would have seen without that. A line that
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
_LEVEL: Final = logging.INFO - 1
"""INFO, and told from a level that the program sets meanwhile."""
_FOR_NOBODY_ELSE: Final = -1
"""The level of a line that was kept, and that no handler takes which comes later."""
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
        self._before = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        log = _log_of_context.get()
        if log is not None:
            number = causes.current_cause()
            record.request = f" #{number}" if number else ""
            log.add(self.format(record))
        if record.levelno < self._level_of_the_program(record.name):
            record.levelno = _FOR_NOBODY_ELSE

    def _level_of_the_program(self, name: str) -> int:
        """Return from which level on lines of a logger would be seen without this handler."""
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            level = logger.level
            if logger is _LOGGER and level == _LEVEL:
                level = self._before
            if level:
                return level
            logger = logger.parent
        return logging.NOTSET

    def begin(self) -> None:
        with self._guard:
            self._users += 1
            if self._users > 1:
                return
            self._before = _LOGGER.level
            if _LOGGER.getEffectiveLevel() > _LEVEL:
                _LOGGER.setLevel(_LEVEL)
            _LOGGER.handlers.insert(0, self)  # before those that are to see less

    def end(self) -> None:
        with self._guard:
            self._users -= 1
            if self._users:
                return
            _LOGGER.removeHandler(self)
            if _LOGGER.level == _LEVEL:
                _LOGGER.setLevel(self._before)


_capture = _Capture()


def begin_capture() -> None:
    """Keep the lines of brokers; each call needs an `end_capture`."""
    _capture.begin()


def end_capture() -> None:
    _capture.end()
