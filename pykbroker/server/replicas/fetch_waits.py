"""Fetch requests that wait hold a bounded number of partitions together, of a kilobyte each.

A request of few partitions always waits. The others wait as long as all together name no more than 40,000
(`MOST_PARTITIONS`); then the greediest of them is answered at once with what there is, be it the new one.
`FetchSessionCache.max_partitions` is such a bound for fetch sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import trio

FEW_PARTITIONS: Final = 100
MOST_PARTITIONS: Final = 40_000

_ROOM_FOR_FEW: Final = nullcontext()


class FetchWaits:
    """The waiting Fetch requests of one node."""

    def __init__(self, most_partitions: int = MOST_PARTITIONS) -> None:
        self._most = most_partitions
        self._waiting: dict[trio.CancelScope, int] = {}
        self.partitions = 0

    def room(self, partitions: int) -> AbstractContextManager[None]:
        """Enter a scope that is cancelled when its room goes to a smaller request."""
        return _ROOM_FOR_FEW if partitions <= FEW_PARTITIONS else self._room(partitions)

    @contextmanager
    def _room(self, partitions: int) -> Iterator[None]:
        with trio.CancelScope() as scope:
            self._waiting[scope] = partitions
            self.partitions += partitions
            while self.partitions > self._most:
                self._give_up(max(self._waiting, key=lambda each: self._waiting[each]))
            try:
                yield
            finally:
                self._forget(scope)

    def _give_up(self, scope: trio.CancelScope) -> None:
        self._forget(scope)
        scope.cancel()

    def _forget(self, scope: trio.CancelScope) -> None:
        self.partitions -= self._waiting.pop(scope, 0)
