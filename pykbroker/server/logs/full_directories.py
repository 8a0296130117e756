"""A log directory that takes no more gets one line when that begins, and one when it is over.

Nothing is decided by it. Each write is tried, and the disk accepts or refuses it; requests that read, or ask for
metadata, notice nothing.
"""

from __future__ import annotations

import logging

from pykbroker.storage.files.errors import NoRoom

from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog

_log = logging.getLogger(__name__)

_QUIET_MS = 1000
"""A small write may still fit where a large one did not: there is room when none was refused for so long."""


class FullDirectories:
    """The set of full directories is false as long as there is none."""

    def __init__(self, clock: Clock) -> None:
        self._log = RateLimitedLog(_log, clock)
        self._clock = clock
        self._refused_ms: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._refused_ms)

    def refused(self, path: str, refusal: NoRoom) -> None:
        """A write in the directory found no room."""
        if path not in self._refused_ms:
            self._log.warning("log directory %s has no room, reading goes on: %s", path, refusal)
        self._refused_ms[path] = self._clock.monotonic_ms()

    def written(self, path: str) -> None:
        """A write in the directory was possible."""
        refused_ms = self._refused_ms.get(path)
        if refused_ms is not None and self._clock.monotonic_ms() - refused_ms >= _QUIET_MS:
            del self._refused_ms[path]
            self._log.warning("log directory %s has room again", path)
