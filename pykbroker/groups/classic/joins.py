"""JoinGroup of a classic group: who may be in the group, and under which member id.

A dynamic member of JoinGroup v4+ is given an id first and joins with it (KIP-394). A static member (KIP-345) that comes
back without its id takes the place of its former self, whose requests are fenced from then on. The model is
`classicGroupJoinToClassicGroup` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from random import Random
from uuid import UUID

from pykbroker.long_work import LongWork, whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import JoinGroupRequest, SyncGroupResponse
from pykbroker.state_machine import CoordinatorContext

from ..common.config import GroupConfig
from ..common.context import Call, Step
from ..common.deadlines import Deadlines, SessionTimeout, StreamsInitialDelay
from ..common.group import Group, GroupType
from ..common.subscription import CONSUMER_PROTOCOL_TYPE, look_if_loadable
from .classic_group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    UNKNOWN_MEMBER_ID,
    ClassicGroup,
    find_classic,
)
from .classic_group_member import ClassicGroupMember
from .classic_records import empty_group_record, group_record
from .rebalance import Rebalance, join_answer, refused_join

FIRST_VERSION_WITH_REQUIRED_MEMBER_ID = 4
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9

MOST_PROTOCOLS = 100
MOST_METADATA_BYTES = 4 << 20
"""The limit for one member. The metadata of one protocol of each member has to fit into the group's record in
`__consumer_offsets`, which takes a megabyte by default."""


_GIVE_WAY_WHEN_EMPTY = (GroupType.CONSUMER, GroupType.STREAMS)


class Joins:
    """The rules of JoinGroup for classic groups.

    groups: the shard's groups, shared with it; a join adds one where the id is new.
    """

    def __init__(
        self, config: GroupConfig, groups: dict[str, Group], deadlines: Deadlines, rebalance: Rebalance, rng: Random
    ) -> None:
        self._config = config
        self._groups = groups
        self._deadlines = deadlines
        self._rebalance = rebalance
        self._rng = rng

    def join(self, request: JoinGroupRequest, call: Call) -> None:
        """Join a classic group, which may be new. `consumer.classic_protocol_members` serves consumer groups that have
        members."""
        error_code = validate_join(request, call.context, self._config)
        if error_code is not ErrorCode.NONE:
            call.answer(refused_join(error_code, request.member_id))
            return
        group = find_classic(self._groups, request.group_id)
        known = self._groups.get(request.group_id)
        if group is not None:
            self._join(group, request, call)
        elif known is not None and (not known.is_empty or known.type not in _GIVE_WAY_WHEN_EMPTY):
            call.answer(refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID))
        elif request.member_id:
            call.answer(refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            self._create_and_join(request, call)

    def _create_and_join(self, request: JoinGroupRequest, call: Call) -> None:
        step = call.step
        cause = f"created by a JoinGroup of {call.context.client_id}"
        group = ClassicGroup(request.group_id, step.timestamp_ms, cause)
        self._join(group, request, call)
        # A join that is refused leaves no group behind; Kafka keeps an empty one.
        if group.members or group.pending_join_members:
            self._delete_empty_group(group.group_id, step)
            self._groups[group.group_id] = group
            step.append(empty_group_record(group))

    def _delete_empty_group(self, group_id: str, step: Step) -> None:
        """Make room for a classic group of the same id."""
        known = self._groups.pop(group_id, None)
        if known is not None:
            for tombstone in known.tombstones():
                step.append(tombstone)
            self._deadlines.cancel(StreamsInitialDelay(group_id))
            step.because(group_id, f"it was an empty {known.type.value} group, and is a classic group now")

    def _join(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        if not self._has_room(group, request.member_id):
            self._rebalance.drop_member(group, request.member_id, call.step)
            call.answer(refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
            cause = f"{request.member_id} found the group full"
            self._rebalance.complete_join_if_all_joined(group, cause, call.step)
        elif not group.supports_protocols(request.protocol_type, protocols_of(request)):
            call.answer(refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._join_new_member(group, request, call)
        else:
            self._join_known_member(group, request, call)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Tell whether the group has room for the member.

        While members join, only those that wait are counted: in a full group the last to rejoin stay out.
        """
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            if member is not None and member.awaiting_join is not None:
                return True
            return sum(m.awaiting_join is not None for m in group.members.values()) < self._config.max_size
        return group.state is EMPTY or member is not None or len(group.members) < self._config.max_size

    # New members

    def _join_new_member(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        instance_id = request.group_instance_id
        member_id = self._new_member_id(call.context.client_id if instance_id is None else instance_id)
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static_member(group, request, member_id, call)
        elif needs_member_id(request, call.context):
            group.add_pending(member_id)
            timeout = SessionTimeout(group.group_id, member_id)
            self._deadlines.schedule(timeout, call.step.now_ms + request.session_timeout_ms)
            call.step.because(group.group_id, f"{member_id} was handed out; the member has to join with it")
            call.answer(refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add_member(group, request, member_id, call)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(int=self._rng.getrandbits(128), version=4)}"

    def _add_member(self, group: ClassicGroup, request: JoinGroupRequest, member_id: str, call: Call) -> None:
        member = ClassicGroupMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=call.context.client_id,
            client_host=call.context.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocols_of(request),
            awaiting_join=call.token,
            is_new=True,
        )
        if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            group.new_member_added = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        self._rebalance.keep_session(group, member, call.step)
        cause = f"{member_id} joined{_reason(request)}"
        self._rebalance.start_or_complete_join(group, cause, call.step)

    # Members that are known

    def _join_known_member(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        member_id = request.member_id
        if member_id in group.pending_join_members and request.group_instance_id is None:
            self._add_member(group, request, member_id, call)
            return
        error_code = group.validate_member(member_id, request.group_instance_id)
        if error_code is not ErrorCode.NONE:
            call.answer(refused_join(error_code, member_id))
            return
        member = group.members[member_id]
        if self._has_to_rebalance(group, member, request):
            cause = f"{member_id} joined again{_difference(group, member, request)}{_reason(request)}"
            self._update_member(member, request, call)
            self._rebalance.start_or_complete_join(group, cause, call.step)
        else:
            # The member did not get the answer to its JoinGroup, or follows a leader that has not moved.
            call.answer(join_answer(group, member))

    def _has_to_rebalance(self, group: ClassicGroup, member: ClassicGroupMember, request: JoinGroupRequest) -> bool:
        if group.state is PREPARING_REBALANCE:
            return True
        if group.state is STABLE and group.leader_id == member.member_id:
            return True  # A leader joins to have a new assignment made, for new partitions of a topic for example.
        return not member.matches(protocols_of(request))

    def _update_member(self, member: ClassicGroupMember, request: JoinGroupRequest, call: Call) -> None:
        member.protocols = protocols_of(request)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        if member.awaiting_join is not None:
            # The member asks again on another connection. Kafka leaves the older request without any answer.
            superseded = refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            call.step.answer(member.awaiting_join, superseded)
        member.awaiting_join = call.token

    # Static members

    def _replace_static_member(
        self, group: ClassicGroup, request: JoinGroupRequest, member_id: str, call: Call
    ) -> None:
        assert request.group_instance_id is not None
        step = call.step
        member = group.members[group.static_members[request.group_instance_id]]
        old_leader_id = group.leader_id
        cause = f"{member_id} took the place of {member.member_id}{_reason(request)}"
        self._fence(member, step)
        self._rebalance.forget_session(group, member.member_id)
        group.rename_static_member(member, member_id)
        self._rebalance.keep_session(group, member, step)
        self._update_member(member, request, call)
        keeps_protocol = group.state is STABLE and group.select_protocol() == group.protocol_name
        if keeps_protocol and self._rebalance.fits(group_record(group)):
            step.because(group.group_id, f"{cause}; no rebalance")
            step.append(group_record(group))
            self._answer_without_rebalance(group, member, old_leader_id or "", call)
        elif group.state is PREPARING_REBALANCE:
            self._rebalance.complete_join_if_all_joined(group, cause, step)
        else:
            # The assignment under way, or the selected protocol, no longer fits the member.
            assert group.state in (STABLE, COMPLETING_REBALANCE)
            self._rebalance.start(group, cause, step)

    def _fence(self, member: ClassicGroupMember, step: Step) -> None:
        """Answers what still waits under the member's old id: another process has its place now."""
        if member.awaiting_join is not None:
            step.answer(member.awaiting_join, refused_join(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
        if member.awaiting_sync is not None:
            step.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        member.awaiting_join = member.awaiting_sync = None

    def _answer_without_rebalance(
        self, group: ClassicGroup, member: ClassicGroupMember, old_leader_id: str, call: Call
    ) -> None:
        """Tell a leader to skip the assignment (KIP-814). A client that cannot be told so is answered as a follower of
        the former leader, which keeps it from computing an assignment that nobody asked for."""
        answer = join_answer(group, member)
        if call.context.api_version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            answer.skip_assignment = group.leader_id == member.member_id
        else:
            answer.leader, answer.members = old_leader_id, []
        call.answer(answer)
        member.awaiting_join = None


def validate_join(request: JoinGroupRequest, context: CoordinatorContext, config: GroupConfig) -> ErrorCode:
    """Return what is wrong with a JoinGroup, whichever group it is for."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if offers_too_much(request):
        return ErrorCode.INVALID_REQUEST
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    loadable = context.is_loadable
    if loadable is None:
        loadable = whole(look_if_all_loadable(request))
    return ErrorCode.NONE if loadable else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def needs_member_id(request: JoinGroupRequest, context: CoordinatorContext) -> bool:
    """Tell whether the member has to be given an id before it may join (KIP-394)."""
    is_dynamic = request.group_instance_id is None
    return is_dynamic and not request.member_id and context.api_version >= FIRST_VERSION_WITH_REQUIRED_MEMBER_ID


def offers_too_much(request: JoinGroupRequest) -> bool:
    """Tell whether the member brings more protocols, or more metadata, than a coordinator keeps for one member.

    Each protocol is kept as long as the member is there, and is compared with those of all members.
    """
    return len(request.protocols) > MOST_PROTOCOLS or metadata_bytes(request) > MOST_METADATA_BYTES


def metadata_bytes(request: JoinGroupRequest) -> int:
    return sum(len(protocol.metadata) for protocol in request.protocols)


def look_if_all_loadable(request: JoinGroupRequest) -> LongWork[bool]:
    """Tell whether Kafka could load a group with the member, whichever protocol is chosen. Large subscriptions take
    many turns."""
    if request.protocol_type == CONSUMER_PROTOCOL_TYPE:
        for protocol in request.protocols:
            if not (yield from look_if_loadable(bytes(protocol.metadata))):
                return False
    return True


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    """The metadata by the protocol's name. Of two protocols of one name the first counts."""
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    return protocols


def _difference(group: ClassicGroup, member: ClassicGroupMember, request: JoinGroupRequest) -> str:
    """Return why a member of a settled group joins again, as far as its request tells."""
    if group.state is PREPARING_REBALANCE:
        return ""
    if not member.matches(protocols_of(request)):
        return " with another subscription"
    return ", the leader, to have a new assignment made for the same subscription"


def _reason(request: JoinGroupRequest) -> str:
    return f" (client's reason: {request.reason})" if request.reason else ""
