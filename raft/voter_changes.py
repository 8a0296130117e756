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

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages import voters as messages
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.brokers import UpdateFeaturesRequest, UpdateFeaturesResponse
from pykbroker.protocol.messages.control_records import KRaftVersionRecord
from pykbroker.protocol.schema import Message

from . import wire
from .answers import KnownNow, check_leader, handle_common, is_of_cluster
from .events import ControlRecords, Destination
from .leader_state import LeaderState
from .quorum_state import QuorumState, Wanted
from .states import FollowerState
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


class VoterChanges:
    """The one change of the voters that the leader has under way, and what a follower asks the leader to change."""

    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum
        self._pending: PendingChange | None = None

    # As the leader

    def add_voter(self, token: int, request: messages.AddRaftVoterRequest) -> None:
        try:
            voter = self._new_voter(request)
        except ApiError as error:
            return self._respond(token, request, error)
        self._pending = PendingChange(request, token, self._deadline_of_change_ms(), voter)
        return None

    def _new_voter(self, request: messages.AddRaftVoterRequest) -> Voter:
        """The voter that the request describes. Raises ApiError where it cannot be added now."""
        self._ensure_leads(request.cluster_id)
        voter = self._voter_of(request.voter_id, request.voter_directory_id, request.listeners)
        if voter is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the request does not describe a voter with its endpoint")
        self._ensure_idle()
        voters = self._quorum.voters
        if request.voter_id in voters:
            raise ApiError(ErrorCode.DUPLICATE_VOTER, f"node {request.voter_id} is one of the voters {voters.ids}")
        return voter

    def remove_voter(self, token: int, request: messages.RemoveRaftVoterRequest) -> None:
        try:
            voters = self._voters_without(request)
        except ApiError as error:
            return self._respond(token, request, error)
        self._pending = PendingChange(request, token, self._deadline_of_change_ms())
        return self._write(self._pending, voters)

    def _voters_without(self, request: messages.RemoveRaftVoterRequest) -> VoterSet:
        """The voters that are left without the one of the request. Raises ApiError where it cannot be removed now."""
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        self._ensure_leads(request.cluster_id)
        if key.node_id < 0 or key.directory_id == NO_DIRECTORY:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the request does not describe a voter")
        self._ensure_idle()
        voters = self._quorum.voters
        if not voters.has(key) or len(voters) == 1:
            message = f"node {key.node_id} with that directory can't go from {voters.ids}"
            raise ApiError(ErrorCode.VOTER_NOT_FOUND, message)
        return voters.without(key.node_id)

    def update_voter(self, request: messages.UpdateRaftVoterRequest, known: KnownNow) -> Message:
        """The response at once, before the change is committed, as from Kafka."""
        code = ErrorCode.NONE
        try:
            self._update_voter(request)
        except ApiError as error:
            code = error.code
        now = known()
        leader = messages.CurrentLeader(leader_id=now.leader_id, leader_epoch=now.epoch)
        if now.endpoint is not None:
            leader.host, leader.port = now.endpoint.host, now.endpoint.port
        return messages.UpdateRaftVoterResponse(error_code=code, current_leader=leader)

    def _update_voter(self, request: messages.UpdateRaftVoterRequest) -> None:
        """Raises ApiError where nothing is changed."""
        quorum, feature = self._quorum, request.kraft_version_feature
        self._ensure_leads(request.cluster_id, request.current_leader_epoch)
        versions = (feature.min_supported_version, feature.max_supported_version)
        voter = self._voter_of(request.voter_id, request.voter_directory_id, request.listeners)
        if voter is None or not 0 <= versions[0] <= versions[1]:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        self._ensure_idle(needs_level=0)
        if not versions[0] <= quorum.history.kraft_version <= versions[1]:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not quorum.voters.has(voter.key):
            raise ApiError(ErrorCode.VOTER_NOT_FOUND)
        if quorum.history.kraft_version < 1:
            assert isinstance(quorum.state, LeaderState)
            quorum.state.described[voter.node_id] = replace(voter, kraft_versions=versions)
        else:
            quorum.append(_record_of(quorum.voters.with_voter(replace(voter, kraft_versions=versions))), 1)

    def upgrade(self, token: int, request: UpdateFeaturesRequest) -> None:
        """Raise `kraft.version` to the level that the request asks for; answer when the record is committed."""
        [update] = request.feature_updates
        level = update.max_version_level
        try:
            self._ensure_leads(None)
            self._ensure_idle(needs_level=0)
            if level <= self._quorum.history.kraft_version:
                return self._respond(token, request, None)
            voters = self._voters_of_level(level)
        except ApiError as error:
            return self._respond(token, request, error)
        if request.validate_only:
            return self._respond(token, request, None)
        logger.info(
            "raft node %d: the static voters %s are written to the log",
            self._quorum.replica.node_id,
            self._quorum.voters.ids,
        )
        records = [KRaftVersionRecord(kraft_version=level), VoterSet(voters).to_record()]
        last_offset = self._quorum.append(ControlRecords(records), len(records)).base_offset + 1
        self._pending = PendingChange(request, token, self._deadline_of_change_ms(), last_offset=last_offset)
        return None

    def _deadline_of_change_ms(self) -> int:
        return self._quorum.now_ms + self._quorum.timeouts.request_ms

    def _voters_of_level(self, level: int) -> list[Voter]:
        """The voters as they described themselves. Raises ApiError where one of them does not support the level."""
        voters = self._described_voters()
        if not all(each.kraft_versions[0] <= level <= each.kraft_versions[1] for each in voters):
            text = f"Invalid upgrade of {KRAFT_VERSION_FEATURE} to {level} because not all of the voters support it"
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)
        return voters

    def _described_voters(self) -> list[Voter]:
        """Return the voters as they described themselves; the others as the voter set has them."""
        replica, leader = self._quorum.replica, self._quorum.state
        described = dict(leader.described) if isinstance(leader, LeaderState) else {}
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

    def _ensure_leads(self, cluster_id: str | None, epoch: int | None = None) -> None:
        """Raises ApiError unless this node leads the quorum of that cluster, in that epoch where one is given."""
        if not is_of_cluster(self._quorum, cluster_id):
            own = self._quorum.replica.cluster_id
            raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"the cluster is {own}, not {cluster_id}")
        code = check_leader(self._quorum, self._quorum.epoch if epoch is None else epoch)
        if code is not ErrorCode.NONE:
            raise ApiError(code, "this node does not lead the quorum")

    def _ensure_idle(self, needs_level: int = 1) -> None:
        """Raises ApiError while another change is under way, or what earlier leaders left is not committed."""
        quorum, leader = self._quorum, self._quorum.state
        assert isinstance(leader, LeaderState)
        if self._pending is not None:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way")
        if leader.high_watermark is None:
            message = "the leader has not committed anything in its epoch yet"
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message)
        level = quorum.history.kraft_version
        if level < needs_level:
            message = f"the voters can't be changed while kraft.version is {level}"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
        offset = quorum.history.voters_offset
        if level > 0 and (offset is None or offset >= leader.high_watermark):
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet")

    def supported_versions(self, source: Destination, response: ApiVersionsResponse) -> bool:
        """Take the supported versions of the node that is to vote; its answer shows that it is there."""
        pending, quorum, leader = self._pending, self._quorum, self._quorum.state
        if (
            pending is None
            or pending.voter is None
            or pending.last_offset is not None
            or not isinstance(leader, LeaderState)
        ):
            return True
        if source.node_id != pending.voter.node_id:
            return True
        if response.error_code != ErrorCode.NONE:
            self._finish(
                ApiError(ErrorCode.REQUEST_TIMED_OUT, f"its ApiVersions answer is error {response.error_code}")
            )
            return False
        level, voter = quorum.history.kraft_version, pending.voter
        found = [each for each in response.supported_features if each.name == KRAFT_VERSION_FEATURE]
        versions = (found[0].min_version, found[0].max_version) if found else (0, 0)
        if not versions[0] <= level <= versions[1]:
            message = f"node {voter.node_id} supports kraft.version {versions[0]} to {versions[1]}, not {level}"
            self._finish(ApiError(ErrorCode.INVALID_REQUEST, message))
        elif not self._is_caught_up(leader, voter.key):
            self._finish(ApiError(ErrorCode.REQUEST_TIMED_OUT, f"node {voter.node_id} lags behind"))
        else:
            self._write(pending, quorum.voters.with_voter(replace(voter, kraft_versions=versions)))
        return True

    def _is_caught_up(self, leader: LeaderState, key: ReplicaKey) -> bool:
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
        if not isinstance(leader, LeaderState) or leader.high_watermark is None:
            return
        if pending is not None and pending.last_offset is not None and leader.high_watermark > pending.last_offset:
            self._finish(None)
        offset = self._quorum.history.voters_offset
        if offset is not None and offset < leader.high_watermark and not leader.is_voter(leader.key):
            logger.info("raft node %d: is no voter any more, and resigns", self._quorum.replica.node_id)
            self._quorum.become_resigned(leader.successors())

    def tick(self) -> None:
        pending = self._pending
        if pending is None:
            return
        if not isinstance(self._quorum.state, LeaderState):
            self._finish(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum any more"))
        elif self._quorum.now_ms >= pending.deadline_ms:
            self._finish(ApiError(ErrorCode.REQUEST_TIMED_OUT, "the change of the voters takes too long"))

    def deadline_ms(self) -> int | None:
        return None if self._pending is None else self._pending.deadline_ms

    def _finish(self, error: ApiError | None) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and pending.token is not None:
            self._respond(pending.token, pending.request, error)

    def _respond(self, token: int, request: Message, error: ApiError | None) -> None:
        code = ErrorCode.NONE if error is None else error.code
        message = None if error is None else error.message
        response: Message
        if isinstance(request, messages.AddRaftVoterRequest):
            response = messages.AddRaftVoterResponse(error_code=code, error_message=message)
        elif isinstance(request, UpdateFeaturesRequest):
            response = UpdateFeaturesResponse(error_code=code, error_message=message)
        else:
            response = messages.RemoveRaftVoterResponse(error_code=code, error_message=message)
        self._quorum.outbox.respond(token, response)

    # As a follower

    def update_wanted(self, state: FollowerState) -> Wanted | None:
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
        if quorum.history.has_removed(quorum.replica.key):
            return None  # somebody wanted it so (KAFKA-19850)
        if own is not None:
            return state.leader, partial(self._build, state, self._remove_request(own.key))
        return state.leader, partial(self._build, state, self._add_request())

    def _build(self, state: FollowerState, request: Message) -> Message:
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
            if isinstance(state, FollowerState) and source == state.leader and is_known:
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
