"""Changing the voters while the quorum works (KIP-853): one at a time, each by a VotersRecord that the new set commits.

As the leader: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter with Kafka's checks and answers (`AddVoterHandler` and its
siblings). As a follower: a voter whose endpoints or versions changed says so, and an observer that may vote asks to
(auto-join). A quorum of static voters becomes one of dynamic voters (`kraft.version` 1) when all of them have told the
leader of themselves, and an administrator wants it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import voters as messages
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.brokers import UpdateFeaturesRequest, UpdateFeaturesResponse
from pykbroker.protocol.messages.control_records import KRaftVersionRecord
from pykbroker.protocol.schema import Message

from . import wire
from .answers import KnownNow, check_leader, handle_common, is_of_cluster
from .events import ControlRecords, Destination
from .leader_state import Leader
from .quorum_state import QuorumState, Wanted
from .states import Follower
from .voters import KRAFT_VERSIONS, NO_DIRECTORY, Endpoint, ReplicaKey, Voter, VoterSet

logger = logging.getLogger(__name__)

KRAFT_VERSION_FEATURE = "kraft.version"
CAUGHT_UP_WITHIN_MS = 3_600_000
CLIENT_SOFTWARE = "pykbroker"


@dataclass(slots=True)
class PendingChange:
    """The change of the voter set that is under way.

    token: of the requester; None where it is answered. last_offset: of the VotersRecord; None before it is written.
    """

    request: Message
    token: int | None
    deadline_ms: int
    voter: Voter | None = None
    last_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    error: ErrorCode
    message: str


class Membership:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum
        self._pending: PendingChange | None = None

    # As the leader

    def add_voter(self, token: int, request: messages.AddRaftVoterRequest) -> None:
        voter = self._voter_of(request.voter_id, request.voter_directory_id, request.listeners)
        refusal = self._refusal(request.cluster_id)
        if refusal is None and voter is None:
            refusal = Refusal(ErrorCode.INVALID_REQUEST, "the request does not describe a voter with its endpoint")
        refusal = refusal or self._busy()
        if refusal is None and request.voter_id in self._quorum.voters:
            refusal = Refusal(
                ErrorCode.DUPLICATE_VOTER, f"node {request.voter_id} is one of the voters {self._quorum.voters.ids}"
            )
        if refusal is not None:
            return self._respond(token, request, refusal)
        deadline_ms = self._quorum.now_ms + self._quorum.timeouts.request_ms
        self._pending = PendingChange(request, token, deadline_ms, voter)
        return None

    def remove_voter(self, token: int, request: messages.RemoveRaftVoterRequest) -> None:
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        refusal = self._refusal(request.cluster_id)
        if refusal is None and (key.node_id < 0 or key.directory_id == NO_DIRECTORY):
            refusal = Refusal(ErrorCode.INVALID_REQUEST, "the request does not describe a voter")
        refusal = refusal or self._busy()
        voters = self._quorum.voters
        if refusal is None and (not voters.has(key) or len(voters) == 1):
            refusal = Refusal(
                ErrorCode.VOTER_NOT_FOUND, f"node {key.node_id} with that directory can't go from {voters.ids}"
            )
        if refusal is not None:
            return self._respond(token, request, refusal)
        deadline_ms = self._quorum.now_ms + self._quorum.timeouts.request_ms
        self._pending = PendingChange(request, token, deadline_ms)
        return self._write(self._pending, voters.without(key.node_id))

    def update_voter(self, request: messages.UpdateRaftVoterRequest, known: KnownNow) -> Message:
        """Answered at once, before it is committed, as by Kafka."""
        error = self._update_voter(request)
        now = known()
        leader = messages.CurrentLeader(leader_id=now.leader_id, leader_epoch=now.epoch)
        if now.endpoint is not None:
            leader.host, leader.port = now.endpoint.host, now.endpoint.port
        return messages.UpdateRaftVoterResponse(error_code=error, current_leader=leader)

    def _update_voter(self, request: messages.UpdateRaftVoterRequest) -> ErrorCode:
        quorum, feature = self._quorum, request.kraft_version_feature
        if not is_of_cluster(quorum, request.cluster_id):
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        error = check_leader(quorum, request.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return error
        versions = (feature.min_supported_version, feature.max_supported_version)
        voter = self._voter_of(request.voter_id, request.voter_directory_id, request.listeners)
        if voter is None or not 0 <= versions[0] <= versions[1]:
            return ErrorCode.INVALID_REQUEST
        busy = self._busy(needs_level=0)
        if busy is not None:
            return busy.error
        if not versions[0] <= quorum.history.kraft_version <= versions[1]:
            return ErrorCode.INVALID_REQUEST
        if not quorum.voters.has(voter.key):
            return ErrorCode.VOTER_NOT_FOUND
        if quorum.history.kraft_version < 1:
            assert isinstance(quorum.state, Leader)
            quorum.state.described[voter.node_id] = replace(voter, kraft_versions=versions)
            return ErrorCode.NONE
        quorum.append(_record_of(quorum.voters.with_voter(replace(voter, kraft_versions=versions))), 1)
        return ErrorCode.NONE

    def upgrade(self, token: int, request: UpdateFeaturesRequest) -> None:
        """Raise `kraft.version` to the level that the request asks for; answer when the record is committed."""
        [update] = request.feature_updates
        level, refusal = update.max_version_level, self._refusal(None)
        refusal = refusal or self._busy(needs_level=0)
        if refusal is None and level <= self._quorum.history.kraft_version:
            return self._respond(token, request, None)
        voters = self._described_voters()
        if refusal is None and not all(each.kraft_versions[0] <= level <= each.kraft_versions[1] for each in voters):
            text = f"Invalid upgrade of {KRAFT_VERSION_FEATURE} to {level} because not all of the voters support it"
            refusal = Refusal(ErrorCode.INVALID_UPDATE_VERSION, text)
        if refusal is not None or request.validate_only:
            return self._respond(token, request, refusal)
        logger.info(
            "raft node %d: the voters %s move to the log", self._quorum.replica.node_id, self._quorum.voters.ids
        )
        records = [KRaftVersionRecord(kraft_version=level), VoterSet(voters).to_record()]
        last_offset = self._quorum.append(ControlRecords(records), len(records)).base_offset + 1
        deadline_ms = self._quorum.now_ms + self._quorum.timeouts.request_ms
        self._pending = PendingChange(request, token, deadline_ms, last_offset=last_offset)
        return None

    def _described_voters(self) -> list[Voter]:
        """Return the voters as they described themselves; the others as the voter set has them."""
        replica, leader = self._quorum.replica, self._quorum.state
        described = dict(leader.described) if isinstance(leader, Leader) else {}
        own = self._voter_of(replica.node_id, replica.directory_id, self._listeners())
        if own is not None:
            described[replica.node_id] = replace(own, kraft_versions=KRAFT_VERSIONS)
        return [described.get(each.node_id, each) for each in self._quorum.voters]

    def _voter_of(self, node_id: int, directory_id: bytes, listeners: Sequence[messages.Listener]) -> Voter | None:
        """Return None where it lacks something, such as an endpoint on the listener of the controllers."""
        endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in listeners)
        named = [each for each in endpoints if each.name == self._quorum.replica.listener_name]
        if node_id < 0 or directory_id == NO_DIRECTORY or not named:
            return None
        return Voter(node_id, named[0].host, named[0].port, directory_id, endpoints)

    def _refusal(self, cluster_id: str | None) -> Refusal | None:
        if not is_of_cluster(self._quorum, cluster_id):
            own = self._quorum.replica.cluster_id
            return Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, f"the cluster is {own}, not {cluster_id}")
        error = check_leader(self._quorum, self._quorum.epoch)
        return None if error is ErrorCode.NONE else Refusal(error, "this node does not lead the quorum")

    def _busy(self, needs_level: int = 1) -> Refusal | None:
        """Tell whether another change is on its way, or what earlier leaders left is not committed yet."""
        quorum, leader = self._quorum, self._quorum.state
        assert isinstance(leader, Leader)
        if self._pending is not None:
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way")
        if leader.high_watermark is None:
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything in its epoch yet")
        level = quorum.history.kraft_version
        if level < needs_level:
            return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"the voters can't be changed while kraft.version is {level}")
        offset = quorum.history.voters_offset
        if level > 0 and (offset is None or offset >= leader.high_watermark):
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet")
        return None

    def supported_versions(self, source: Destination, response: ApiVersionsResponse) -> bool:
        """Take the supported versions of the node that is to vote; its answer shows that it is there."""
        pending, quorum, leader = self._pending, self._quorum, self._quorum.state
        if (
            pending is None
            or pending.voter is None
            or pending.last_offset is not None
            or not isinstance(leader, Leader)
        ):
            return True
        if source.node_id != pending.voter.node_id:
            return True
        if response.error_code != ErrorCode.NONE:
            self._finish(Refusal(ErrorCode.REQUEST_TIMED_OUT, f"its ApiVersions answer is error {response.error_code}"))
            return False
        level, voter = quorum.history.kraft_version, pending.voter
        found = [each for each in response.supported_features if each.name == KRAFT_VERSION_FEATURE]
        versions = (found[0].min_version, found[0].max_version) if found else (0, 0)
        if not versions[0] <= level <= versions[1]:
            message = f"node {voter.node_id} supports kraft.version {versions[0]} to {versions[1]}, not {level}"
            self._finish(Refusal(ErrorCode.INVALID_REQUEST, message))
        elif not self._is_caught_up(leader, voter.key):
            self._finish(Refusal(ErrorCode.REQUEST_TIMED_OUT, f"node {voter.node_id} lags behind"))
        else:
            self._write(pending, quorum.voters.with_voter(replace(voter, kraft_versions=versions)))
        return True

    def _is_caught_up(self, leader: Leader, key: ReplicaKey) -> bool:
        progress = leader.observers.get(key)
        if progress is None or progress.last_caught_up_ms is None or progress.last_fetch_ms is None:
            return False
        if leader.latest_directory_of(key.node_id) != key.directory_id:
            return False
        return self._quorum.now_ms - progress.last_fetch_ms < CAUGHT_UP_WITHIN_MS

    def _write(self, pending: PendingChange, voters: VoterSet) -> None:
        logger.info("raft node %d: the voters are to be %s", self._quorum.replica.node_id, voters.ids)
        pending.last_offset = self._quorum.append(_record_of(voters), 1).base_offset
        request, token = pending.request, pending.token
        if isinstance(request, messages.AddRaftVoterRequest) and not request.ack_when_committed and token is not None:
            pending.token = None
            self._respond(token, request, None)

    def high_watermark_advanced(self) -> None:
        """A leader that is no voter any more has seen to its own replacement, and goes."""
        leader, pending = self._quorum.state, self._pending
        if not isinstance(leader, Leader) or leader.high_watermark is None:
            return
        if pending is not None and pending.last_offset is not None and leader.high_watermark > pending.last_offset:
            self._finish(None)
        offset = self._quorum.history.voters_offset
        if offset is not None and offset < leader.high_watermark and not leader.is_voter(leader.key):
            logger.info("raft node %d: votes no more and resigns", self._quorum.replica.node_id)
            self._quorum.become_resigned(leader.successors())

    def tick(self) -> None:
        pending = self._pending
        if pending is None:
            return
        if not isinstance(self._quorum.state, Leader):
            self._finish(Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum any more"))
        elif self._quorum.now_ms >= pending.deadline_ms:
            self._finish(Refusal(ErrorCode.REQUEST_TIMED_OUT, "the change of the voters takes too long"))

    def deadline_ms(self) -> int | None:
        return None if self._pending is None else self._pending.deadline_ms

    def _finish(self, refusal: Refusal | None) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and pending.token is not None:
            self._respond(pending.token, pending.request, refusal)

    def _respond(self, token: int, request: Message, refusal: Refusal | None) -> None:
        error = ErrorCode.NONE if refusal is None else refusal.error
        message = None if refusal is None else refusal.message
        response: Message
        if isinstance(request, messages.AddRaftVoterRequest):
            response = messages.AddRaftVoterResponse(error_code=error, error_message=message)
        elif isinstance(request, UpdateFeaturesRequest):
            response = UpdateFeaturesResponse(error_code=error, error_message=message)
        else:
            response = messages.RemoveRaftVoterResponse(error_code=error, error_message=message)
        self._quorum.outbox.respond(token, response)

    # As a follower

    def update_wanted(self, state: Follower) -> Wanted | None:
        """Return the request that this node sends to the leader in the place of its next Fetch."""
        quorum = self._quorum
        if quorum.now_ms < state.update_voter_deadline_ms:
            return None
        if quorum.history.kraft_version < 1:
            if state.has_described_itself or not quorum.is_voter or not quorum.replica.endpoints:
                return None
            return state.leader, partial(self._build, state, self._update_request())
        own = quorum.voters.get(quorum.replica.node_id)
        if quorum.is_voter:
            if own is None or (own.endpoints, own.kraft_versions) == (quorum.replica.endpoints, KRAFT_VERSIONS):
                return None
            return state.leader, partial(self._build, state, self._update_request())
        if not quorum.replica.may_vote or not quorum.replica.auto_join:
            return None
        if own is not None:
            return state.leader, partial(self._build, state, self._remove_request(own.key))
        return state.leader, partial(self._build, state, self._add_request())

    def _build(self, state: Follower, request: Message) -> Message:
        state.update_voter_deadline_ms = self._quorum.now_ms + self._quorum.timeouts.fetch_ms
        return request

    def _update_request(self) -> Message:
        replica = self._quorum.replica
        low, high = KRAFT_VERSIONS
        return messages.UpdateRaftVoterRequest(
            cluster_id=replica.cluster_id,
            current_leader_epoch=self._quorum.epoch,
            voter_id=replica.node_id,
            voter_directory_id=replica.directory_id,
            listeners=self._listeners(),
            kraft_version_feature=messages.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
        )

    def _add_request(self) -> Message:
        replica = self._quorum.replica
        return messages.AddRaftVoterRequest(
            cluster_id=replica.cluster_id,
            timeout_ms=self._quorum.timeouts.request_ms,
            voter_id=replica.node_id,
            voter_directory_id=replica.directory_id,
            listeners=self._listeners(),
            ack_when_committed=False,
        )

    def _remove_request(self, key: ReplicaKey) -> Message:
        """Build the request that removes a directory that this node had before."""
        return messages.RemoveRaftVoterRequest(
            cluster_id=self._quorum.replica.cluster_id, voter_id=key.node_id, voter_directory_id=key.directory_id
        )

    def _listeners(self) -> list[messages.Listener]:
        return [
            messages.Listener(name=each.name, host=each.host, port=each.port) for each in self._quorum.replica.endpoints
        ]

    def update_answered(self, source: Destination, response: Message) -> bool:
        """Take the answer to UpdateRaftVoter. The node sends it again in a while, whatever the answer."""
        if isinstance(response, messages.UpdateRaftVoterResponse):
            state, is_known = self._quorum.state, response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
            if isinstance(state, Follower) and source == state.leader and is_known:
                state.has_described_itself = True
            leader = response.current_leader
            endpoint = Endpoint("", leader.host, leader.port) if leader.host else None
            told = wire.Leadership(leader.leader_epoch, None if leader.leader_id < 0 else leader.leader_id, endpoint)
            handle_common(self._quorum, told, response.error_code, source)
        return True

    def wanted(self) -> list[Wanted]:
        """The one question to a node that is to become a voter: whether it is there, and what it supports."""
        pending = self._pending
        if pending is None or pending.voter is None or pending.last_offset is not None:
            return []
        build = partial(ApiVersionsRequest, client_software_name=CLIENT_SOFTWARE, client_software_version="1")
        return [(self._quorum.destination_of(pending.voter), build)]


def _record_of(voters: VoterSet) -> ControlRecords:
    return ControlRecords([voters.to_record()])
