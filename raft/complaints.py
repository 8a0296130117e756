"""A rate limit for what a member of the quorum logs about its peers.

A fault of a peer is in every message of it, and a peer sends fifty in a second.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable

PERIOD_MS = 10_000
_MOST_KEPT = 100

logger = logging.getLogger(__name__)


class Complaints:
    """One line of each kind in a while; the next one tells how many were left out."""

    def __init__(self) -> None:
        self._said: dict[Hashable, tuple[int, int]] = {}
        """When, and how many times it was left out since."""

    def say(self, kind: Hashable, now_ms: int, text: str, *arguments: object) -> None:
        said_ms, left_out = self._said.get(kind, (now_ms - PERIOD_MS, 0))
        if now_ms - said_ms < PERIOD_MS:
            self._said[kind] = said_ms, left_out + 1
            return
        if len(self._said) >= _MOST_KEPT:
            self._said.clear()
        self._said[kind] = now_ms, 0
        if left_out:
            logger.warning(text + " (and %d times more before)", *arguments, left_out)
        else:
            logger.warning(text, *arguments)
