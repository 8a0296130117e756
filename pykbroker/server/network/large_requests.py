"""A request of many entries is unpacked when there is room for its objects.

An entry of five bytes becomes an object of two hundred. A handler that takes turns keeps these objects while others
have theirs, so a hundred connections with such requests would take gigabytes. So large requests of one API are in hand
up to a total size, and the next ones wait in their order, as the bytes that they came as.

A request above 16 KiB (`LARGE_FRAME_BYTES`) is large, and is unpacked in a thread. So is its answer packed, and that of
a handler that took several turns (`dispatch`).

Records need no room beside those bytes, and members wait for each other: of requests with either only those that list
many entries count as large, which is known when so much of them is unpacked, in a thread where they have megabytes.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import trio

from pykbroker.protocol.api_keys import ApiKey

SMALL_FRAME_BYTES: Final = 4096
"""Such a frame keeps no buffer while its request waits."""
LARGE_FRAME_BYTES: Final = 16 * 1024
IN_HAND_BYTES: Final = 1024 * 1024
"""Of frames of one API. A single larger frame is let in alone."""

FEW_ENTRIES: Final = 1000
"""Of a request that is mostly bytes: so many are unpacked on the event loop, in less than two milliseconds."""

COPIED_AT_ONCE_BYTES: Final = 4 * 1024 * 1024
"""And so much, for what is not records is copied: metadata of members, or fields that nobody knows."""

MEMBERS: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""Let in at once, however many entries there are: what they wait for may be behind them."""

MOSTLY_BYTES: Final = MEMBERS | {ApiKey.PRODUCE}


class Admission:
    """An admission keeps one large request in hand, until `leave`: at the latest when its answer is
    ready to be sent.
    """

    __slots__ = ("_requests", "_size")

    def __init__(self, requests: LargeRequests, size: int) -> None:
        self._requests = requests
        self._size = size

    def leave(self) -> None:
        """Let the request's entries go. A second call does nothing."""
        size, self._size = self._size, 0
        self._requests.left(size)


class LargeRequests:
    """The large requests of one API on one listener are let in by their sizes."""

    def __init__(self, limit_bytes: int = IN_HAND_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._in_hand_bytes = 0
        self._waiting: deque[tuple[int, trio.Event]] = deque()

    @property
    def in_hand_bytes(self) -> int:
        return self._in_hand_bytes

    async def enter(self, size: int) -> Admission:
        """Return when there is room, and every request that came before is let in."""
        if self._waiting or not self._has_room(size):
            await self._wait(size)
        else:
            self._in_hand_bytes += size
        return Admission(self, size)

    async def _wait(self, size: int) -> None:
        waiting = size, trio.Event()
        self._waiting.append(waiting)
        try:
            await waiting[1].wait()
        except trio.Cancelled:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self.left(0)
            else:
                self.left(size)
            raise

    def left(self, size: int) -> None:
        self._in_hand_bytes -= size
        while self._waiting and self._has_room(self._waiting[0][0]):
            next_size, let_in = self._waiting.popleft()
            self._in_hand_bytes += next_size
            let_in.set()

    def _has_room(self, size: int) -> bool:
        return not self._in_hand_bytes or self._in_hand_bytes + size <= self._limit_bytes
