"""The state of a member of the quorum, and its transitions from one role to another (Kafka's `QuorumState`).

The parts of the member share this state: epoch and vote, the log's end, the voters, the requests under way. A
transition changes the role and what must be durable with it, and nothing else. `elections`, `following` and `leading`
decide when one is due. The roles, and what ends each:

- Unattached: it knows no leader to fetch from. It becomes a follower when somebody names the leader, and prospective
  when its election time-out ends.
- Prospective: it asks voters whether they would elect it, in its epoch of now (pre-vote, KIP-996). A majority makes it
  a candidate; a majority against it sends it back to the leader that it knew, or to unattached.
- Candidate: it has voted for itself in a new epoch. A majority makes it the leader; after a defeat it waits a random
  time and becomes prospective again.
- Leader: it has appended a LeaderChangeMessage. It resigns where no majority fetches in time, or when it stops.
- Resigned: it tells the others, and is unattached in the next epoch when its election time-out ends.
- Follower: it fetches from the leader. Where the leader is silent for the fetch time-out, or its port refuses, a voter
  becomes prospective; an observer asks others for the leader.

An epoch never falls, a vote in an epoch never changes, and an epoch has one leader: epoch and vote are durable before a
message leaves that depends on them. A higher epoch ends every role, if it is credible (`credible_epochs`). Brokers and
nodes that are no voters are observers: they are unattached or followers, and do not enter an epoch that a response
names without its leader. Files, time and sockets are the caller's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from random import Random

from pykbroker.protocol.schema import Message

from .complaints import Complaints
from .credible_epochs import LAST_EPOCH, RequestedEpochs, credible_election, is_credible_answer
from .election_state import ElectionState
from .epochs import EpochChain
from .events import Append, ControlRecords, Destination
from .fetch_sizes import FetchSizes
from .leader_state import LeaderState
from .outbox import Outbox
from .peers import Peers
from .raft_log import RaftLog
from .replica import LocalReplica
from .states import CandidateState, FollowerState, ProspectiveState, ResignedState, Role, UnattachedState, Votes
from .timeouts import Timeouts
from .voter_history import VoterSetHistory
from .voters import Endpoint, ReplicaKey, Voter, VoterSet
from .wire import FIRST_VERSION_WITH_ENDPOINTS, NO_LEADER, Known, Leadership

logger = logging.getLogger(__name__)

_SOON_MS = 50
"""Within which a voter stands that knows of no leader at all: pre-votes harm nobody, and chance keeps two apart."""

State = UnattachedState | ProspectiveState | CandidateState | LeaderState | FollowerState | ResignedState

_ROLES: dict[type[State], Role] = {
    UnattachedState: Role.UNATTACHED,
    ProspectiveState: Role.PROSPECTIVE,
    CandidateState: Role.CANDIDATE,
    LeaderState: Role.LEADER,
    FollowerState: Role.FOLLOWER,
    ResignedState: Role.RESIGNED,
}

Wanted = tuple[Destination, Callable[[], Message]]
"""A request to send as soon as its peer may be sent one."""


class QuorumState:
    def __init__(
        self,
        replica: LocalReplica,
        configured: VoterSet,
        election: ElectionState,
        log: RaftLog,
        *,
        rng: Random,
        timeouts: Timeouts,
        sizes: FetchSizes,
        bootstrap: Sequence[Endpoint],
    ) -> None:
        self.replica = replica
        self.log = log
        self.rng = rng
        self.timeouts = timeouts
        self.sizes = sizes
        self.bootstrap = bootstrap
        self.epochs = EpochChain.of_log(log)
        self.history = VoterSetHistory(configured, replica.listener_name)
        for offset, message in log.control_records():
            self.history.note(offset, message)
        self.peers = Peers(timeouts)
        self.complaints = Complaints()
        self._requested_epochs = RequestedEpochs()
        self.refusing: set[int] = set()
        """Nodes whose ports refused connections when they were last asked, and that have asked nothing since."""
        self.namesake: Destination | None = None
        """Another node with the id of this one: it says itself that it leads, and this one cannot."""
        self.outbox = Outbox()
        self.election = credible_election(election, replica, self.epochs.last_epoch)
        self.now_ms = 0
        snapshot = log.latest_snapshot_id
        self.high_watermark = snapshot.end_offset if snapshot is not None else 0
        self.durable_end_offset = log.end_offset
        self.durable_limit: int | None = None
        """Up to where what is being made durable is still part of the log: it was truncated meanwhile."""
        self.leader_endpoint: Endpoint | None = None
        led = self.election.leader_id == replica.node_id and not self.voters.is_only(replica.key)
        self.state: State = ResignedState(0, [], set()) if led else UnattachedState(0)
        assert self.election.epoch >= self.epochs.last_epoch, "the log holds an epoch that quorum-state does not know"

    @property
    def role(self) -> Role:
        return _ROLES[type(self.state)]

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int | None:
        return self.election.leader_id

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.replica.may_vote and self.voters.has(self.replica.key)

    @property
    def may_stand(self) -> bool:
        """A voter; and one that the latest set leaves out, while it may have to see to it that this is committed:
        without its log the others might elect nobody (Ongaro's thesis, §4.2.2).
        """
        if self.epoch >= LAST_EPOCH:
            return False
        if self.is_voter:
            return True
        offset, before = self.history.voters_offset, self.history.previous_voters
        is_open = offset is not None and offset >= self.high_watermark
        return is_open and self.replica.may_vote and before is not None and before.has(self.replica.key)

    def known(self, request: Message, api_version: int, listener_name: str) -> Known:
        """Return what the response to that request tells of the quorum."""
        leader_id = NO_LEADER if self.leader_id is None else self.leader_id
        endpoint = None
        if api_version >= FIRST_VERSION_WITH_ENDPOINTS.get(type(request), 0):
            endpoint = self._leader_endpoint_on(listener_name)
        return Known(self.epoch, leader_id, endpoint)

    def _leader_endpoint_on(self, listener_name: str) -> Endpoint | None:
        if self.leader_id == self.replica.node_id:
            own = [each for each in self.replica.endpoints if each.name == listener_name]
            return next(iter([*own, *self.replica.endpoints]), None)
        voter = self.voters.get(self.leader_id)
        return voter.endpoint(listener_name) if voter is not None else self.leader_endpoint

    def destination_of(self, voter: Voter) -> Destination:
        return Destination(voter.node_id, voter.host, voter.port)

    def other_voters(self) -> list[Voter]:
        return [voter for voter in self.voters if voter.node_id != self.replica.node_id]

    def bootstrap_destinations(self) -> list[Destination]:
        """Whom to ask who leads."""
        if self.bootstrap:
            return [Destination(-2 - i, each.host, each.port) for i, each in enumerate(self.bootstrap)]
        return [self.destination_of(voter) for voter in self.other_voters()]

    def random_election_deadline_ms(self) -> int:
        return self.now_ms + self.timeouts.election_ms + self.rng.randrange(self.timeouts.election_ms + 1)

    def soon_ms(self) -> int:
        return self.now_ms + self.rng.randrange(min(_SOON_MS, self.timeouts.election_ms) + 1)

    def election_backoff_ms(self, attempts: int) -> int:
        """Longer on the average after each defeat."""
        most_ms = min(_SOON_MS << min(attempts, 20), self.timeouts.election_backoff_max_ms)
        return self.rng.randrange(most_ms + 1)

    def defeat_pause_ms(self, candidate: CandidateState) -> int:
        """Return how long a defeated candidate waits before it stands again.

        Where all voters are there another one may have won, and needs a moment to say so: until then the others would
        grant the next pre-vote.
        """
        pause_ms = self.election_backoff_ms(candidate.attempts)
        return pause_ms if candidate.votes.absent else pause_ms + min(_SOON_MS, self.timeouts.election_ms)

    def complain(self, kind: Hashable, text: str, *arguments: object) -> None:
        """Log a fault of a peer, within the rate limit of its kind."""
        self.complaints.say(kind, self.now_ms, text, *arguments)

    def leader_destination(self) -> Destination | None:
        endpoint = self._leader_endpoint_on(self.replica.listener_name)
        if self.leader_id is None or endpoint is None or isinstance(self.state, ResignedState):
            return None
        return Destination(self.leader_id, endpoint.host, endpoint.port)

    # Transitions

    def start(self) -> None:
        """Begin with the stored state: follow the leader of before, or stand soon where nobody leads."""
        voter = self.voters.get(self.leader_id)
        if isinstance(self.state, ResignedState):
            self.state.election_deadline_ms = self.soon_ms()
        elif voter is not None and voter.node_id != self.replica.node_id:
            self.become_follower(self.epoch, voter.node_id, voter.endpoint(self.replica.listener_name))
        elif not self.voters.is_only(self.replica.key):
            self.state = UnattachedState(self.soon_ms())

    def become_unattached(self, epoch: int, leader_id: int | None = None, *, deadline_ms: int | None = None) -> None:
        """Enter the role without a leader to fetch from.

        leader_id: the leader, where it is known but not its address.
        """
        assert epoch >= self.epoch
        attempts = (
            self.state.attempts if isinstance(self.state, UnattachedState | ProspectiveState | CandidateState) else 0
        )
        if deadline_ms is None:
            if isinstance(self.state, UnattachedState | ProspectiveState | CandidateState):
                deadline_ms = max(self.state.election_deadline_ms, self.now_ms)
            else:
                deadline_ms = self.random_election_deadline_ms()
        self._set_epoch(epoch, leader_id)
        self._enter(UnattachedState(deadline_ms, attempts))

    def become_prospective(self) -> None:
        assert self.may_stand
        assert not isinstance(self.state, LeaderState)
        attempts = (
            self.state.attempts + 1
            if isinstance(self.state, UnattachedState | ProspectiveState | CandidateState | FollowerState)
            else 1
        )
        votes = Votes(self.voters)
        votes.grant(self.replica.node_id)
        self._enter(ProspectiveState(votes, self.random_election_deadline_ms(), attempts, self.leader_endpoint))

    def become_candidate(self) -> None:
        """The own vote counts when it is durable."""
        assert self.may_stand
        attempts = self.state.attempts if isinstance(self.state, ProspectiveState) else 1
        self.election = ElectionState(
            self.epoch + 1, voted_id=self.replica.node_id, voted_directory_id=self.replica.directory_id
        )
        self.leader_endpoint = None
        self.peers.reconnect_backoff.clear()  # enough voters are there, and whether the others are is of interest now
        self._enter(CandidateState(Votes(self.voters), self.random_election_deadline_ms(), attempts))

    def become_follower(self, epoch: int, leader_id: int, endpoint: Endpoint) -> None:
        assert epoch >= self.epoch
        assert leader_id != self.replica.node_id
        self._set_epoch(epoch, leader_id)
        self.leader_endpoint = endpoint
        leader = Destination(leader_id, endpoint.host, endpoint.port)
        update_ms = self.now_ms + self.timeouts.fetch_ms if self.history.kraft_version < 1 else 0
        self._enter(FollowerState(leader, self.now_ms + self.timeouts.fetch_ms, update_voter_deadline_ms=update_ms))

    def become_leader(self) -> LeaderState:
        assert isinstance(self.state, CandidateState)
        assert self.epoch > self.epochs.last_epoch
        self.election = ElectionState(self.epoch, leader_id=self.replica.node_id)
        granting = sorted(self.state.votes.granted)
        leader = LeaderState(
            self.replica.key, self.voters, granting, self.epochs.end_offset, self.timeouts, self.now_ms
        )
        self._enter(leader)
        return leader

    def become_resigned(self, successors: list[ReplicaKey]) -> None:
        assert isinstance(self.state, LeaderState)
        unacknowledged = {voter.node_id for voter in self.other_voters()}
        self._enter(ResignedState(self.random_election_deadline_ms(), successors, unacknowledged))

    def grant_vote(self, candidate: ReplicaKey) -> None:
        """The one vote of this epoch."""
        assert isinstance(self.state, UnattachedState | ProspectiveState)
        assert self.election.voted_id in (None, candidate.node_id)
        self.election = ElectionState(self.epoch, voted_id=candidate.node_id, voted_directory_id=candidate.directory_id)
        if isinstance(self.state, UnattachedState):
            self.state.election_deadline_ms = self.random_election_deadline_ms()

    def note_told(self, told: Leadership, error_code: int, source: Destination) -> None:
        """Note what the answer to a follower's Fetch or FetchSnapshot tells.

        An observer asks others where its leader refuses it and does not lead. That one may have lost its disk, and the
        next leader announces itself to voters alone.
        """
        state = self.state
        if not isinstance(state, FollowerState):
            return
        if told.leader_id == self.leader_id:
            state.fetch_elsewhere = False
        elif error_code and source == state.leader and not self.is_voter:
            state.fetch_elsewhere = True

    def follow(self, told: Leadership, *, by_leader: bool = False) -> bool:
        """Take up what a peer says of the leader. False where it contradicts what is known of this epoch.

        by_leader: the leader itself says it, so it is alive.
        """
        leader_id, epoch = told.leader_id, told.epoch
        if leader_id == self.replica.node_id and leader_id is not None:
            return isinstance(self.state, LeaderState) and epoch == self.epoch
        if epoch == self.epoch and leader_id is not None and self.leader_id not in (None, leader_id):
            return False
        if leader_id is None:
            if epoch > self.epoch:
                self._leave_epoch(epoch)
        elif epoch > self.epoch or self.leader_id is None or self._may_go_back(by_leader):
            endpoint = told.endpoint or self._voter_endpoint(leader_id)
            if endpoint is not None:
                self.become_follower(epoch, leader_id, endpoint)
            elif epoch > self.epoch or self.leader_id is None:
                self.become_unattached(epoch, leader_id)
        return True

    def _leave_epoch(self, newer_epoch: int) -> None:
        """End the own role, because a newer epoch has begun, and a leader of it is not known.

        An observer keeps its epoch until it hears of a leader: it does not vote, so nothing depends on its epoch. The
        candidate of the newer epoch may be gone for good while the voters live on in the older one. An observer tells
        them nothing, and would be refused as long as their leader stays (UNKNOWN_LEADER_EPOCH).
        """
        if self.may_stand:
            self.become_unattached(newer_epoch)
        elif isinstance(self.state, FollowerState):
            self.state.fetch_elsewhere = True

    def _may_go_back(self, by_leader: bool) -> bool:
        return isinstance(self.state, UnattachedState) or (by_leader and isinstance(self.state, ProspectiveState))

    def believes(self, epoch: int, source: object, *, asked: bool) -> bool:
        """Tell whether a peer can have reached that epoch (see `credible_epochs`). source: who says it.

        asked: by anybody in a request; otherwise it is the answer of a peer that this node asked.
        """
        own, last_written = self.epoch, self.epochs.last_epoch
        if asked:
            is_credible = self._requested_epochs.take(epoch, own=own, last_written=last_written, now_ms=self.now_ms)
        else:
            is_credible = is_credible_answer(epoch, own=own, last_written=last_written)
        if is_credible:
            return True
        text = "raft node %d: %s says that the epoch is %d, and no node can be there: here it is %d"
        self.complain(("epoch", asked), text, self.replica.node_id, source, epoch, self.epoch)
        return False

    def _voter_endpoint(self, node_id: int) -> Endpoint | None:
        voter = self.voters.get(node_id)
        return None if voter is None else voter.endpoint(self.replica.listener_name)

    def _set_epoch(self, epoch: int, leader_id: int | None) -> None:
        """A vote is of its epoch, and stays when the leader of that is known."""
        if epoch > self.epoch:
            self.election = ElectionState(epoch, leader_id)
            self.leader_endpoint = None
        elif leader_id is not None:
            self.election = replace(self.election, leader_id=leader_id)

    def _enter(self, state: State) -> None:
        if type(state) is not type(self.state) or isinstance(state, FollowerState):
            logger.info(
                "raft node %d: %s in epoch %d, leader %s",
                self.replica.node_id,
                _ROLES[type(state)].name,
                self.epoch,
                self.leader_id,
            )
        if self.epoch >= LAST_EPOCH:
            text = "raft node %d: no epoch is left for another election; start all controllers again"
            self.complain("last epoch", text, self.replica.node_id)
        self.peers.forget()
        self.outbox.requests.clear()
        self.outbox.withdraw_reads()
        self.state = state

    # The log

    def append(self, payload: object, count: int) -> Append:
        """Append a batch as the leader."""
        append = Append(self.epochs.end_offset, count, self.epoch, payload)
        if isinstance(payload, ControlRecords):
            for i, message in enumerate(payload.messages):
                self.history.note(append.base_offset + i, message)
        self.epochs.append(self.epoch, append.base_offset + count)
        self.outbox.appends.append(append)
        if isinstance(payload, ControlRecords) and isinstance(self.state, LeaderState):
            self.state.set_voters(self.voters, self.now_ms)
        return append

    def truncate(self, offset: int) -> None:
        assert offset >= self.high_watermark, "what is committed stays"
        self.outbox.truncate(offset)
        self.epochs.truncate(offset)
        self.history.truncate(offset)
        self.durable_end_offset = min(self.durable_end_offset, offset)
        self.durable_limit = offset if self.durable_limit is None else min(self.durable_limit, offset)

    def made_durable(self, end_offset: int) -> None:
        self.durable_end_offset = self.within_log(end_offset)

    def within_log(self, end_offset: int) -> int:
        """Bound an end offset that was handed out by the truncations since."""
        return end_offset if self.durable_limit is None else min(end_offset, self.durable_limit)
