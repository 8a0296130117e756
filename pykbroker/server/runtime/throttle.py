"""A throttle limits the bytes per second of work that runs in threads (Kafka's `Throttler`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LONGEST_SLEEP_S = 0.1
_LEAST_BYTES_PER_SECOND = 1e-9
"""A limit of nothing, or less, lets no byte through until there is another limit."""


class Throttle:
    """The throttle is shared by all threads whose work counts together. It knows the time of its thread, not that of a
    simulation.
    """

    def __init__(
        self,
        bytes_per_second: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = max(bytes_per_second, _LEAST_BYTES_PER_SECOND)
        self._changes = 0
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_s = 0.0

    def configure(self, bytes_per_second: float) -> None:
        """Go on with another limit, which counts for those that wait, too: their bytes stay, and their time changes."""
        with self._lock:
            before, self._bytes_per_second = self._bytes_per_second, max(bytes_per_second, _LEAST_BYTES_PER_SECOND)
            now_s = self._monotonic()
            left_s = self._free_s - now_s
            owed_bytes = left_s * before if left_s > 0 else 0.0
            self._free_s = now_s + owed_bytes / self._bytes_per_second
            self._changes += 1

    def wait(self, size: int, give_up: Callable[[], bool]) -> None:
        """Sleep until the bytes so far are within the limit, or `give_up` says that nobody needs the work any more."""
        with self._lock:
            self._free_s = max(self._free_s, self._monotonic()) + size / self._bytes_per_second
            free_s, changes = self._free_s, self._changes
        while (left_s := free_s - self._monotonic()) > 0 and not give_up():
            self._sleep(min(left_s, _LONGEST_SLEEP_S))
            if changes != self._changes:
                with self._lock:
                    free_s, changes = self._free_s, self._changes
