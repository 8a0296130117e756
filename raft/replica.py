"""The identity of a member of the quorum, from its configuration and its directory."""

from __future__ import annotations

from dataclasses import dataclass

from .voters import NO_DIRECTORY, Endpoint, ReplicaKey


@dataclass(frozen=True, slots=True)
class LocalReplica:
    """This member of the quorum.

    cluster_id: None accepts every peer. endpoints: its addresses, one per controller listener, the default one first.
    may_vote: a controller; a broker alone is an observer for ever. auto_join: an observer that may vote asks
    to become a voter.
    """

    node_id: int
    directory_id: bytes = NO_DIRECTORY
    cluster_id: str | None = None
    endpoints: tuple[Endpoint, ...] = ()
    may_vote: bool = True
    auto_join: bool = False

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def listener_name(self) -> str:
        """The name of the listener on which it talks to other controllers; "" where it has none."""
        return self.endpoints[0].name if self.endpoints else ""
