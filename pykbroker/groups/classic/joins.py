"""JoinGroup: who may be in a group, and under which member id.

A dynamic member of JoinGroup v4+ is given an id first and joins with it (KIP-394); a static member (KIP-345) that comes
back without its id takes the place of its former self, whose requests are fenced from then on.
"""

from __future__ import annotations

from random import Random
from typing import Protocol
from uuid import UUID

from pykbroker.long_work import LongWork, whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import JoinGroupRequest, SyncGroupResponse
from pykbroker.state_machine import Token

from ..common.config import GroupConfig
from ..common.context import GroupRequestContext, Step
from ..common.deadlines import Deadlines, SessionTimeout
from ..common.subscription import CONSUMER_PROTOCOL_TYPE, look_if_loadable
from ..consumer.consumer_group import ConsumerGroup
from ..consumer.consumer_records import ConsumerRecords, group_tombstones
from ..consumer.group_types import Group, find_consumer
from .classic_group import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE, UNKNOWN_MEMBER_ID, ClassicGroup
from .member import ClassicMember
from .rebalance import Rebalance, join_answer, refused_join

FIRST_VERSION_WITH_REQUIRED_MEMBER_ID = 4
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9

MOST_PROTOCOLS = 100
MOST_METADATA_BYTES = 4 << 20
"""Of one member. What a group is written down with, the metadata of one protocol of each member among it, has to fit
into one record of `__consumer_offsets`, by default a megabyte."""


class ConsumerGroupJoin(Protocol):
    """How members join a consumer group that has members."""

    def __call__(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        token: Token,
        context: GroupRequestContext,
        step: Step,
    ) -> None: ...


class Joins:
    """groups: the shard's groups, shared with it; a join is what adds one."""

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        deadlines: Deadlines,
        rebalance: Rebalance,
        consumer_records: ConsumerRecords,
        join_consumer_group: ConsumerGroupJoin,
        rng: Random,
    ) -> None:
        self._config = config
        self._groups = groups
        self._deadlines = deadlines
        self._rebalance = rebalance
        self._consumer_records = consumer_records
        self._join_consumer_group = join_consumer_group
        self._rng = rng

    def join(self, request: JoinGroupRequest, token: Token, context: GroupRequestContext, step: Step) -> None:
        error_code = self._validate(request, context)
        if error_code is not ErrorCode.NONE:
            step.answer(token, refused_join(error_code, request.member_id))
            return
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            self._join_consumer_group(group, request, token, context, step)
        elif isinstance(group, ClassicGroup):
            self._join(group, request, token, context, step)
        elif request.member_id:
            step.answer(token, refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            self._create_and_join(request, token, context, step)

    def _validate(self, request: JoinGroupRequest, context: GroupRequestContext) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if offers_too_much(request):
            return ErrorCode.INVALID_REQUEST
        shortest, longest = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        loadable = context.is_loadable
        if loadable is None:
            loadable = whole(look_if_all_loadable(request))
        return ErrorCode.NONE if loadable else ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def _create_and_join(
        self, request: JoinGroupRequest, token: Token, context: GroupRequestContext, step: Step
    ) -> None:
        group = ClassicGroup(request.group_id, step.timestamp_ms, f"created by a JoinGroup of {context.client_id}")
        self._join(group, request, token, context, step)
        # A join that is refused leaves no group behind; Kafka keeps an empty one.
        if group.members or group.pending_join_members:
            self._forget_empty_consumer_group(group.group_id, step)
            self._groups[group.group_id] = group
            step.append(group.record_of_creation())

    def _forget_empty_consumer_group(self, group_id: str, step: Step) -> None:
        """It makes room for a group of the old protocol."""
        known = find_consumer(self._groups, group_id)
        if known is not None:
            for tombstone in list(group_tombstones(known)):
                self._consumer_records.change(tombstone, step)
            step.because(f"group {group_id} was an empty consumer group, and is a classic group now")

    def _join(
        self, group: ClassicGroup, request: JoinGroupRequest, token: Token, context: GroupRequestContext, step: Step
    ) -> None:
        if not self._has_room(group, request.member_id):
            self._rebalance.drop_member(group, request.member_id, step)
            step.answer(token, refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
            cause = f"{request.member_id} found the group full"
            self._rebalance.complete_join_if_all_joined(group, cause, step)
        elif not group.supports_protocols(request.protocol_type, protocols_of(request)):
            step.answer(token, refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._join_new_member(group, request, token, context, step)
        else:
            self._join_known_member(group, request, token, context, step)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """While members join, those that wait are counted, not the group: the last to rejoin a full group stay out."""
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            if member is not None and member.awaiting_join is not None:
                return True
            return sum(m.awaiting_join is not None for m in group.members.values()) < self._config.max_size
        return group.state is EMPTY or member is not None or len(group.members) < self._config.max_size

    # New members

    def _join_new_member(
        self, group: ClassicGroup, request: JoinGroupRequest, token: Token, context: GroupRequestContext, step: Step
    ) -> None:
        instance_id = request.group_instance_id
        member_id = self._new_member_id(context.client_id if instance_id is None else instance_id)
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static_member(group, request, member_id, token, context, step)
        elif instance_id is None and context.api_version >= FIRST_VERSION_WITH_REQUIRED_MEMBER_ID:
            group.add_pending(member_id)
            timeout = SessionTimeout(group.group_id, member_id)
            self._deadlines.schedule(timeout, step.now_ms + request.session_timeout_ms)
            step.because(f"group {group.group_id}: {member_id} may join now")
            step.answer(token, refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add_member(group, request, member_id, token, context, step)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(int=self._rng.getrandbits(128), version=4)}"

    def _add_member(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        member_id: str,
        token: Token,
        context: GroupRequestContext,
        step: Step,
    ) -> None:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocols_of(request),
            awaiting_join=token,
            is_new=True,
        )
        if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            group.new_member_added = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        self._rebalance.keep_session(group, member, step)
        cause = f"{member_id} joined{_reason(request)}"
        self._rebalance.start_or_complete_join(group, cause, step)

    # Members that are known

    def _join_known_member(
        self, group: ClassicGroup, request: JoinGroupRequest, token: Token, context: GroupRequestContext, step: Step
    ) -> None:
        member_id = request.member_id
        if member_id in group.pending_join_members and request.group_instance_id is None:
            self._add_member(group, request, member_id, token, context, step)
            return
        error_code = group.validate_member(member_id, request.group_instance_id)
        if error_code is not ErrorCode.NONE:
            step.answer(token, refused_join(error_code, member_id))
            return
        member = group.members[member_id]
        if self._has_to_rebalance(group, member, request):
            self._update_member(member, request, token, step)
            cause = f"{member_id} joined again{_reason(request)}"
            self._rebalance.start_or_complete_join(group, cause, step)
        else:
            # It did not get the answer to its JoinGroup, or follows a leader that has not moved.
            step.answer(token, join_answer(group, member))

    def _has_to_rebalance(self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
        if group.state is PREPARING_REBALANCE:
            return True
        if group.state is STABLE and group.leader_id == member.member_id:
            return True  # A leader joins to have a new assignment made, for new partitions of a topic for example.
        return not member.matches(protocols_of(request))

    def _update_member(self, member: ClassicMember, request: JoinGroupRequest, token: Token, step: Step) -> None:
        member.protocols = protocols_of(request)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        if member.awaiting_join is not None:
            # The member asks again on another connection. Kafka leaves the older request without any answer.
            superseded = refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            step.answer(member.awaiting_join, superseded)
        member.awaiting_join = token

    # Static members

    def _replace_static_member(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        member_id: str,
        token: Token,
        context: GroupRequestContext,
        step: Step,
    ) -> None:
        assert request.group_instance_id is not None
        member = group.members[group.static_members[request.group_instance_id]]
        old_leader_id = group.leader_id
        cause = f"{member_id} took the place of {member.member_id}{_reason(request)}"
        self._fence(member, step)
        self._rebalance.forget_session(group, member.member_id)
        group.rename_static_member(member, member_id)
        self._rebalance.keep_session(group, member, step)
        self._update_member(member, request, token, step)
        keeps_protocol = group.state is STABLE and group.select_protocol() == group.protocol_name
        if keeps_protocol and self._rebalance.fits(group.record()):
            step.because(f"group {group.group_id}: {cause}; no rebalance")
            step.append(group.record())
            self._answer_without_rebalance(group, member, old_leader_id or "", context, step)
        elif group.state is PREPARING_REBALANCE:
            self._rebalance.complete_join_if_all_joined(group, cause, step)
        else:
            # The assignment under way, or the selected protocol, no longer fits the member.
            assert group.state in (STABLE, COMPLETING_REBALANCE)
            self._rebalance.start(group, cause, step)

    def _fence(self, member: ClassicMember, step: Step) -> None:
        """Whoever still waits under the old id is told that another has its place."""
        if member.awaiting_join is not None:
            step.answer(member.awaiting_join, refused_join(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
        if member.awaiting_sync is not None:
            step.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        member.awaiting_join = member.awaiting_sync = None

    def _answer_without_rebalance(
        self, group: ClassicGroup, member: ClassicMember, old_leader_id: str, context: GroupRequestContext, step: Step
    ) -> None:
        """A leader is told to skip the assignment (KIP-814). Where it cannot be told, it is answered as a follower:
        naming the former leader keeps it from computing an assignment that nobody asked for."""
        assert member.awaiting_join is not None
        answer = join_answer(group, member)
        if context.api_version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            answer.skip_assignment = group.leader_id == member.member_id
        else:
            answer.leader, answer.members = old_leader_id, []
        step.answer(member.awaiting_join, answer)
        member.awaiting_join = None


def offers_too_much(request: JoinGroupRequest) -> bool:
    """More than a group can do with: everything is kept as long as the member is there, and each protocol is compared
    with those of all members."""
    return len(request.protocols) > MOST_PROTOCOLS or metadata_bytes(request) > MOST_METADATA_BYTES


def metadata_bytes(request: JoinGroupRequest) -> int:
    return sum(len(protocol.metadata) for protocol in request.protocols)


def look_if_all_loadable(request: JoinGroupRequest) -> LongWork[bool]:
    """Whether Kafka could load a group with the member, whichever protocol is chosen."""
    if request.protocol_type == CONSUMER_PROTOCOL_TYPE:
        for protocol in request.protocols:
            if not (yield from look_if_loadable(bytes(protocol.metadata))):
                return False
    return True


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    """Where a name is given twice, the first counts."""
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    return protocols


def _reason(request: JoinGroupRequest) -> str:
    return f" (client's reason: {request.reason})" if request.reason else ""
