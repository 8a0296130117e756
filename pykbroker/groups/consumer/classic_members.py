"""Members of the classic protocol in a consumer group: what their JoinGroup, SyncGroup, Heartbeat and LeaveGroup mean.

Such a member gets from the coordinator what others get by ConsumerGroupHeartbeat. Its generation is its member epoch.
JoinGroup says what it subscribes to and has, and takes it its next step; SyncGroup fetches what it has then; Heartbeat
tells it to rejoin when there is a next step to take. Nobody waits for others. The model is the methods
`classicGroup…ToConsumerGroup` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from pykbroker.protocol.errors import ErrorCode, MalformedMessage
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
from pykbroker.state_machine import Token

from ..classic.classic_group import UNKNOWN_MEMBER_ID
from ..classic.embedded_protocol import EmbeddedSubscription, read_subscription, write_assignment
from ..classic.joins import FIRST_VERSION_WITH_REQUIRED_MEMBER_ID, protocols_of
from ..classic.rebalance import refused_join
from ..classic.syncs import FIRST_VERSION_WITH_PROTOCOL
from ..common.config import GroupConfig
from ..common.context import GroupRequestContext, Step
from ..common.refusal import Refusal
from ..common.subscription import CONSUMER_PROTOCOL_TYPE
from ..common.topics import TopicsView
from .consumer_group import ConsumerGroup
from .consumer_member import UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, ConsumerMember
from .consumer_membership import ConsumerMembership, new_member_id
from .consumer_records import member_record
from .member_progress import MemberProgress
from .migration import Migration, classic_metadata


class ClassicMembers:
    """Of consumer groups that have members."""

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

    def join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        token: Token,
        context: GroupRequestContext,
        step: Step,
    ) -> None:
        """The request as such has been validated."""
        answer = self._join(group, request, request.member_id or new_member_id(self._rng), token, context, step)
        if answer is not None:
            step.answer(token, answer)

    def _join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        member_id: str,
        token: Token,
        context: GroupRequestContext,
        step: Step,
    ) -> JoinGroupResponse | None:
        protocols = protocols_of(request)
        error_code = self._why_not_joining(group, request, protocols)
        if error_code is not ErrorCode.NONE:
            return refused_join(error_code, UNKNOWN_MEMBER_ID)
        is_new = not request.member_id
        needs_member_id = context.api_version >= FIRST_VERSION_WITH_REQUIRED_MEMBER_ID
        if is_new and request.group_instance_id is None and needs_member_id:
            return refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        member = self._find_joining(group, member_id, request.group_instance_id, is_new=is_new)
        if isinstance(member, Refusal):
            return refused_join(member.error_code, UNKNOWN_MEMBER_ID)
        try:
            subscription = read_subscription(next(iter(protocols.values())), self._topics)
        except MalformedMessage:
            return refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID)
        updated = _updated(member, request, protocols, subscription, context)
        if member_record(group.group_id, updated).size_bytes > self._config.max_record_bytes:
            return refused_join(ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER_ID)
        takes_place = is_new and group.static_member(request.group_instance_id) is not None
        if takes_place:
            member = self._membership.replace_static_member(group, member, member_id, step)
            updated = _updated(member, request, protocols, subscription, context)
        epoch_before = group.group_epoch
        has_changed = self._progress.put(group, member, updated, step)
        is_outdated = group.group_epoch > group.assignment_epoch
        if takes_place and is_outdated and self._migration.downgrade_with(group, updated, epoch_before, token, step):
            return None
        current = self._progress.go_on(group, member_id, has_changed, subscription.owned, step)
        if current is None:
            return refused_join(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID)
        if takes_place and self._migration.downgrade_with(group, current, group.group_epoch, token, step):
            return None
        self._membership.await_sync(group, current, request.session_timeout_ms, step)
        return JoinGroupResponse(
            generation_id=current.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=next(iter(protocols)),
            member_id=current.member_id,
        )

    def _why_not_joining(
        self, group: ConsumerGroup, request: JoinGroupRequest, protocols: Mapping[str, bytes]
    ) -> ErrorCode:
        if self._migration.is_disabled:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if len(group.members) >= self._config.consumer_max_size and request.member_id not in group.members:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not _is_one_common(group, protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _find_joining(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_new: bool
    ) -> ConsumerMember | Refusal:
        """A static member that comes back takes its place without asking: the classic protocol cannot say that it
        leaves for a while."""
        if instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id=member_id)
        if not is_new:
            return self._membership.known_static_member(group, member_id, instance_id)
        return group.static_member(instance_id) or ConsumerMember(member_id=member_id)

    # SyncGroup

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, context: GroupRequestContext, step: Step
    ) -> SyncGroupResponse:
        member = self._find(group, request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return SyncGroupResponse(error_code=member)
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        names = (request.protocol_type, request.protocol_name)
        is_said = context.api_version >= FIRST_VERSION_WITH_PROTOCOL
        if any(
            is_said if said is None else said != known
            for said, known in zip(names, (CONSUMER_PROTOCOL_TYPE, protocol.name), strict=True)
        ):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.member_epoch and member.state is not UNREVOKED_PARTITIONS:
            self._membership.await_rejoin(group, member, step)
            return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        self._membership.stop_awaiting_sync(group, member)
        self._membership.keep_session(group, member.member_id, member.classic.session_timeout_ms, step)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(member.assigned, bytes(protocol.metadata), self._topics),
        )

    # Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, step: Step) -> HeartbeatResponse:
        member = self._find(group, request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return HeartbeatResponse(error_code=member)
        assert member.classic is not None
        self._membership.keep_session(group, member.member_id, member.classic.session_timeout_ms, step)
        if not _has_next_step(group, member):
            return HeartbeatResponse()
        self._membership.await_rejoin(group, member, step)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def _find(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> ConsumerMember | ErrorCode:
        member: ConsumerMember | Refusal | None = group.members.get(member_id)
        if instance_id is not None:
            member = self._membership.known_static_member(group, member_id, instance_id)
        if isinstance(member, Refusal):
            return member.error_code
        if member is None or member.classic is None or not member.classic.supported_protocols:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member if member.member_epoch == generation_id else ErrorCode.ILLEGAL_GENERATION

    # LeaveGroup

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, step: Step) -> LeaveGroupResponse:
        """An administrator may remove members of either protocol."""
        found = [(each, self._find_leaving(group, each)) for each in request.members]
        leaving = {member.member_id: member for _, member in found if isinstance(member, ConsumerMember)}
        if leaving:
            reasons = sorted({each.reason or "no reason given" for each, _ in found})
            self._membership.remove(group, list(leaving.values()), f"it left ({', '.join(reasons)})", step)
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=member.error_code if isinstance(member, Refusal) else ErrorCode.NONE,
                )
                for each, member in found
            ]
        )

    def _find_leaving(self, group: ConsumerGroup, leaving: MemberIdentity) -> ConsumerMember | Refusal:
        if leaving.group_instance_id is None or leaving.member_id:
            return self._membership.find_member(group, leaving.member_id, leaving.group_instance_id, is_joining=False)
        member = group.static_member(leaving.group_instance_id)
        return member or Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {leaving.group_instance_id} is unknown.")


def _updated(
    member: ConsumerMember,
    request: JoinGroupRequest,
    protocols: dict[str, bytes],
    subscription: EmbeddedSubscription,
    context: GroupRequestContext,
) -> ConsumerMember:
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
    """Whether one of the protocols is every classic member's, so that the group can be a classic one again."""
    offered = [
        {protocol.name for protocol in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return any(all(name in names for names in offered) for name in protocols)


def _has_next_step(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state is UNREVOKED_PARTITIONS:
        return True
    return member.state is UNRELEASED_PARTITIONS and not _waits_for_others(group, member)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(
        group.owner_of(topic_id, partition) is not None
        for topic_id, partitions in group.target_of(member).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )
