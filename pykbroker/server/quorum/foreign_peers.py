"""A foreign peer is a member of the quorum that turns out to be of another cluster: somebody set up one of the two
wrongly.

One of them alone does no harm, the others elect a leader without it. Where no majority is left of those that a node is
to find the quorum with, it is that node which does not belong there, and it should not wait for ever. Apache Kafka's
logs an error for each answer, and waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pykbroker.raft.events import Destination


@dataclass(slots=True)
class ForeignPeers:
    """The foreign peers are known by where they listen, with the cluster id that each tells. own_cluster_id: of this
    node.
    """

    own_cluster_id: str | None
    _told: dict[tuple[str, int], tuple[str, str | None]] = field(default_factory=dict)

    def __contains__(self, peer: Destination) -> bool:
        return (peer.host, peer.port) in self._told

    def add(self, peer: Destination, name: str, cluster_id: str | None) -> None:
        """Note a peer of another cluster. cluster_id: None where it did not say."""
        self._told[peer.host, peer.port] = (name, cluster_id)

    def discard(self, peer: Destination) -> None:
        self._told.pop((peer.host, peer.port), None)

    def describe(self, peer: Destination) -> str:
        name, cluster_id = self._told[peer.host, peer.port]
        theirs = "of another cluster" if cluster_id is None else f"of the cluster {cluster_id}"
        return f"{name} at {peer.host}:{peer.port} is {theirs}"

    def refusal(self, quorum: Sequence[Destination]) -> str | None:
        """Return why this node can never find the quorum that it is configured for; None where it still may."""
        foreign = [each for each in quorum if each in self]
        if not foreign or len(quorum) - len(foreign) > len(quorum) // 2:
            return None
        told = ", ".join(self.describe(each) for each in foreign)
        return (
            f"this node is of the cluster {self.own_cluster_id}, and {told}: either its log.dirs or its "
            "controller.quorum.voters or controller.quorum.bootstrap.servers are those of another cluster"
        )
