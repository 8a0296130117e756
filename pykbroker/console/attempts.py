"""A bound on attempts to log in: so many that fail in a minute for one user, from one address, and for all together.

What one address does closes the log-in for that address alone, so that nobody keeps others out. An address of IPv6 is a
network of 64 bits, since whoever has one address has all of it.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

WINDOW_S: Final = 60.0
MOST_OF_ONE: Final = 5
"""For one user from one address."""
MOST_OF_USER: Final = 30
"""For one user from all addresses together: guesses from many places are guesses, too."""
MOST_OF_ADDRESS: Final = 60
MOST_OF_ALL: Final = 600
_NETWORK_BITS: Final = 64


class _Failed(NamedTuple):
    at_s: float
    user: str
    place: str


class Attempts:
    """The attempts of the last minute that failed, of which as many are kept as all together may have."""

    def __init__(self, now_s: Callable[[], float] = trio.current_time) -> None:
        self._now_s = now_s
        self._failed: deque[_Failed] = deque(maxlen=MOST_OF_ALL)

    def wait_s(self, user: str, address: str) -> float:
        """Return how long that user must wait there before the next attempt; 0 for not at all."""
        now_s, place = self._now_s(), _place(address)
        while self._failed and self._failed[0].at_s <= now_s - WINDOW_S:
            self._failed.popleft()
        of_user = [each for each in self._failed if each.user == user]
        of_place = [each for each in self._failed if each.place == place]
        return max(
            _wait_s([each for each in of_user if each.place == place], MOST_OF_ONE, now_s),
            _wait_s(of_user, MOST_OF_USER, now_s),
            _wait_s(of_place, MOST_OF_ADDRESS, now_s),
            _wait_s(list(self._failed), MOST_OF_ALL, now_s),
        )

    def has_failed(self, user: str, address: str) -> None:
        """Note an attempt before its outcome is known, so that many at once are not more than one behind the other."""
        self._failed.append(_Failed(self._now_s(), user, _place(address)))

    def has_succeeded(self, user: str, address: str) -> None:
        """Forget the failures of that user there."""
        gone = user, _place(address)
        self._failed = deque((each for each in self._failed if (each.user, each.place) != gone), maxlen=MOST_OF_ALL)


def _wait_s(failed: list[_Failed], most: int, now_s: float) -> float:
    return failed[-most].at_s + WINDOW_S - now_s if len(failed) >= most else 0.0


def _place(address: str) -> str:
    """Return what counts as one address; the text itself where that is none."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else str(ipaddress.ip_network((parsed, _NETWORK_BITS), strict=False))
