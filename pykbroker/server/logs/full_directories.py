"""A log directory that takes no more gets one line when that begins, and one when it is over.

Nothing is decided by it. Each write is tried, and the disk accepts or refuses it; requests that read, or ask for
metadata, notice nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from pykbroker.storage.files.errors import NoRoom

from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog

_log = logging.getLogger(__name__)

_QUIET_MS = 1000
"""A small write may still fit where a large one did not: there is room when none was refused for so long."""


class Refused(NamedTuple):
    """The last write that a directory refused. reason: the operating system's, such as `No space left on device`."""

    ago_ms: int
    reason: str


class FullDirectories:
    """The set of full directories is false as long as there is none."""

    def __init__(self, clock: Clock) -> None:
        self._log = RateLimitedLog(_log, clock)
        self._clock = clock
        self._refused_ms: dict[str, int] = {}
        self._reasons: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._refused_ms)

    def refused(self, path: str, refusal: NoRoom) -> None:
        """A write in the directory found no room."""
        if path not in self._refused_ms:
            self._log.warning("log directory %s has no room, reading goes on: %s", path, refusal)
        self._refused_ms[path] = self._clock.monotonic_ms()
        self._reasons[path] = refusal.error.strerror or str(refusal.error)

    def written(self, path: str) -> None:
        """A write in the directory was possible."""
        refused_ms = self._refused_ms.get(path)
        if refused_ms is not None and self._clock.monotonic_ms() - refused_ms >= _QUIET_MS:
            del self._refused_ms[path], self._reasons[path]
            self._log.warning("log directory %s has room again", path)

    def refused_last(self) -> Mapping[str, Refused]:
        """Return what directories refused, those alone that have not been written to since."""
        now_ms = self._clock.monotonic_ms()
        return {path: Refused(now_ms - at_ms, self._reasons[path]) for path, at_ms in self._refused_ms.items()}
