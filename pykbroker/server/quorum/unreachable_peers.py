"""Controllers that a node cannot reach are told in its log: without a majority of them it waits, and does not serve.

Kafka's counterpart is the warning of `NetworkClient` at each attempt. Nodes that start together miss one another for a
moment, so what lasts is told alone, and not at each attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import trio

from pykbroker.raft.events import Destination

_log = logging.getLogger(__name__)

_FIRST_S: Final = 5.0
_AGAIN_S: Final = 60.0


class UnreachablePeers:
    """The peers whose requests fail, with when that began and when it was told last. clock: seconds."""

    def __init__(self, clock: Callable[[], float] = trio.current_time) -> None:
        self._clock = clock
        self._since_s: dict[Destination, float] = {}
        self._told_s: dict[Destination, float] = {}

    def failed(self, to: Destination, node: str, reason: object) -> None:
        """Note that a request has failed, and warn where that has lasted."""
        now_s = self._clock()
        lasts_s = now_s - self._since_s.setdefault(to, now_s)
        if lasts_s >= _FIRST_S and now_s - self._told_s.get(to, -_AGAIN_S) >= _AGAIN_S:
            self._told_s[to] = now_s
            _log.warning("%s at %s:%d has not answered for %.0f s: %s", node, to.host, to.port, lasts_s, reason)

    def answered(self, to: Destination, node: str) -> None:
        """Note that a request was answered; who was told of the silence is told of its end."""
        self._since_s.pop(to, None)
        if self._told_s.pop(to, None) is not None:
            _log.info("%s at %s:%d answers again", node, to.host, to.port)
