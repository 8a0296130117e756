"""Members of the classic protocol in a consumer group: what their JoinGroup, SyncGroup, Heartbeat and LeaveGroup mean.

The four requests do for such a member what ConsumerGroupHeartbeat does for others. Its generation is its member epoch.
JoinGroup reports its subscription and its partitions, and takes its next step; SyncGroup fetches the assignment after
that step; Heartbeat tells it to rejoin when there is a next step to take. No request waits for other members. The
models are the methods `classicGroup…ToConsumerGroup` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from pykbroker.protocol.errors import ApiError, ErrorCode, MalformedMessage
from pykbroker.protocol.messages.consumer_group_records import ClassicMemberMetadata
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from pykbroker.state_machine import CoordinatorContext

from ..classic.classic_group import UNKNOWN_MEMBER_ID
from ..classic.joins import needs_member_id, protocols_of, validate_join
from ..classic.rebalance import refused_join
from ..common.config import GroupConfig
from ..common.context import Call, Step
from ..common.group import GroupType
from ..common.subscription import CONSUMER_PROTOCOL_TYPE
from ..common.topics import TopicsView
from ..modern.heartbeat_rules import check_room
from ..modern.membership import known_static_member
from .consumer_group import ConsumerGroup
from .consumer_group_member import UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, ConsumerGroupMember
from .consumer_records import member_record
from .embedded_protocol import EmbeddedSubscription, read_subscription, write_assignment
from .member_progress import Heard, MemberProgress
from .membership import ConsumerMembership, new_member_id
from .migration import Migration, classic_metadata


class ClassicProtocolMembers:
    """The handler of classic requests for consumer groups that have members."""

    def __init__(
        self,
        config: GroupConfig,
        membership: ConsumerMembership,
        progress: MemberProgress,
        migration: Migration,
        topics: TopicsView,
        rng: Random,
    ) -> None:
        self._config = config
        self._membership = membership
        self._progress = progress
        self._migration = migration
        self._topics = topics
        self._rng = rng

    # JoinGroup

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, call: Call) -> None:
        error_code = validate_join(request, call.context, self._config)
        if error_code is not ErrorCode.NONE:
            call.answer(refused_join(error_code, request.member_id))
            return
        try:
            self._join(group, request, request.member_id or new_member_id(self._rng), call)
        except ApiError as error:
            call.answer(refused_join(error.code, UNKNOWN_MEMBER_ID))

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str, call: Call) -> None:
        """Answers the request, or raises ApiError."""
        step = call.step
        protocols = protocols_of(request)
        self._validate_join(group, request, protocols)
        if needs_member_id(request, call.context):
            call.answer(refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        is_new = not request.member_id
        member = self._find_joining(group, member_id, request.group_instance_id, is_new=is_new)
        try:
            subscription = read_subscription(next(iter(protocols.values())), self._topics)
        except MalformedMessage:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None
        updated = _updated(member, request, protocols, subscription, call.context)
        if member_record(group.group_id, updated).size_bytes > self._config.max_record_bytes:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        takes_place = is_new and group.static_member(request.group_instance_id) is not None
        if takes_place:
            member = self._membership.replace_static_member(group, member, member_id, step)
            updated = _updated(member, request, protocols, subscription, call.context)
        epoch_before = group.group_epoch
        has_changed = self._progress.put(group, member, updated, step)
        is_outdated = group.group_epoch > group.assignment_epoch
        if takes_place and is_outdated and self._migration.downgrade_with(group, updated, epoch_before, call):
            return
        current = self._progress.go_on(group, member_id, has_changed, Heard(lambda: subscription.owned), step)
        if current is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if takes_place and self._migration.downgrade_with(group, current, group.group_epoch, call):
            return
        self._membership.await_sync(group, current, request.session_timeout_ms, step)
        call.answer(
            JoinGroupResponse(
                generation_id=current.member_epoch,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocol_name=next(iter(protocols)),
                member_id=current.member_id,
            )
        )

    def _validate_join(self, group: ConsumerGroup, request: JoinGroupRequest, protocols: Mapping[str, bytes]) -> None:
        """Raises ApiError for a member that may not join the group."""
        if self._migration.is_disabled:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not self._progress.has_place(group, request.member_id, request.group_instance_id):
            check_room(group, GroupType.CONSUMER, self._config.consumer_max_size)
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not _is_one_common(group, protocols):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _find_joining(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_new: bool
    ) -> ConsumerGroupMember:
        """The member that joins. Raises ApiError.

        A static member that comes back takes its place without further conditions, because the classic protocol cannot
        say that a member leaves for a while.
        """
        if instance_id is None:
            return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
        if not is_new:
            return known_static_member(group, member_id, instance_id)
        return group.static_member(instance_id) or ConsumerGroupMember(member_id=member_id)

    # SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, step: Step) -> SyncGroupResponse:
        try:
            return self._sync(group, request, step)
        except ApiError as error:
            return SyncGroupResponse(error_code=error.code)

    def _sync(self, group: ConsumerGroup, request: SyncGroupRequest, step: Step) -> SyncGroupResponse:
        """The answer with the assignment. Raises ApiError."""
        member, classic = self._find(group, request.member_id, request.group_instance_id, request.generation_id)
        protocol = classic.supported_protocols[0]
        names = (request.protocol_type, request.protocol_name)
        if any(
            said is not None and said != known
            for said, known in zip(names, (CONSUMER_PROTOCOL_TYPE, protocol.name), strict=True)
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.member_epoch and member.state is not UNREVOKED_PARTITIONS:
            self._membership.await_rejoin(group, member, step)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._membership.stop_awaiting_sync(group, member)
        self._membership.keep_session(group, member.member_id, classic.session_timeout_ms, step)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(member.assigned, bytes(protocol.metadata), self._topics),
        )

    # Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, step: Step) -> HeartbeatResponse:
        try:
            member, classic = self._find(group, request.member_id, request.group_instance_id, request.generation_id)
        except ApiError as error:
            return HeartbeatResponse(error_code=error.code)
        self._membership.keep_session(group, member.member_id, classic.session_timeout_ms, step)
        if not _has_next_step(group, member):
            return HeartbeatResponse()
        self._membership.await_rejoin(group, member, step)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def _find(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
        """The member, which speaks the classic protocol. Raises ApiError."""
        member = group.members.get(member_id)
        if instance_id is not None:
            member = known_static_member(group, member_id, instance_id)
        if member is None or member.classic is None or not member.classic.supported_protocols:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.member_epoch != generation_id:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return member, member.classic

    # LeaveGroup

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, step: Step) -> LeaveGroupResponse:
        """An administrator may remove members of either protocol."""
        leaving: dict[str, ConsumerGroupMember] = {}
        answers = []
        for each in request.members:
            answer = MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id)
            try:
                member = self._find_leaving(group, each)
                leaving[member.member_id] = member
            except ApiError as error:
                answer.error_code = error.code
            answers.append(answer)
        if leaving:
            reasons = sorted({each.reason or "no reason given" for each in request.members})
            self._membership.remove(group, list(leaving.values()), f"it left ({', '.join(reasons)})", step)
        return LeaveGroupResponse(members=answers)

    def _find_leaving(self, group: ConsumerGroup, leaving: MemberIdentity) -> ConsumerGroupMember:
        """The member that leaves. Raises ApiError."""
        if leaving.group_instance_id is None or leaving.member_id:
            return self._membership.find_member(group, leaving.member_id, leaving.group_instance_id, is_joining=False)
        member = group.static_member(leaving.group_instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {leaving.group_instance_id} is unknown.")
        return member


def _updated(
    member: ConsumerGroupMember,
    request: JoinGroupRequest,
    protocols: dict[str, bytes],
    subscription: EmbeddedSubscription,
    context: CoordinatorContext,
) -> ConsumerGroupMember:
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=subscription.topic_names,
        subscribed_topic_regex="",
        client_id=context.client_id,
        client_host=context.client_host,
        classic=classic_metadata(request.session_timeout_ms, protocols),
    )


def _is_one_common(group: ConsumerGroup, protocols: Mapping[str, bytes]) -> bool:
    """Tell whether every classic member supports one of the protocols, so that the group can become a classic group."""
    offered = [
        {protocol.name for protocol in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return any(all(name in names for names in offered) for name in protocols)


def _has_next_step(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state is UNREVOKED_PARTITIONS:
        return True
    return member.state is UNRELEASED_PARTITIONS and not _waits_for_others(group, member)


def _waits_for_others(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    return any(
        group.owner_of(topic_id, partition) is not None
        for topic_id, partitions in group.target_of(member).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )
