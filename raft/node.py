"""One member of a KRaft quorum, voter or observer, without I/O, clock or threads (KIP-595, KIP-630, KIP-853, KIP-996).

The contract is etcd's: the caller feeds events (`step`, `propose`, `tick`), takes `ready()` and carries it out in the
order that `Ready` tells, then calls `advance()` with what became durable; the high watermark that this yields may then
be applied. Both may bring about more, so this goes on until `ready()` is empty. Events may come while a Ready is being
carried out; the next one is taken only after `advance`.

`server.quorum.raft_driver.RaftDriver` is the caller in a node; simulations are others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.brokers import UpdateFeaturesRequest
from pykbroker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykbroker.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest
from pykbroker.protocol.schema import Message

from .answers import is_of_another_directory, log_error_response
from .election_state import ElectionState
from .elections import Elections
from .events import (
    Append,
    Destination,
    Event,
    Ready,
    RequestFailed,
    RequestReceived,
    RequestWithdrawn,
    ResponseReceived,
    SnapshotInstalled,
)
from .fetch_sizes import KAFKA_FETCH_SIZES, FetchSizes
from .following import Following
from .leader_state import LeaderState
from .leading import Leading
from .outbox import Outbox
from .peers import Sent
from .quorum_state import QuorumState, Wanted
from .raft_log import RaftLog
from .replica import LocalReplica
from .snapshot_fetch import SnapshotFetch
from .states import CandidateState
from .states import Role as Role
from .timeouts import KAFKA_TIMEOUTS, Timeouts
from .voter_changes import VoterChanges
from .voters import Endpoint, VoterSet
from .wire import FIRST_FETCH_VERSION


class NotLeader(Exception):
    """A proposal to a node that does not lead the quorum."""

    def __init__(self, leader_id: int | None) -> None:
        super().__init__(f"this node does not lead the metadata quorum; the leader is {leader_id}")
        self.leader_id = leader_id


class RaftNode:
    """One member of the quorum, voter or observer.

    replica: this member. voters: those of the configuration, if the log has none. election: as it was stored last.
    bootstrap: the servers to ask for the leader where no voters are known (`controller.quorum.bootstrap.servers`).
    """

    def __init__(
        self,
        replica: LocalReplica,
        voters: VoterSet,
        election: ElectionState,
        log: RaftLog,
        *,
        rng: Random,
        timeouts: Timeouts = KAFKA_TIMEOUTS,
        sizes: FetchSizes = KAFKA_FETCH_SIZES,
        bootstrap: Sequence[Endpoint] = (),
    ) -> None:
        self._quorum = QuorumState(
            replica, voters, election, log, rng=rng, timeouts=timeouts, sizes=sizes, bootstrap=bootstrap
        )
        self._elections = Elections(self._quorum)
        self._snapshots = SnapshotFetch(self._quorum)
        self._voter_changes = VoterChanges(self._quorum)
        self._following = Following(self._quorum, self._snapshots, self._voter_changes)
        self._leading = Leading(self._quorum)
        self._stored_election = election
        self._handed_out_end = self._carried_out_end = log.end_offset
        self._is_started = False

    @property
    def node_id(self) -> int:
        return self._quorum.replica.node_id

    @property
    def role(self) -> Role:
        return self._quorum.role

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def election(self) -> ElectionState:
        """The election state that is stored or has to be."""
        return self._quorum.election

    @property
    def leader_id(self) -> int | None:
        return self._quorum.leader_id

    @property
    def leader_endpoint(self) -> Destination | None:
        """The address of the leader's controller listener; None where this node knows of no leader."""
        return self._quorum.leader_destination()

    @property
    def voters(self) -> VoterSet:
        """The voters as of the end of the log, committed or not."""
        return self._quorum.voters

    @property
    def cluster_id(self) -> str | None:
        return self._quorum.replica.cluster_id

    @property
    def quorum_destinations(self) -> list[Destination]:
        """The addresses of the voters, this node included; of the bootstrap servers while no voters are known."""
        known = [self._quorum.destination_of(voter) for voter in self.voters]
        return known or self._quorum.bootstrap_destinations()

    @property
    def namesake(self) -> Destination | None:
        """The leader, where it is another node with this one's id: one of the two is configured wrongly."""
        return self._quorum.namesake

    @property
    def kraft_version(self) -> int:
        return self._quorum.history.kraft_version

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def high_watermark(self) -> int:
        """The offset up to which the records in the caller's log are committed; it never goes back."""
        return min(self._quorum.high_watermark, self._carried_out_end)

    @property
    def log_end_offset(self) -> int:
        return self._quorum.epochs.end_offset

    @property
    def has_majority(self) -> bool:
        """False where so many voters have no process behind their ports that nobody can lead."""
        voters = self._quorum.voters
        return sum(voter.node_id not in self._quorum.refusing for voter in voters) >= voters.majority

    @property
    def epoch_start_offset(self) -> int:
        """The offset at which the epoch begins that this node leads."""
        state = self._quorum.state
        return state.epoch_start_offset if isinstance(state, LeaderState) else self.log_end_offset

    @property
    def leader_state(self) -> LeaderState | None:
        """Return how far the others are, where this node leads: for DescribeQuorum."""
        state = self._quorum.state
        return state if isinstance(state, LeaderState) else None

    # Events

    def step(self, event: Event, now_ms: int) -> None:
        """Take what happened. Nothing that a peer sends raises anything."""
        self._begin(now_ms)
        match event:
            case RequestReceived():
                self._received(event)
                answered = self._quorum.outbox.responses[-1:]
                if answered and answered[0].token == event.token:
                    log_error_response(self._quorum, event.request, answered[0].response)
            case RequestWithdrawn(token):
                self._leading.withdraw(token)
            case ResponseReceived(request_id, response):
                sent = self._quorum.peers.take(request_id)
                if sent is not None:
                    self._quorum.refusing.discard(sent.destination.node_id)
                    was_of_use = self._answered(sent, response)
                    if not was_of_use:
                        self._quorum.peers.back_off(sent.destination, now_ms)
                    if not was_of_use and is_of_another_directory(response):
                        self._quorum.peers.reconnect_backoff.disconnected(sent.destination, now_ms)
                    else:
                        self._quorum.peers.reconnect_backoff.connected(sent.destination)
            case RequestFailed(request_id, connection_refused):
                sent = self._quorum.peers.take(request_id)
                if sent is not None:
                    self._quorum.peers.back_off(sent.destination, now_ms)
                    if connection_refused:
                        self._quorum.refusing.add(sent.destination.node_id)
                        self._quorum.peers.reconnect_backoff.disconnected(sent.destination, now_ms)
                    self._following.failed(sent.destination, connection_refused=connection_refused)
                    if connection_refused and isinstance(sent.request, VoteRequest):
                        self._elections.vote_failed(sent.destination, sent.request)
            case SnapshotInstalled():
                self._snapshots.installed(event)
                self._handed_out_end = event.snapshot_id.end_offset
        self._poll()

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        self._begin(now_ms)
        self._poll()

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """Return the time at which `tick` has something to do; None where only an event can bring that about."""
        if not self._is_started:
            return now_ms
        deadlines = [self._elections.deadline_ms(), self._leading.deadline_ms(), self._voter_changes.deadline_ms()]
        deadlines += [self._quorum.peers.ready_ms(destination) for destination, _ in self._wanted()]
        return min((each for each in deadlines if each is not None), default=None)

    def propose(self, payload: object, count: int) -> Append:
        """Queues a batch of `count` records under the current epoch. Raises NotLeader."""
        assert count > 0
        if not isinstance(self._quorum.state, LeaderState):
            raise NotLeader(self.leader_id)
        return self._quorum.append(payload, count)

    def resign(self) -> None:
        """Lead no more, and lets the others know, those first who can succeed it best."""
        self._leading.resign()
        self._poll()

    # What to do

    def ready(self) -> Ready:
        """Hand out the work that is to be carried out now; each piece is handed out once."""
        self._leading.serve_waiting()
        outbox, self._quorum.outbox = self._quorum.outbox, Outbox()
        election = self._quorum.election if self._quorum.election != self._stored_election else None
        self._handed_out_end = self.log_end_offset
        self._quorum.durable_limit = None
        return Ready(
            election,
            outbox.truncate_to,
            outbox.snapshot_chunk,
            tuple(outbox.appends),
            tuple(outbox.requests),
            tuple(outbox.responses),
        )

    def advance(self, *, election: ElectionState | None, durable_end_offset: int) -> int:
        """Report what became durable, and returns the high watermark, which never goes back."""
        quorum = self._quorum
        if election is not None:
            self._stored_election = election
        assert durable_end_offset <= max(self.log_end_offset, self._handed_out_end)
        quorum.made_durable(durable_end_offset)
        state = quorum.state
        if isinstance(state, CandidateState) and self._stored_election == quorum.election:
            state.votes.grant(self.node_id)
        self._leading.advance_high_watermark()
        self._carried_out_end = quorum.within_log(self._handed_out_end)
        self._poll()
        return self.high_watermark

    # Inside

    def _begin(self, now_ms: int) -> None:
        self._quorum.now_ms = max(now_ms, self._quorum.now_ms)
        if not self._is_started:
            self._is_started = True
            self._quorum.start()

    def _poll(self) -> None:
        """Act on time and votes, then send each request that may be sent.

        The log may have moved on behind a snapshot meanwhile.
        """
        self._quorum.epochs.forget_before(self._quorum.log.start_offset)
        self._leading.tick()
        self._voter_changes.high_watermark_advanced()
        self._elections.tick()
        self._voter_changes.tick()
        state = self._quorum.state
        if isinstance(state, CandidateState) and state.votes.is_won:
            self._leading.begin()
        for destination, build in self._wanted():
            if self._quorum.peers.ready_ms(destination) <= self._quorum.now_ms:
                request = build()
                request_id = self._quorum.peers.send(destination, request, self._quorum.now_ms)
                self._quorum.outbox.request(request_id, destination, request)

    def _wanted(self) -> list[Wanted]:
        if not self._is_started:
            return []
        parts = (self._elections, self._leading, self._voter_changes, self._following)
        return [wanted for part in parts for wanted in part.wanted()]

    def _received(self, event: RequestReceived) -> None:
        request, outbox = event.request, self._quorum.outbox
        known = partial(self._quorum.known, request, event.api_version, event.listener_name)
        match request:
            case VoteRequest():
                outbox.respond(event.token, self._elections.vote(request, known))
            case BeginQuorumEpochRequest():
                outbox.respond(event.token, self._elections.begin_quorum_epoch(request, known))
            case EndQuorumEpochRequest():
                outbox.respond(event.token, self._elections.end_quorum_epoch(request, known))
            case FetchRequest() if event.api_version < FIRST_FETCH_VERSION:
                outbox.respond(event.token, FetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            case FetchRequest():
                self._leading.serve_fetch(event.token, request, known)
            case FetchSnapshotRequest():
                outbox.respond(event.token, *self._snapshots.serve(request, known))
            case AddRaftVoterRequest():
                self._voter_changes.add_voter(event.token, request)
            case RemoveRaftVoterRequest():
                self._voter_changes.remove_voter(event.token, request)
            case UpdateRaftVoterRequest():
                outbox.respond(event.token, self._voter_changes.update_voter(request, known))
            case UpdateFeaturesRequest():
                self._voter_changes.upgrade(event.token, request)
            case _:
                raise TypeError(f"{type(request).__name__} is not for raft")

    def _answered(self, sent: Sent, response: object) -> bool:
        """False where it was no use."""
        match sent.request, response:
            case VoteRequest() as request, VoteResponse():
                return self._elections.vote_answered(sent.destination, request, response)
            case BeginQuorumEpochRequest(), BeginQuorumEpochResponse():
                return self._elections.begin_quorum_epoch_answered(sent.destination, response)
            case EndQuorumEpochRequest(), EndQuorumEpochResponse():
                return self._elections.end_quorum_epoch_answered(sent.destination, response)
            case FetchRequest() as request, FetchResponse():
                return self._following.answered(sent.destination, request, response)
            case FetchSnapshotRequest(), FetchSnapshotResponse():
                return self._snapshots.answered(sent.destination, response)
            case ApiVersionsRequest(), ApiVersionsResponse():
                return self._voter_changes.supported_versions(sent.destination, response)
            case AddRaftVoterRequest() | RemoveRaftVoterRequest() | UpdateRaftVoterRequest(), Message():
                return self._voter_changes.update_answered(sent.destination, response)
            case _:
                return False
