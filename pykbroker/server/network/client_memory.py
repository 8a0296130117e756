"""Connections hold memory together: requests that are received or in hand, and answers that their peers do not take.

`queued.max.request.bytes` is the bound on requests (Kafka's `MemoryPool`); it has a default of 64 MiB here, because one
process serves everybody. A connection that would go beyond it waits and reads nothing meanwhile, so that TCP holds its
peer back. One holder at a time may go beyond, so that two halves of requests never wait for each other. A small request
always gets its buffer: where that takes more than a reserve, and where somebody has waited for a second, `Listener`
closes the greediest, with a line in the log. It does so, too, where answers take more than 64 MiB.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

REQUEST_BYTES = 64 << 20
ANSWER_BYTES = 64 << 20
RESERVE_BYTES = 32 << 20
"""Beyond the bound on requests, for those that fit into the buffer that a connection begins with."""


class ClientMemory:
    """The memory is that of all connections of one listener, or of several. Its numbers are kept by buffers and
    connections.
    """

    def __init__(self, request_limit_bytes: int = REQUEST_BYTES, answer_limit_bytes: int = ANSWER_BYTES) -> None:
        self.request_limit_bytes = request_limit_bytes
        self.answer_limit_bytes = answer_limit_bytes
        self.request_bytes = 0
        self.answer_bytes = 0
        self.on_excess: list[Callable[[], None]] = []
        """Is called where requests or answers are far beyond their bound; each closes connections of its own."""
        self._beyond: object | None = None
        self._beyond_bytes = 0
        self._waiting = trio.lowlevel.ParkingLot()
        self._wanted = trio.lowlevel.ParkingLot()

    # Requests

    @property
    def is_short(self) -> bool:
        """Half of it is taken: nobody keeps more than it needs."""
        return self.request_bytes * 2 > self.request_limit_bytes

    @property
    def is_wanted(self) -> bool:
        return bool(self._waiting)

    @property
    def has_too_many_requests(self) -> bool:
        return self.request_bytes > self.request_limit_bytes + RESERVE_BYTES + self._beyond_bytes

    def admits(self, holder: object, more_bytes: int) -> bool:
        """Tell whether a holder may take so much more now. If not it waits for `room` and asks again."""
        if self.request_bytes + more_bytes <= self.request_limit_bytes:
            return True
        if self._beyond not in (None, holder):
            return False
        self._beyond = holder
        self._beyond_bytes += more_bytes
        return True

    def take(self, size: int) -> None:
        self.request_bytes += size
        if self.request_bytes > self.request_limit_bytes and self.has_too_many_requests:
            self._relieve()

    def give(self, holder: object, size: int) -> None:
        self.request_bytes -= size
        if self._beyond is holder:
            self._beyond, self._beyond_bytes = None, 0
        if self._waiting and (self._beyond is None or self.request_bytes < self.request_limit_bytes):
            self._waiting.unpark()

    async def room(self) -> None:
        """Return when it is worth to ask again."""
        self._wanted.unpark_all()
        await self._waiting.park()

    def retry(self) -> None:
        """All who wait ask again."""
        self._waiting.unpark_all()

    async def until_wanted(self) -> None:
        """Return when somebody waits."""
        while not self._waiting:
            await self._wanted.park()

    # Answers

    @property
    def has_too_many_answers(self) -> bool:
        return self.answer_bytes > self.answer_limit_bytes

    def hold_answer(self, size: int) -> None:
        self.answer_bytes += size
        if self.answer_bytes > self.answer_limit_bytes:
            self._relieve()

    def release_answer(self, size: int) -> None:
        self.answer_bytes -= size

    def _relieve(self) -> None:
        for relieve in self.on_excess:
            relieve()
