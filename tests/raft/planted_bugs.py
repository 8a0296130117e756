"""Mistakes that implementations of raft have made, each to be planted into every node of a simulated quorum.

Each is a function of a node, called before it starts for the first time, and changes that node alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from types import MethodType

from pykbroker.raft.events import Destination
from pykbroker.raft.leader_state import LeaderState
from pykbroker.raft.node import RaftNode
from pykbroker.raft.quorum_state import QuorumState
from pykbroker.raft.states import FollowerState
from pykbroker.raft.timeouts import Timeouts
from pykbroker.raft.voters import ReplicaKey
from pykbroker.raft.wire import Leadership
from tests.simulations import Hunt

from .simulated_node import TIMEOUTS, SimulatedNode
from .simulation import Simulation, Violation

Plant = Callable[[SimulatedNode], None]


def vote_not_persisted(node: SimulatedNode) -> None:
    node.stores_elections = False


def fetch_offset_told_before_the_flush(node: SimulatedNode) -> None:
    """A crash takes away what the leader counts on. Disks are slow, so that it does often."""
    node.waits_for_flush = False
    node.flush_ms = 200.0


def nothing_flushed(node: SimulatedNode) -> None:
    node.flushes = False


def truncation_skipped(node: SimulatedNode) -> None:
    """The offset moves back, the records stay."""

    def change(raft: RaftNode) -> None:
        quorum = raft._quorum

        def truncate(self: QuorumState, offset: int) -> None:
            self.outbox.truncate_to = None

        quorum.truncate = MethodType(truncate, quorum)  # type: ignore[method-assign]
        log_end = quorum.epochs

        def end_of_leader(self: object, epoch: int) -> object:
            return log_end.end

        log_end.end_of = MethodType(end_of_leader, log_end)  # type: ignore[method-assign,assignment]

    node.change_raft = change


def vote_though_the_log_is_behind(node: SimulatedNode) -> None:
    def change(raft: RaftNode) -> None:
        elections = raft._elections
        vote = elections._vote

        def give(self: object, voter_id: int, asked: object) -> object:
            end = raft._quorum.epochs.end
            asked.last_offset_epoch = max(end.epoch, asked.last_offset_epoch)  # type: ignore[attr-defined]
            asked.last_offset = max(end.offset, asked.last_offset)  # type: ignore[attr-defined]
            return vote(voter_id, asked)  # type: ignore[arg-type]

        elections._vote = MethodType(give, elections)  # type: ignore[method-assign,assignment]

    node.change_raft = change


def two_votes_in_an_epoch(node: SimulatedNode) -> None:
    def change(raft: RaftNode) -> None:
        may_grant = raft._elections._may_grant

        def grant(self: object, candidate: object, *, pre_vote: bool) -> bool:
            raft._quorum.election = type(raft._quorum.election)(raft.epoch, raft.leader_id)
            return may_grant(candidate, pre_vote=pre_vote)  # type: ignore[arg-type]

        raft._elections._may_grant = MethodType(grant, raft._elections)  # type: ignore[method-assign,assignment]

    node.change_raft = change


class _Patient(Timeouts):
    @property
    def check_quorum_ms(self) -> int:
        return 1_000_000_000


def leader_without_a_majority_stays(node: SimulatedNode) -> None:
    node.timeouts = _Patient(**asdict(TIMEOUTS))


def elected_by_a_minority(node: SimulatedNode) -> None:
    def change(raft: RaftNode) -> None:
        become_candidate = raft._quorum.become_candidate

        def become(self: QuorumState) -> None:
            become_candidate()
            votes = self.state.votes  # type: ignore[union-attr]
            for node_id in votes.voters.ids[:2]:
                votes.granted.add(node_id)

        raft._quorum.become_candidate = MethodType(become, raft._quorum)  # type: ignore[method-assign]

    node.change_raft = change


def committed_by_one_too_few(node: SimulatedNode) -> None:
    def change(raft: RaftNode) -> None:
        become_leader = raft._quorum.become_leader

        def become(self: QuorumState) -> LeaderState:
            leader = become_leader()
            leader.advance_high_watermark = lambda end: _commit_own(leader, end)  # type: ignore[method-assign]
            return leader

        raft._quorum.become_leader = MethodType(become, raft._quorum)  # type: ignore[method-assign]

    node.change_raft = change


def _commit_own(leader: LeaderState, own_end_offset: int) -> bool:
    if own_end_offset <= max(leader.epoch_start_offset, leader.high_watermark or 0):
        return False
    leader.high_watermark = own_end_offset
    return True


def divergence_not_noticed(node: SimulatedNode) -> None:
    """The leader goes by the offset alone."""

    def change(raft: RaftNode) -> None:
        divergence = raft._leading._divergence

        def ignore(self: object, asked: object) -> object:
            found = divergence(asked)  # type: ignore[arg-type]
            is_behind = asked.fetch_offset <= raft._quorum.epochs.end_offset  # type: ignore[attr-defined]
            return None if is_behind and not hasattr(found, "end_offset") else found

        raft._leading._divergence = MethodType(ignore, raft._leading)  # type: ignore[method-assign,assignment]

    node.change_raft = change


def observers_counted(node: SimulatedNode) -> None:
    """As if they could vote."""

    def change(raft: RaftNode) -> None:
        become_leader = raft._quorum.become_leader

        def become(self: QuorumState) -> LeaderState:
            leader = become_leader()
            others = leader.others
            leader.others = lambda: iter([*others(), *leader.observers.values()])  # type: ignore[method-assign]
            return leader

        raft._quorum.become_leader = MethodType(become, raft._quorum)  # type: ignore[method-assign]

    node.change_raft = change


def observers_stay_with_who_does_not_lead(node: SimulatedNode) -> None:
    """Whatever it answers: only one that does not answer is left."""

    def change(raft: RaftNode) -> None:
        def note(told: Leadership, error_code: int, source: Destination) -> None:
            state = raft._quorum.state
            if isinstance(state, FollowerState) and told.leader_id == raft._quorum.leader_id:
                state.fetch_elsewhere = False

        raft._quorum.note_told = note  # type: ignore[method-assign]

    node.change_raft = change


def epoch_of_a_peer_not_taken_up(node: SimulatedNode) -> None:
    """A leader that hears of a later epoch goes on."""
    leader_without_a_majority_stays(node)

    def change(raft: RaftNode) -> None:
        become_unattached, follow = raft._quorum.become_unattached, raft._quorum.follow

        def stay(
            self: QuorumState, epoch: int, leader_id: int | None = None, *, deadline_ms: int | None = None
        ) -> None:
            if not isinstance(self.state, LeaderState):
                become_unattached(epoch, leader_id, deadline_ms=deadline_ms)

        def refuse(self: QuorumState, told: object, *, by_leader: bool = False) -> bool:
            return isinstance(self.state, LeaderState) or follow(told, by_leader=by_leader)  # type: ignore[arg-type]

        raft._quorum.become_unattached = MethodType(stay, raft._quorum)  # type: ignore[method-assign]
        raft._quorum.follow = MethodType(refuse, raft._quorum)  # type: ignore[method-assign]

    node.change_raft = change


def voters_changed_without_waiting(node: SimulatedNode) -> None:
    """Two sets need not share a majority any more."""

    def change(raft: RaftNode) -> None:
        raft._voter_changes._ensure_idle = lambda needs_level=1: None  # type: ignore[method-assign]

    node.change_raft = change


def voters_alone_are_voted_for(node: SimulatedNode) -> None:
    """As this node knows them: who became one lately gets no vote of it."""

    def change(raft: RaftNode) -> None:
        may_grant = raft._elections._may_grant

        def grant(self: object, candidate: ReplicaKey, *, pre_vote: bool) -> bool:
            return raft.voters.has(candidate) and may_grant(candidate, pre_vote=pre_vote)

        raft._elections._may_grant = MethodType(grant, raft._elections)  # type: ignore[method-assign]

    node.change_raft = change


def left_out_at_once(node: SimulatedNode) -> None:
    """Who is left out by a set of voters that is not committed yet may have the only log that could be elected."""

    def change(raft: RaftNode) -> None:
        class Hasty(QuorumState):
            @property
            def may_stand(self) -> bool:
                return self.is_voter

        raft._quorum.__class__ = Hasty

    node.change_raft = change


PLANTS: dict[Plant, int] = {
    vote_not_persisted: 0,
    fetch_offset_told_before_the_flush: 389,
    nothing_flushed: 14,
    truncation_skipped: 0,
    vote_though_the_log_is_behind: 0,
    two_votes_in_an_epoch: 0,
    elected_by_a_minority: 7,
    committed_by_one_too_few: 1,
    divergence_not_noticed: 8,
    observers_counted: 89,
    observers_stay_with_who_does_not_lead: 970005196,
    epoch_of_a_peer_not_taken_up: 1,
    voters_changed_without_waiting: 209,
    voters_alone_are_voted_for: 5900,
    left_out_at_once: 363,
}
"""Each with the seed of a run that finds it."""


def _finds(bug: str, seed: int) -> bool:
    [plant] = [each for each in PLANTS if each.__name__ == bug]
    try:
        Simulation(seed, prepare=plant).run()
    except Violation:
        return True
    return False


HUNT = Hunt("raft", {plant.__name__: seed for plant, seed in PLANTS.items()}, _finds)
