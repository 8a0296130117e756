"""The clocks of a simulated node. Virtual time is Trio's own (`MockClock`): where all tasks wait, it jumps."""

from __future__ import annotations

from .determinism import virtual_time_s

EPOCH_MS = 1_700_000_000_000


class SimulatedClock:
    """A clock of a node, which runs with Trio's clock, or apart from it and at another rate, as machines' clocks do.

    Trio's own sleeps keep the true time: a node with a slow clock wakes too early, and one with a fast clock too late.
    """

    def __init__(self, wall_offset_ms: int = EPOCH_MS, *, rate: float = 1.0) -> None:
        self._wall_offset_ms = wall_offset_ms
        self._rate = rate

    def now_ms(self) -> int:
        return self.monotonic_ms() + self._wall_offset_ms

    def monotonic_ms(self) -> int:
        return round(virtual_time_s() * 1000 * self._rate)

    def step_wall_ms(self, step_ms: int) -> None:
        """Set the wall clock, as an operator does: timestamps and retention see it, deadlines do not."""
        self._wall_offset_ms += step_ms
