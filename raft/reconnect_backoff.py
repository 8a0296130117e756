"""The pauses before connections to peers whose ports refuse them.

A peer without a process behind its port is tried again less and less often, as the `NetworkClient` of Kafka's raft
channel does (`ClusterConnectionStates`): `reconnect_backoff_ms` after the first failure, twice as long after each
further one, `reconnect_backoff_max_ms` at most (by default twice a second). A voter whose node answers
INVALID_VOTER_KEY, because the node has another directory now, counts as absent too; Kafka's candidates ask such a node
again without a pause.
"""

from __future__ import annotations

from dataclasses import dataclass

from .events import Destination
from .timeouts import Timeouts


@dataclass(frozen=True, slots=True)
class NodeConnectionState:
    """The pause of one peer: `wait_ms` long, until the time `until_ms`."""

    wait_ms: int
    until_ms: int


class ReconnectBackoff:
    """The pauses of all peers, and when each of them ends."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._by_peer: dict[Destination, NodeConnectionState] = {}

    def disconnected(self, destination: Destination, now_ms: int) -> None:
        """Begin the next, longer pause of a peer. Peers whose pause ended long ago are forgotten, since other nodes may
        name any number of them.
        """
        first_ms, most_ms = self._timeouts.reconnect_backoff_ms, self._timeouts.reconnect_backoff_max_ms
        self._by_peer = {peer: each for peer, each in self._by_peer.items() if now_ms < each.until_ms + most_ms}
        before = self._by_peer.get(destination)
        wait_ms = first_ms if before is None else min(2 * before.wait_ms, most_ms)
        self._by_peer[destination] = NodeConnectionState(wait_ms, now_ms + wait_ms)

    def connected(self, destination: Destination) -> None:
        """End the pause of a peer that has answered."""
        self._by_peer.pop(destination, None)

    def until_ms(self, destination: Destination) -> int:
        """The time at which the pause of a peer ends; 0 for a peer without a pause."""
        state = self._by_peer.get(destination)
        return 0 if state is None else state.until_ms

    def heard_from(self, node_id: int) -> None:
        """End the pauses of a node that has sent a request of its own."""
        self._by_peer = {peer: each for peer, each in self._by_peer.items() if peer.node_id != node_id}

    def clear(self) -> None:
        self._by_peer.clear()
