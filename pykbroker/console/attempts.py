"""A bound on attempts to log in: so many that fail in a minute for one user, and so many for all together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

WINDOW_S: Final = 60.0
MOST_OF_ONE: Final = 5
MOST_OF_ALL: Final = 60


class Attempts:
    """The attempts of the last minute that failed."""

    def __init__(self, now_s: Callable[[], float] = trio.current_time) -> None:
        self._now_s = now_s
        self._failed: deque[tuple[float, str]] = deque(maxlen=MOST_OF_ALL)

    def wait_s(self, user: str) -> float:
        """Return how long that user, or everybody, must wait before the next attempt; 0 for not at all."""
        now_s = self._now_s()
        while self._failed and self._failed[0][0] <= now_s - WINDOW_S:
            self._failed.popleft()
        own = [at_s for at_s, of in self._failed if of == user]
        if len(own) >= MOST_OF_ONE:
            return own[-MOST_OF_ONE] + WINDOW_S - now_s
        if len(self._failed) >= MOST_OF_ALL:
            return self._failed[0][0] + WINDOW_S - now_s
        return 0.0

    def has_failed(self, user: str) -> None:
        """Note an attempt before its outcome is known, so that many at once are not more than one behind the other."""
        self._failed.append((self._now_s(), user))

    def has_succeeded(self, user: str) -> None:
        """Forget the failures of that user."""
        self._failed = deque((each for each in self._failed if each[1] != user), maxlen=MOST_OF_ALL)
