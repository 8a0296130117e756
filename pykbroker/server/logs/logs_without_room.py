"""A log that could not be opened for want of room alone is tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ..runtime.signal import Signal

_RETRY_S = 5


class LogsWithoutRoom:
    """The logs without room are known by topic id and partition."""

    def __init__(self) -> None:
        self._waiting: set[tuple[bytes, int]] = set()
        self._some_wait = Signal()

    def add(self, topic_id: bytes, index: int) -> None:
        self._waiting.add((topic_id, index))
        self._some_wait.set()

    async def run(self, open_again: Callable[[set[tuple[bytes, int]]], Awaitable[None]]) -> None:
        """Try again until the surrounding scope is cancelled. What finds no room once more is to be added once more."""
        while True:
            await self._some_wait.wait()
            await trio.sleep(_RETRY_S)
            self._some_wait.clear()
            retried, self._waiting = self._waiting, set()
            await open_again(retried)
