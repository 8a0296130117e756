"""The leader's knowledge of the replicas that fetch from it, by which it commits records and knows whether it leads.

The model is Kafka's `LeaderState`. Times are of the clock that `RaftNode` is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .timeouts import Timeouts
from .voters import ReplicaKey, Voter, VoterSet

OBSERVER_SESSION_MS = 300_000
"""An observer that does not fetch for so long is forgotten."""

MOST_OBSERVERS = 1_000
"""Anybody can fetch under any name. Of more than these, whoever fetched longest ago is forgotten."""


@dataclass(slots=True)
class ReplicaProgress:
    """The progress of one replica that fetches.

    end_offset: up to where the replica has the log on its disk; None before its first fetch. Times: None for never.
    """

    key: ReplicaKey
    end_offset: int | None = None
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None
    leader_end_offset_at_fetch: int = -1
    begin_epoch_due_ms: int = 0
    """When it is to be told next who leads."""

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Caught up is who has what the leader had when it was asked before (as Kafka counts)."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif self.last_fetch_ms is not None and offset >= self.leader_end_offset_at_fetch >= 0:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms or 0)
        self.end_offset = offset
        self.last_fetch_ms = now_ms
        self.leader_end_offset_at_fetch = leader_end_offset


class LeaderState:
    """The role of the leader.

    key: the leader's own replica. start_offset: the offset at which its epoch begins in the log.
    """

    def __init__(
        self, key: ReplicaKey, voters: VoterSet, granting: list[int], start_offset: int, timeouts: Timeouts, now_ms: int
    ) -> None:
        self.key = key
        self.granting_voters = granting
        self.epoch_start_offset = start_offset
        self.high_watermark: int | None = None
        """None until a record of this epoch is committed."""
        self.voters: dict[int, ReplicaProgress] = {}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        """Whoever fetched last is the last one."""
        self.described: dict[int, Voter] = {}
        """What static voters told of themselves: directories, endpoints, versions."""
        self._timeouts = timeouts
        self._voter_set = voters
        self._heard_from: set[int] = set()
        self._check_quorum_deadline_ms = now_ms + timeouts.check_quorum_ms
        self.set_voters(voters, now_ms)

    def set_voters(self, voters: VoterSet, now_ms: int) -> None:
        """Make observers of former voters, and voters of former observers. A leader that was the only voter begins to
        wait for the others now.
        """
        if self.check_quorum_deadline_ms is None:
            self._check_quorum_deadline_ms = now_ms + self._timeouts.check_quorum_ms
        known = {each.key: each for each in [*self.voters.values(), *self.observers.values()]}
        self._voter_set = voters
        self.voters = {voter.node_id: self._progress_of(voter.key, known) for voter in voters}
        counted = {id(each) for each in self.voters.values()}
        self.observers = {key: each for key, each in known.items() if id(each) not in counted and key != self.key}
        self._heard_from &= set(self.voters)

    def _progress_of(self, key: ReplicaKey, known: dict[ReplicaKey, ReplicaProgress]) -> ReplicaProgress:
        if key in known:
            return known[key]
        return next(
            (each for each in known.values() if self._voter_set.has(each.key) and each.key.node_id == key.node_id),
            ReplicaProgress(key),
        )

    def others(self) -> Iterator[ReplicaProgress]:
        """The voters but the leader, by id."""
        return (self.voters[node_id] for node_id in sorted(self.voters) if node_id != self.key.node_id)

    def progress_of(self, key: ReplicaKey) -> ReplicaProgress:
        """Return the progress of a replica; one that is no voter becomes an observer."""
        progress = self.voters.get(key.node_id)
        if progress is not None and self._voter_set.has(key):
            progress.key = key
            return progress
        observer = self.observers.pop(key, None) or ReplicaProgress(key)
        self.observers[key] = observer
        if len(self.observers) > MOST_OBSERVERS:
            del self.observers[next(iter(self.observers))]
        return observer

    def is_voter(self, key: ReplicaKey) -> bool:
        return self._voter_set.has(key)

    def latest_directory_of(self, node_id: int) -> bytes | None:
        """Return the directory with which the observer `node_id` fetched last.

        An earlier directory of the node is gone and must not become a voter: a majority could need it. (Kafka asks only
        whether that directory fetched within an hour.)
        """
        return next((key.directory_id for key in reversed(self.observers) if key.node_id == node_id), None)

    # What is committed

    def advance_high_watermark(self, own_end_offset: int) -> bool:
        """Commit what a majority has on its disks, once a record of the leader's own epoch is among it (Raft §5.4.2).

        Return whether the high watermark moved.
        """
        held = [each.end_offset for each in self.others() if each.end_offset is not None]
        if self.key.node_id in self.voters:
            held.append(own_end_offset)
        if len(held) < self._voter_set.majority:
            return False
        committed = sorted(held, reverse=True)[self._voter_set.majority - 1]
        if committed <= self.epoch_start_offset or committed <= (self.high_watermark or 0):
            return False
        self.high_watermark = committed
        return True

    # Whether it still leads

    @property
    def _others_needed(self) -> int:
        return self._voter_set.majority - (1 if self.key.node_id in self.voters else 0)

    def heard_from(self, key: ReplicaKey, now_ms: int) -> None:
        """Note that a voter follows. A leader needs a majority of voters within the time (KIP-595, check quorum)."""
        if not self.is_voter(key) or key.node_id == self.key.node_id:
            return
        self.voters[key.node_id].begin_epoch_due_ms = now_ms + self._timeouts.begin_quorum_epoch_ms
        self._heard_from.add(key.node_id)
        if len(self._heard_from) >= self._others_needed:
            self._heard_from.clear()
            self._check_quorum_deadline_ms = now_ms + self._timeouts.check_quorum_ms

    @property
    def check_quorum_deadline_ms(self) -> int | None:
        """Return None where it needs nobody else."""
        return self._check_quorum_deadline_ms if self._others_needed > 0 else None

    def successors(self) -> list[ReplicaKey]:
        """The other voters, those who have most of the log first."""
        ordered = sorted(
            self.others(), key=lambda each: -1 if each.end_offset is None else each.end_offset, reverse=True
        )
        return [each.key for each in ordered]

    def forget_silent_observers(self, now_ms: int) -> None:
        while self.observers:
            key, longest_silent = next(iter(self.observers.items()))
            fetched_ms = longest_silent.last_fetch_ms
            if fetched_ms is not None and now_ms - fetched_ms < OBSERVER_SESSION_MS:
                return
            del self.observers[key]
