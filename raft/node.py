"""One member of a KRaft quorum, without I/O, clock or threads (KIP-595).

The contract is etcd's: the caller feeds events (`propose`, `tick`), then takes `ready()` and carries it out in this
order: make `election` durable, append `appends` to the log and make them durable, send, and call `advance()` with
what became durable; the high watermark that this yields may then be applied. Nothing happens between two calls.

A quorum of one elects itself at its first `tick`. Exchanging votes and fetches with other voters is not part of it
yet, so a larger voter set is refused where the node is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from .election_state import ElectionState
from .voters import VoterSet


class NotLeader(Exception):
    """Only the leader of the quorum takes proposals."""

    def __init__(self, leader_id: int | None) -> None:
        super().__init__(f"this node does not lead the metadata quorum; the leader is {leader_id}")
        self.leader_id = leader_id


class Role(Enum):
    """Kafka's words for what a member of the quorum is (`QuorumState`)."""

    UNATTACHED = auto()
    CANDIDATE = auto()
    LEADER = auto()


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The control record that opens an epoch; voters and granting_voters are node ids."""

    leader_id: int
    voters: Sequence[int]
    granting_voters: Sequence[int]


@dataclass(frozen=True, slots=True)
class Append:
    """One batch for the log: its records are either a leader change or what was proposed, opaque to raft.

    base_offset: of its first record. count: how many offsets it takes.
    """

    base_offset: int
    count: int
    epoch: int
    payload: object


@dataclass(frozen=True, slots=True)
class Ready:
    """What to carry out, in this order. election: None where it need not be written again."""

    election: ElectionState | None
    appends: Sequence[Append]


class RaftNode:
    """node_id: this member. last_epoch and log_end_offset: of the log as it is on disk, 0 and 0 where it is empty."""

    def __init__(
        self, node_id: int, voters: VoterSet, election: ElectionState, *, last_epoch: int, log_end_offset: int
    ) -> None:
        assert node_id in voters, "a node that is no voter is an observer and needs a leader to fetch from"
        assert len(voters) == 1, "a quorum of several voters exchanges votes and fetches, which this node does not"
        self.node_id = node_id
        self.voters = voters
        self.role = Role.UNATTACHED
        self.high_watermark = 0
        self.log_end_offset = log_end_offset
        self._last_epoch = last_epoch
        self._election = election
        self._stored_election = election
        self.epoch_start_offset = log_end_offset
        self._durable_end_offsets = {voter.node_id: 0 for voter in voters}
        self._durable_end_offsets[node_id] = log_end_offset
        self._votes: set[int] = set()
        self._appends: list[Append] = []
        assert election.epoch >= last_epoch, "the log holds an epoch that quorum-state does not know"

    @property
    def epoch(self) -> int:
        return self._election.epoch

    @property
    def leader_id(self) -> int | None:
        return self._election.leader_id

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When `tick` has something to do; None where only an event can bring that about."""
        return None if self.role is Role.LEADER else now_ms

    def tick(self, now_ms: int) -> None:
        """Time has passed. A voter without a leader stands for election."""
        if self.role is Role.UNATTACHED:
            self._become_candidate()

    def propose(self, payload: object, count: int) -> Append:
        """Queues a batch of `count` records under the current epoch. Raises NotLeader."""
        assert count > 0
        if self.role is not Role.LEADER:
            raise NotLeader(self.leader_id)
        return self._append(payload, count)

    def ready(self) -> Ready:
        """What is to be carried out now; each append is handed out once."""
        election = self._election if self._election != self._stored_election else None
        appends, self._appends = self._appends, []
        return Ready(election, appends)

    def advance(self, *, election: ElectionState | None, durable_end_offset: int) -> int:
        """Reports what became durable, and returns the high watermark, which never goes back."""
        if election is not None:
            self._stored_election = election
        if self.role is Role.CANDIDATE and self._stored_election.voted_id == self.node_id:
            self._count_vote(self.node_id)
        assert durable_end_offset <= self.log_end_offset
        self._durable_end_offsets[self.node_id] = durable_end_offset
        if self.role is Role.LEADER:
            self._advance_high_watermark()
        return self.high_watermark

    def _become_candidate(self) -> None:
        self.role = Role.CANDIDATE
        self._votes.clear()
        self._election = ElectionState(self.epoch + 1, voted_id=self.node_id)

    def _count_vote(self, voter_id: int) -> None:
        self._votes.add(voter_id)
        if len(self._votes) >= self.voters.majority:
            self._become_leader()

    def _become_leader(self) -> None:
        assert self.epoch > self._last_epoch
        self.role = Role.LEADER
        self._election = ElectionState(self.epoch, leader_id=self.node_id)
        self.epoch_start_offset = self.log_end_offset
        self._append(LeaderChange(self.node_id, self.voters.ids, sorted(self._votes)), 1)

    def _append(self, payload: object, count: int) -> Append:
        append = Append(self.log_end_offset, count, self.epoch, payload)
        self.log_end_offset += count
        self._last_epoch = self.epoch
        self._appends.append(append)
        return append

    def _advance_high_watermark(self) -> None:
        """What a majority holds is committed, once a record of the leader's own epoch is among it (Raft §5.4.2)."""
        held = sorted(self._durable_end_offsets.values(), reverse=True)
        committed = held[self.voters.majority - 1]
        if committed > self.epoch_start_offset:
            assert committed >= self.high_watermark
            self.high_watermark = committed
