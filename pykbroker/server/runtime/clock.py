"""Time as a seam: the wall clock and the monotonic clock of one node.

Rules take `now_ms`; only code in `server` asks a clock. Waiting is `trio.sleep`, whose clock a simulation replaces too.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch: record timestamps and retention. It may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment: deadlines, sessions, elections. It never goes back."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
