"""Links between two hosts: one for each direction, which may be cut, slow or lossy.

The faults are those that TCP lets a program see. A lost packet is sent again, so bytes come late and never go missing.
Over a link that is cut nothing arrives and nobody is told; what was under way arrives some time after it is mended.
"""

from __future__ import annotations

import random
from typing import Protocol

import trio

_FIRST_RETRANSMISSION_S = 0.2
_LONGEST_RETRANSMISSION_S = 10.0


class LinkUser(Protocol):
    """A connection's bytes in one direction."""

    @property
    def is_over(self) -> bool: ...

    def stall(self) -> None:
        """The link is cut: what has not arrived does not."""
        ...

    def resume(self, silence_s: float) -> None:
        """The link is there again after so long."""
        ...


class Link:
    """The link from one host to another. `set_cut` alone changes `is_cut`."""

    def __init__(self, rng: random.Random, longest_delay_s: float) -> None:
        self._rng = rng
        self._longest_delay_s = longest_delay_s
        self._users: list[LinkUser] = []
        self._cut_since = 0.0
        self.is_cut = False
        self.mended = trio.lowlevel.ParkingLot()
        self.added_delay_s = 0.0
        self.loss = 0.0
        """The share of packets that have to be sent again."""

    def use(self, user: LinkUser) -> None:
        self._users = [each for each in self._users if not each.is_over] + [user]

    def set_cut(self, is_cut: bool) -> None:
        if is_cut == self.is_cut:
            return
        self.is_cut = is_cut
        if is_cut:
            self._cut_since = trio.current_time()
            for user in self._users:
                user.stall()
        else:
            for user in self._users:
                user.resume(trio.current_time() - self._cut_since)
            self.mended.unpark_all()

    def delay_s(self) -> float:
        """Return how long a packet takes that is sent now."""
        delay = self.added_delay_s + self._rng.uniform(0, self._longest_delay_s)
        if self.loss:
            wait = _FIRST_RETRANSMISSION_S
            while self._rng.random() < self.loss and wait < _LONGEST_RETRANSMISSION_S:
                delay += wait
                wait *= 2
        return delay

    def delay_after_silence_s(self, silence_s: float) -> float:
        """Each retransmission waits twice as long as the one before: the next one is as far off as the first is old."""
        return self.delay_s() + self._rng.uniform(0, min(silence_s, _LONGEST_RETRANSMISSION_S))
