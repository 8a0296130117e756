"""Peers that are not there: who has no process behind its port is tried again less and less often.

Kafka's `NetworkClient` does so, as raft's channel has it made: 50 ms after the first refusal, 500 ms at most. A voter
whose node answers INVALID_VOTER_KEY, as it has another directory now, is not there either; Kafka's candidates ask it
again without a pause.
"""

from __future__ import annotations

from dataclasses import dataclass

from .events import Destination
from .timeouts import Timeouts


@dataclass(frozen=True, slots=True)
class Refusal:
    wait_ms: int
    until_ms: int


class Refusals:
    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._by_peer: dict[Destination, Refusal] = {}

    def add(self, destination: Destination, now_ms: int) -> None:
        """Where peers are is told by others: nothing is kept of one that was not tried again for a while."""
        first_ms, most_ms = self._timeouts.reconnect_backoff_ms, self._timeouts.reconnect_backoff_max_ms
        self._by_peer = {peer: each for peer, each in self._by_peer.items() if now_ms < each.until_ms + most_ms}
        before = self._by_peer.get(destination)
        wait_ms = first_ms if before is None else min(2 * before.wait_ms, most_ms)
        self._by_peer[destination] = Refusal(wait_ms, now_ms + wait_ms)

    def discard(self, destination: Destination) -> None:
        """It answers."""
        self._by_peer.pop(destination, None)

    def until_ms(self, destination: Destination) -> int:
        """Until when it is left alone; 0 where it need not be."""
        refusal = self._by_peer.get(destination)
        return 0 if refusal is None else refusal.until_ms

    def discard_node(self, node_id: int) -> None:
        """It asks something."""
        self._by_peer = {peer: each for peer, each in self._by_peer.items() if peer.node_id != node_id}

    def clear(self) -> None:
        self._by_peer.clear()
