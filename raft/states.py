"""The roles of a member of the quorum, each with what only that role has to remember (Kafka's `EpochState`).

Roles are values that change; their rules are in `elections`, `following` and `leading`. Deadlines are of the clock that
`RaftNode` is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from .events import Destination, SnapshotChunk
from .snapshots import SnapshotId
from .voters import Endpoint, ReplicaKey, VoterSet


class Role(Enum):
    """Kafka's words for what a member of the quorum is (`QuorumState`)."""

    UNATTACHED = auto()
    PROSPECTIVE = auto()
    CANDIDATE = auto()
    LEADER = auto()
    FOLLOWER = auto()
    RESIGNED = auto()


@dataclass(slots=True)
class UnattachedState:
    """Knows nobody to follow in this epoch. A voter asks for pre-votes when its time is over."""

    election_deadline_ms: int
    attempts: int = 0


@dataclass(slots=True)
class Votes:
    """The votes of an election, the own one included. absent: those of the rejecting voters that have no process."""

    voters: VoterSet
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    absent: set[int] = field(default_factory=set)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        return len(self.voters) - len(self.rejected) < self.voters.majority

    def grant(self, node_id: int) -> None:
        """Count a vote of a voter; the nominee itself need not be one."""
        if node_id in self.voters:
            self.granted.add(node_id)

    def outstanding(self) -> list[int]:
        """Return the voters without an answer, in a fixed order."""
        return [node_id for node_id in self.voters.ids if node_id not in self.granted | self.rejected]


@dataclass(slots=True)
class ProspectiveState:
    """A member that asks whether it would be elected, which binds nobody (pre-vote, KIP-996)."""

    votes: Votes
    election_deadline_ms: int
    attempts: int
    leader: Endpoint | None = None
    """Of the leader that it knows, to whom it goes back where nobody else wants another."""


@dataclass(slots=True)
class CandidateState:
    """A candidate in a new epoch. backoff_deadline_ms: when it stands again after a defeat."""

    votes: Votes
    election_deadline_ms: int
    attempts: int
    backoff_deadline_ms: int | None = None


@dataclass(slots=True)
class FetchingSnapshot:
    snapshot_id: SnapshotId
    position: int = 0
    is_whole: bool = False
    """All of it has come, and whoever keeps the log is about to begin at it."""
    chunk: SnapshotChunk | None = None


@dataclass(slots=True)
class FollowerState:
    """A follower of a leader. leader_is_gone: it said so, or its port refuses, and others may be elected."""

    leader: Destination
    fetch_deadline_ms: int
    has_fetched: bool = False
    leader_is_gone: bool = False
    attempts: int = 0
    snapshot: FetchingSnapshot | None = None
    fetch_elsewhere: bool = False
    """An observer whose leader does not answer asks others who leads."""
    update_voter_deadline_ms: int = 0
    """Not before then the leader is told anything new of this voter."""
    has_described_itself: bool = False
    """To a leader of static voters, who learns from that whether they could become dynamic ones."""


@dataclass(slots=True)
class ResignedState:
    """Led this epoch and does not any more."""

    election_deadline_ms: int
    successors: list[ReplicaKey]
    unacknowledged: set[int]
