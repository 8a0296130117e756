"""What must be true after every event, whatever fails (the names are those of Kafka's `RaftEventSimulationTest`).

Everything is seen from outside: which node says it leads, what its log holds, what it told others. A violation is an
AssertionError that begins with the invariant's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.protocol.messages.control_records import KRaftVersionRecord, VotersRecord
from pykbroker.protocol.schema import Message
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.node import Role
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.voters import ReplicaKey

from .memory_log import MemorySnapshot

if TYPE_CHECKING:
    from .simulated_node import SimulatedNode

Entry = tuple[int, str]
CHECK_QUORUM_MS = 600
"""With the timeouts of the simulated nodes."""


class Invariants:
    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[ReplicaKey, int], int] = {}
        self.committed: list[Entry] = []
        """Epoch and value by offset: what any node ever said is committed."""
        self._commit_epochs: list[int] = []
        """By offset: the epoch of the node that said so first, which is its leader."""
        self.control: list[tuple[int, Message]] = []
        self.acknowledged: list[tuple[int, Entry]] = []
        self.snapshots: dict[SnapshotId, MemorySnapshot] = {}
        self.elections = 0
        self._epochs: dict[ReplicaKey, int] = {}
        self._told_epochs: dict[ReplicaKey, int] = {}
        self._told_votes: set[tuple[ReplicaKey, int]] = set()
        """What others may build on, and a crash must not take back."""
        self._high_watermarks: dict[int, int] = {}
        self._leading: dict[int, tuple[SimulatedNode, int]] = {}
        """Who leads which epoch, as far as he knows."""
        self._pending: dict[int, list[tuple[int, Entry]]] = {}
        self._superseded_ms: float | None = None

    # Told by the nodes

    def started(self, node: SimulatedNode) -> None:
        """An epoch and a vote that nobody was told of may be gone: the crash came before they were stored."""
        key = node.replica.key
        self._epochs[key] = self._told_epochs.get(key, 0)
        self.votes = {of: to for of, to in self.votes.items() if of[0] != key or of in self._told_votes}
        self._high_watermarks[node.node_id] = 0
        self._leading.pop(node.node_id, None)
        self._pending[node.node_id] = []

    def told(self, node: SimulatedNode, election: ElectionState) -> None:
        """Messages leave the node that were made with that election state."""
        key = node.replica.key
        self._told_epochs[key] = max(election.epoch, self._told_epochs.get(key, 0))
        if election.voted_id is not None:
            self._told_votes.add((key, election.epoch))

    def proposed(self, node: SimulatedNode, offset: int, value: str) -> None:
        assert node.raft is not None
        self._pending[node.node_id].append((offset, (node.raft.epoch, value)))

    def truncated(self, node: SimulatedNode, offset: int) -> None:
        known = self._high_watermarks[node.node_id]
        assert offset >= known, f"CommittedStays: node {node.node_id} cuts off its log at {offset}, below {known}"

    def check(self, node: SimulatedNode) -> None:
        """After every event of this node."""
        raft = node.raft
        assert raft is not None
        epoch, key = raft.epoch, node.replica.key
        assert epoch >= self._epochs.get(key, 0), f"MonotonicEpoch: node {node.node_id} is back in epoch {epoch}"
        self._epochs[key] = epoch
        election = raft.election
        if election.voted_id is not None:
            voted = self.votes.setdefault((key, epoch), election.voted_id)
            assert voted == election.voted_id, (
                f"SingleVote: node {node.node_id} votes for {election.voted_id} in epoch {epoch}, after {voted}"
            )
        if raft.role is not Role.LEADER:
            self._leading.pop(node.node_id, None)
        elif self.leaders.get(epoch) != node.node_id:
            self._elected(node, epoch)
        self._check_log(node)
        self._advanced(node)

    def _check_log(self, node: SimulatedNode) -> None:
        """What changed of it: below the high watermark all replicas are the same."""
        known = self._high_watermarks[node.node_id]
        start = max(node.log.take_lowest_end(), node.log.start_offset)
        if start < known:
            held, wanted = node.log.entries(start, known), self.committed[start:known]
            assert held == wanted, f"CommittedIsSame: node {node.node_id} has changed {wanted[:3]} to {held[:3]}"

    def _elected(self, node: SimulatedNode, epoch: int) -> None:
        leader = self.leaders.setdefault(epoch, node.node_id)
        assert leader == node.node_id, f"SingleLeader: nodes {leader} and {node.node_id} both lead epoch {epoch}"
        self.elections += 1
        self._leading[node.node_id] = (node, epoch)
        missing = self._missing(node, epoch)
        assert not missing, f"LeaderCompleteness: the leader of epoch {epoch}, node {node.node_id}, lacks {missing[:3]}"

    def _missing(self, node: SimulatedNode, epoch: int) -> list[tuple[int, Entry]]:
        """What was committed before that epoch and is not in that node's log.

        Whoever was frozen when its votes came leads an old epoch for a moment, and lacks what later ones committed.
        """
        start = node.log.start_offset
        held = node.log.entries(start, len(self.committed))
        wanted = self.committed[start:]
        if held == wanted:
            return []
        return [
            (offset, entry)
            for offset, entry in enumerate(wanted, start)
            if self._commit_epochs[offset] < epoch and (offset - start >= len(held) or held[offset - start] != entry)
        ]

    def _advanced(self, node: SimulatedNode) -> None:
        """It may know more to be committed than before."""
        raft = node.raft
        assert raft is not None
        before, now = self._high_watermarks[node.node_id], raft.high_watermark
        assert now >= before, f"MonotonicHighWatermark: node {node.node_id} goes back from {before} to {now}"
        if now == before:
            return
        start = max(before, node.log.start_offset)
        held = node.log.entries(start, now)
        assert len(held) == max(now - start, 0), f"CommittedIsHeld: node {node.node_id} has no records up to {now}"
        known = self.committed[start : start + len(held)]
        assert held[: len(known)] == known, (
            f"CommittedIsSame: node {node.node_id} has {held[: len(known)][-3:]} below {now}, others {known[-3:]}"
        )
        new = held[len(known) :]
        if new:
            self._extend(node, start + len(known), new)
            self._check_later_leaders(node, raft.epoch)
        self._high_watermarks[node.node_id] = now
        self._acknowledge(node, now)

    def _extend(self, node: SimulatedNode, offset: int, entries: list[Entry]) -> None:
        assert offset == len(self.committed)
        self.committed += entries
        assert node.raft is not None
        self._commit_epochs += [node.raft.epoch] * len(entries)
        for batch in node.log.batches:
            for i, message in enumerate(batch.control):
                is_new = offset <= batch.base_offset + i < len(self.committed)
                if is_new and isinstance(message, KRaftVersionRecord | VotersRecord):
                    self.control.append((batch.base_offset + i, message))

    def _check_later_leaders(self, node: SimulatedNode, epoch: int) -> None:
        """Who was elected meanwhile has it, too."""
        for leader, led_epoch in self._leading.values():
            if led_epoch > epoch and leader.is_up:
                missing = self._missing(leader, led_epoch)
                assert not missing, (
                    f"LeaderCompleteness: node {node.node_id} commits in epoch {epoch} what the leader of {led_epoch}, "
                    f"node {leader.node_id}, lacks: {missing[:3]}"
                )

    def _acknowledge(self, node: SimulatedNode, high_watermark: int) -> None:
        """The client of a proposal is told when it is committed under the leader that took it."""
        assert node.raft is not None
        pending = self._pending[node.node_id]
        leads = node.raft.role is Role.LEADER
        done = [each for each in pending if each[0] < high_watermark and leads and each[1][0] == node.raft.epoch]
        for offset, entry in done:
            assert self.committed[offset : offset + 1] == [entry], (
                f"AcknowledgedIsCommitted: {entry} is not at {offset}"
            )
        self.acknowledged += done
        self._pending[node.node_id] = [each for each in pending if each[0] >= high_watermark and leads]

    def snapshot_taken(self, node: SimulatedNode, snapshot_id: SnapshotId, taken: MemorySnapshot) -> MemorySnapshot:
        """Those of the same id are the same, whoever took them."""
        committed = tuple(self.committed[: snapshot_id.end_offset])
        assert taken.entries == committed, f"SnapshotIsCommitted: that of node {node.node_id} up to {snapshot_id}"
        known = self.snapshots.setdefault(snapshot_id, taken)
        assert known == taken, f"SnapshotIsSame: node {node.node_id} has another one of {snapshot_id}"
        return known

    def control_records(self, node: SimulatedNode, end_offset: int) -> tuple[Message, ...]:
        """What a snapshot up to there says of the quorum."""
        before = [message for offset, message in self.control if offset < end_offset]
        latest: dict[type[Message], Message] = {type(message): message for message in before}
        return tuple(latest.values())

    # Of all of them

    def check_stale_leaders(self, now_ms: float) -> None:
        """A leader that lost its majority gives up: nobody reads from it what others have changed since."""
        if len(self._leading) < 2:
            self._superseded_ms = None
            return
        leading = [(epoch, node) for node, epoch in self._leading.values() if node.is_up and not node.is_paused]
        newest = max((epoch for epoch, _ in leading), default=0)
        stale = [node for epoch, node in leading if epoch < newest]
        if not stale:
            self._superseded_ms = None
        elif self._superseded_ms is None:
            self._superseded_ms = now_ms
        else:
            limit_ms = CHECK_QUORUM_MS * 1.2
            assert now_ms - self._superseded_ms < limit_ms, (
                f"LeaderHasMajority: node {stale[0].node_id} still leads an old epoch after {limit_ms} ms"
            )
