"""A bound on attempts to log in: so many that fail in a minute for one user, from one address, and for all together.

Whoever tries all names from one machine keeps nobody else out; a proxy is one address.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

WINDOW_S: Final = 60.0
MOST_OF_ONE: Final = 5
MOST_OF_ADDRESS: Final = 20
MOST_OF_ALL: Final = 60


class Attempts:
    """The attempts of the last minute that failed."""

    def __init__(self, now_s: Callable[[], float] = trio.current_time) -> None:
        self._now_s = now_s
        self._failed: deque[tuple[float, str, str]] = deque(maxlen=MOST_OF_ALL)

    def wait_s(self, user: str, address: str) -> float:
        """Return how long that user, that address, or everybody, must wait for the next attempt; 0 for not at all."""
        now_s = self._now_s()
        while self._failed and self._failed[0][0] <= now_s - WINDOW_S:
            self._failed.popleft()
        own = [at_s for at_s, of, _ in self._failed if of == user]
        here = [at_s for at_s, _, where in self._failed if where == address]
        every = [at_s for at_s, _, _ in self._failed]
        for some, most in ((own, MOST_OF_ONE), (here, MOST_OF_ADDRESS), (every, MOST_OF_ALL)):
            if len(some) >= most:
                return some[-most] + WINDOW_S - now_s
        return 0.0

    def has_failed(self, user: str, address: str) -> None:
        """Note an attempt before its outcome is known, so that many at once are not more than one behind the other."""
        self._failed.append((self._now_s(), user, address))

    def has_succeeded(self, user: str) -> None:
        """Forget the failures of that user."""
        self._failed = deque((each for each in self._failed if each[1] != user), maxlen=MOST_OF_ALL)
