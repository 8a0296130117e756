"""Votes, pre-votes, and how a new leader and one that goes announce themselves (KIP-595, KIP-996).

Handles what peers ask and answer, and says what to ask next; `quorum_state` has the transitions.
"""

from __future__ import annotations

import logging
from functools import partial

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import quorum

from . import wire
from .answers import KnownNow, handle_common, is_of_cluster, log_unexpected
from .credible_epochs import LAST_EPOCH
from .epochs import OffsetAndEpoch
from .events import Destination
from .leader_state import LeaderState
from .quorum_state import QuorumState, Wanted
from .states import CandidateState, FollowerState, ProspectiveState, ResignedState, UnattachedState, Votes
from .voters import NO_DIRECTORY, Endpoint, ReplicaKey

logger = logging.getLogger(__name__)


class Elections:
    def __init__(self, quorum_state: QuorumState) -> None:
        self._quorum = quorum_state

    # Asked by a candidate

    def vote(self, request: quorum.VoteRequest, known: KnownNow) -> quorum.VoteResponse:
        if not is_of_cluster(self._quorum, request.cluster_id):
            return quorum.VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        partition = wire.partition_of(request)
        if partition is None:
            return quorum.VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
        error, granted = self._vote(request.voter_id, partition)
        return wire.vote_response(known(), error, granted=granted)

    def _vote(self, voter_id: int, asked: quorum.VoteRequestPartitionData) -> tuple[ErrorCode, bool]:
        state = self._quorum
        epoch, log_end = asked.replica_epoch, OffsetAndEpoch(asked.last_offset, asked.last_offset_epoch)
        is_impossible = log_end.epoch > epoch if asked.pre_vote else log_end.epoch >= epoch
        if log_end.offset < 0 or log_end.epoch < 0 or is_impossible:
            return ErrorCode.INVALID_REQUEST, False
        if epoch < state.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH, False
        if asked.replica_id < 0 or asked.replica_id == state.replica.node_id:
            return ErrorCode.INVALID_REQUEST, False
        state.peers.reconnect_backoff.heard_from(asked.replica_id)
        state.refusing.discard(asked.replica_id)
        if epoch > state.epoch:
            if not state.believes(epoch, f"a Vote of node {asked.replica_id}", asked=True):
                return ErrorCode.INVALID_REQUEST, False
            state.become_unattached(epoch)
        if not self._is_meant(voter_id, asked.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY, False
        candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
        is_up_to_date = (log_end.epoch, log_end.offset) >= (state.epochs.last_epoch, state.epochs.end_offset)
        granted = is_up_to_date and self._may_grant(candidate, pre_vote=asked.pre_vote)
        if granted and not asked.pre_vote and state.election.voted_id is None:
            state.grant_vote(candidate)
        elif not is_up_to_date:
            self._stand_instead()
        logger.info(
            "raft node %d: %s of node %d in epoch %d: %s",
            state.replica.node_id,
            "pre-vote" if asked.pre_vote else "vote",
            candidate.node_id,
            epoch,
            "granted" if granted else "rejected",
        )
        return ErrorCode.NONE, granted

    def _stand_instead(self) -> None:
        """Stand soon: a candidate lacks records that this log has, and cannot be elected."""
        state = self._quorum.state
        if isinstance(state, UnattachedState) and self._quorum.leader_id is None:
            state.election_deadline_ms = min(state.election_deadline_ms, self._quorum.soon_ms())

    def _may_grant(self, candidate: ReplicaKey, *, pre_vote: bool) -> bool:
        """Tell whether the role allows a vote for a candidate whose log is complete.

        An observer grants as well, since it may be a voter without knowing it; the candidate counts voters alone.
        """
        quorum_state, state = self._quorum, self._quorum.state
        match state:
            case LeaderState():
                return False
            case FollowerState():
                is_silent = quorum_state.now_ms >= state.fetch_deadline_ms  # who knows that it votes asks itself then
                return pre_vote and (state.leader_is_gone or not state.has_fetched or is_silent)
            case CandidateState() | ResignedState():
                return pre_vote
            case UnattachedState() | ProspectiveState():
                if pre_vote:
                    return True
                election = quorum_state.election
                if election.voted_id is not None:
                    voted_for = ReplicaKey(election.voted_id, election.voted_directory_id)
                    return candidate.node_id == voted_for.node_id and voted_for.directory_id in (
                        NO_DIRECTORY,
                        candidate.directory_id,
                    )
                return election.leader_id is None

    def _is_meant(self, voter_id: int, directory_id: bytes) -> bool:
        """Old versions do not say whom they mean."""
        if voter_id < 0:
            return True
        key = self._quorum.replica.key
        return voter_id == key.node_id and directory_id in (NO_DIRECTORY, key.directory_id)

    # Asked by a leader

    def begin_quorum_epoch(
        self, request: quorum.BeginQuorumEpochRequest, known: KnownNow
    ) -> quorum.BeginQuorumEpochResponse:
        if not is_of_cluster(self._quorum, request.cluster_id):
            return quorum.BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        partition = wire.partition_of(request)
        if partition is None:
            return quorum.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        error = self._told_by_leader(partition.leader_id, partition.leader_epoch, request.leader_endpoints)
        if error is ErrorCode.NONE and not self._is_meant(request.voter_id, partition.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
        return wire.begin_quorum_epoch_response(known(), error)

    def end_quorum_epoch(self, request: quorum.EndQuorumEpochRequest, known: KnownNow) -> quorum.EndQuorumEpochResponse:
        if not is_of_cluster(self._quorum, request.cluster_id):
            return quorum.EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        partition = wire.partition_of(request)
        if partition is None:
            return quorum.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        error = self._told_by_leader(partition.leader_id, partition.leader_epoch, request.leader_endpoints)
        state = self._quorum.state
        if error is ErrorCode.NONE and isinstance(state, FollowerState) and state.leader.node_id == partition.leader_id:
            state.leader_is_gone = True
            state.fetch_deadline_ms = self._quorum.now_ms + self._succession_backoff_ms(partition)
        return wire.end_quorum_epoch_response(known(), error)

    def _told_by_leader(self, leader_id: int, epoch: int, endpoints: list[quorum.LeaderEndpoint]) -> ErrorCode:
        if epoch < self._quorum.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if leader_id < 0 or not self._quorum.believes(epoch, f"node {leader_id} as a leader", asked=True):
            return ErrorCode.INVALID_REQUEST
        named = [each for each in endpoints if each.name == self._quorum.replica.listener_name] or endpoints
        endpoint = Endpoint(named[0].name, named[0].host, named[0].port) if named else None
        told = wire.Leadership(epoch, leader_id, endpoint)
        return ErrorCode.NONE if self._quorum.follow(told, by_leader=True) else ErrorCode.INVALID_REQUEST

    def _succession_backoff_ms(self, partition: quorum.EndQuorumEpochRequestPartitionData) -> int:
        """The first of those whom the leader would like stands at once, each further one later."""
        key = self._quorum.replica.key
        successors = [(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates]
        successors = successors or [(node_id, NO_DIRECTORY) for node_id in partition.preferred_successors]
        matching = [
            i
            for i, (node_id, directory_id) in enumerate(successors)
            if node_id == key.node_id and directory_id in (NO_DIRECTORY, key.directory_id)
        ]
        longest_ms = self._quorum.timeouts.election_backoff_max_ms
        if not matching:
            return longest_ms
        position = matching[0]
        if position == 0:
            return 0
        return min(longest_ms, longest_ms >> min(len(successors) - 1, 30) << (position - 1))

    # Answers

    def vote_answered(self, source: Destination, request: quorum.VoteRequest, answer: quorum.VoteResponse) -> bool:
        """False where it was no use, and asking again should wait a little."""
        partition = wire.partition_of(answer) if answer.error_code == ErrorCode.NONE else None
        pre_vote = request.topics[0].partitions[0].pre_vote
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and pre_vote:
            self._count(source.node_id, granted=True, pre_vote=True)  # it votes, but does not know of pre-votes
            return True
        if partition is None:
            return log_unexpected(self._quorum, source, answer)
        told = wire.leadership(partition.leader_epoch, partition.leader_id, answer.node_endpoints)
        handled = handle_common(self._quorum, told, partition.error_code, source)
        if handled is not None:
            return handled
        if partition.error_code != ErrorCode.NONE:
            return log_unexpected(self._quorum, source, answer)
        self._count(source.node_id, granted=partition.vote_granted, pre_vote=pre_vote)
        return True

    def vote_failed(self, source: Destination, request: quorum.VoteRequest) -> None:
        """Count a voter without a process as one that does not grant its vote.

        A candidate that cannot win without that vote tries again soon, and does not wait for its election timeout: of
        three voters with one gone, the other two may have stood at once.
        """
        asked = request.topics[0].partitions[0]
        state = self._quorum.state
        if isinstance(state, CandidateState) and not asked.pre_vote and asked.replica_epoch == self._quorum.epoch:
            state.votes.absent.add(source.node_id)
            self._count(source.node_id, granted=False, pre_vote=False)

    def _count(self, voter_id: int, *, granted: bool, pre_vote: bool) -> None:
        state = self._quorum.state
        if not isinstance(state, ProspectiveState if pre_vote else CandidateState):
            return
        votes = state.votes
        if voter_id in votes.voters:
            (votes.granted if granted else votes.rejected).add(voter_id)
        self.counted()

    def counted(self) -> None:
        """Draw the consequences of the votes so far; `leading` writes the first record of an elected leader."""
        state = self._quorum.state
        if isinstance(state, ProspectiveState):
            if state.votes.is_won:
                self._quorum.become_candidate()
            elif state.votes.is_lost:
                self._give_up(state)
        elif isinstance(state, CandidateState) and state.votes.is_lost and state.backoff_deadline_ms is None:
            state.backoff_deadline_ms = self._quorum.now_ms + self._quorum.defeat_pause_ms(state)

    def _give_up(self, state: ProspectiveState) -> None:
        """Return to the known leader, or wait for one, because no majority wants an election."""
        quorum_state = self._quorum
        if quorum_state.leader_id is not None and state.leader is not None:
            attempts = state.attempts
            quorum_state.become_follower(quorum_state.epoch, quorum_state.leader_id, state.leader)
            follower = quorum_state.state
            assert isinstance(follower, FollowerState)
            follower.attempts = attempts
        else:
            deadline_ms = quorum_state.now_ms + quorum_state.election_backoff_ms(state.attempts)
            quorum_state.become_unattached(quorum_state.epoch, quorum_state.leader_id, deadline_ms=deadline_ms)

    def begin_quorum_epoch_answered(self, source: Destination, answer: quorum.BeginQuorumEpochResponse) -> bool:
        partition = wire.partition_of(answer) if answer.error_code == ErrorCode.NONE else None
        if partition is None:
            return log_unexpected(self._quorum, source, answer)
        told = wire.leadership(partition.leader_epoch, partition.leader_id, answer.node_endpoints)
        handled = handle_common(self._quorum, told, partition.error_code, source)
        state = self._quorum.state
        if isinstance(state, LeaderState) and source.node_id in state.voters:
            due_ms = self._quorum.now_ms + self._quorum.timeouts.begin_quorum_epoch_ms
            state.voters[source.node_id].begin_epoch_due_ms = due_ms
        if handled is not None:
            return handled
        return partition.error_code == ErrorCode.NONE or log_unexpected(self._quorum, source, answer)

    def end_quorum_epoch_answered(self, source: Destination, answer: quorum.EndQuorumEpochResponse) -> bool:
        partition = wire.partition_of(answer) if answer.error_code == ErrorCode.NONE else None
        if partition is None:
            return log_unexpected(self._quorum, source, answer)
        state = self._quorum.state
        if isinstance(state, ResignedState):
            state.unacknowledged.discard(source.node_id)
        told = wire.leadership(partition.leader_epoch, partition.leader_id, answer.node_endpoints)
        handled = handle_common(self._quorum, told, partition.error_code, source)
        return handled if handled is not None else partition.error_code == ErrorCode.NONE

    # Time

    def tick(self) -> None:
        quorum_state, now_ms = self._quorum, self._quorum.now_ms
        match quorum_state.state:
            case UnattachedState() as state if quorum_state.may_stand and now_ms >= state.election_deadline_ms:
                if quorum_state.voters.is_only(quorum_state.replica.key):
                    quorum_state.become_candidate()
                else:
                    self._ask_for_pre_votes()
            case ProspectiveState() as state if now_ms >= state.election_deadline_ms:
                self._give_up(state)
            case CandidateState() as state:
                deadline_ms = state.election_deadline_ms
                if state.backoff_deadline_ms is not None:
                    deadline_ms = min(deadline_ms, state.backoff_deadline_ms)
                if now_ms >= deadline_ms:
                    self._ask_for_pre_votes()
            case FollowerState() as state if quorum_state.may_stand and now_ms >= state.fetch_deadline_ms:
                self._ask_for_pre_votes()
            case ResignedState() as state if now_ms >= state.election_deadline_ms:
                quorum_state.become_unattached(min(quorum_state.epoch + 1, LAST_EPOCH), deadline_ms=now_ms)
            case _:
                pass

    def _ask_for_pre_votes(self) -> None:
        if self._quorum.may_stand:
            self._quorum.become_prospective()
            self.counted()
        else:
            self._quorum.become_unattached(self._quorum.epoch, self._quorum.leader_id)

    def deadline_ms(self) -> int | None:
        match self._quorum.state:
            case UnattachedState() as state:
                return state.election_deadline_ms if self._quorum.may_stand else None
            case ProspectiveState() as state:
                return state.election_deadline_ms
            case CandidateState() as state:
                if state.backoff_deadline_ms is not None:
                    return min(state.election_deadline_ms, state.backoff_deadline_ms)
                return state.election_deadline_ms
            case FollowerState() as state:
                return state.fetch_deadline_ms if self._quorum.may_stand else None
            case ResignedState() as state:
                return state.election_deadline_ms
            case _:
                return None

    def wanted(self) -> list[Wanted]:
        match self._quorum.state:
            case ProspectiveState() as state:
                return self._votes_wanted(state.votes, pre_vote=True)
            case CandidateState() as state if state.backoff_deadline_ms is None:
                return self._votes_wanted(state.votes, pre_vote=False)
            case ResignedState() as state:
                return self._farewells_wanted(state)
            case _:
                return []

    def _votes_wanted(self, votes: Votes, *, pre_vote: bool) -> list[Wanted]:
        wanted: list[Wanted] = []
        quorum_state = self._quorum
        for node_id in votes.outstanding():
            voter = votes.voters.get(node_id)
            if voter is not None and node_id != quorum_state.replica.node_id:
                build = partial(
                    wire.vote_request,
                    quorum_state.replica,
                    voter.key,
                    quorum_state.epoch,
                    quorum_state.epochs.end,
                    pre_vote=pre_vote,
                )
                wanted.append((quorum_state.destination_of(voter), build))
        return wanted

    def _farewells_wanted(self, state: ResignedState) -> list[Wanted]:
        quorum_state = self._quorum
        build = partial(wire.end_quorum_epoch_request, quorum_state.replica, quorum_state.epoch, state.successors)
        return [
            (quorum_state.destination_of(voter), build)
            for voter in quorum_state.other_voters()
            if voter.node_id in state.unacknowledged
        ]
