"""A clock is a seam: it gives the wall clock and the monotonic clock of one node.

Rules take `now_ms`; only code in `server` asks a clock. Waiting is `trio.sleep`, whose clock a simulation replaces too.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A clock tells the time of one node. Simulations have clocks of their own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch: record timestamps and retention. It may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment: deadlines, sessions, elections. It never goes back."""
        ...


class SystemClock:
    """This clock reads the operating system's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
