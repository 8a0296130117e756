"""A member of a classic group: what its JoinGroup said, and which of its requests waits for an answer.

The model is Kafka's `ClassicGroupMember`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pykbroker.state_machine import Token


@dataclass(slots=True, kw_only=True)
class ClassicGroupMember:
    """A member of a classic group.

    protocols: name to metadata, in the member's order of preference. awaiting_join, awaiting_sync: the JoinGroup
    and the SyncGroup that wait. is_new: the member waits for its very first JoinGroup answer, so it does not know its
    id and cannot send heartbeats.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes]
    assignment: bytes = b""
    awaiting_join: Token | None = None
    awaiting_sync: Token | None = None
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def keeps_session(self) -> bool:
        """Tell whether a request that waits stands for heartbeats.

        A new member's does not: its long first timeout bounds it.
        """
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def vote(self, candidates: Collection[str]) -> str:
        """The first of the member's protocols that is among the candidates."""
        return next(name for name in self.protocols if name in candidates)

    def matches(self, protocols: dict[str, bytes]) -> bool:
        """Tell whether the member still supports the same protocols, in the same order, with the same metadata."""
        return list(self.protocols.items()) == list(protocols.items())
