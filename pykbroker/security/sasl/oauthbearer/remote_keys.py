"""The keys that were fetched last, and when others are to be fetched: the rules of Kafka's `RefreshingHttpsJwks`.

A token that names an unknown key is refused at once, and asks for one refresh in the background; the same `kid` asks
again after a minute at the earliest. At most 16 of them are remembered, and none of more than 1,000 characters, so that
whoever invents names costs neither memory nor requests without end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .key_set import KeySet, VerificationKey

MAX_MISSING: Final = 16
MAX_KID_CHARS: Final = 1_000
MISSING_MS: Final = 60_000


class RemoteKeys:
    """The keys of one address. on_missing: is told that a key is asked for which is not there."""

    def __init__(self, on_missing: Callable[[], None]) -> None:
        self._on_missing = on_missing
        self._keys: KeySet | None = None
        self._missing: OrderedDict[str, int] = OrderedDict()

    def take(self, keys: KeySet) -> None:
        """Go on with these keys."""
        self._keys = keys
        for kid in [each for each in self._missing if keys.has(each)]:
            del self._missing[kid]

    def find(self, header: Mapping[str, Any], now_ms: int) -> VerificationKey | None:
        """The key that the header of a token names, None where there is none so far."""
        key = None if self._keys is None else self._keys.select(header)
        kid = header.get("kid")
        if key is None and isinstance(kid, str) and not (self._keys is not None and self._keys.has(kid)):
            self._note_missing(kid, now_ms)
        return key

    def _note_missing(self, kid: str, now_ms: int) -> None:
        if len(kid) > MAX_KID_CHARS:
            return
        again_ms = self._missing.pop(kid, None)
        is_due = again_ms is None or again_ms <= now_ms
        self._missing[kid] = now_ms + MISSING_MS if again_ms is None or is_due else again_ms
        if len(self._missing) > MAX_MISSING:
            self._missing.popitem(last=False)
        if is_due:
            self._on_missing()


def waits_ms(backoff_ms: int, most_ms: int) -> Iterator[int]:
    """The waits between tries, each twice as long as the one before, all together no longer than `most_ms`."""
    wait_ms, left_ms = max(backoff_ms, 1), most_ms
    while left_ms > 0:
        yield min(wait_ms, left_ms)
        left_ms -= wait_ms
        wait_ms *= 2
