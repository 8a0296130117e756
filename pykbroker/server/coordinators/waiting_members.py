"""Waiting members have offered something in JoinGroups that wait; here all of a node count together.

A JoinGroup waits for the other members, for minutes perhaps, and what it offers is kept as long. Kafka has no bound but
that of one request. A member that comes with much where much is held already is to come again later; members that offer
little, as most do, always get in, since others wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..network.large_requests import LARGE_FRAME_BYTES

HELD_BYTES: Final = 64 << 20


class WaitingMembers:
    """The waiting members share a bound in bytes."""

    def __init__(self, limit_bytes: int = HELD_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0

    def has_room(self, size: int) -> bool:
        return size <= LARGE_FRAME_BYTES or self.held_bytes + size <= self.limit_bytes

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Count the offer as long as the JoinGroup waits."""
        self.held_bytes += size
        try:
            yield
        finally:
            self.held_bytes -= size
