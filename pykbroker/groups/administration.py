"""ListGroups and DescribeGroups: what an administrator sees of groups; and how one goes away."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from pykbroker.state_machine import Token

from .classic.classic_group import DEAD, STABLE
from .classic.member import ClassicMember
from .classic.rebalance import Rebalance
from .common.context import GroupRequestContext, Step
from .common.records import group_metadata_record
from .consumer.consumer_group import ConsumerGroup
from .consumer.consumer_records import ConsumerRecords, group_tombstones
from .consumer.group_types import Group, find_classic
from .requests import ListSomeGroups

CLASSIC_TYPE = "classic"
CONSUMER_TYPE = "consumer"
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6


class Administration:
    def __init__(
        self,
        groups: dict[str, Group],
        rebalance: Rebalance,
        consumer_records: ConsumerRecords,
    ) -> None:
        self._groups = groups
        self._rebalance = rebalance
        self._consumer_records = consumer_records

    def list(self, asked: ListSomeGroups, token: Token, step: Step) -> None:
        """Filters are compared without regard to case; an empty one lets everything through."""
        request = asked.request
        states = {state.lower() for state in request.states_filter}
        types = {type_.lower() for type_ in request.types_filter}
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=type_of(group),
            )
            for group in map(self._groups.get, asked.group_ids)
            if group is not None
            and (not states or group.state.value.lower() in states)
            and (not types or type_of(group).lower() in types)
        ]
        step.answer(token, ListGroupsResponse(groups=listed))

    def describe(self, request: DescribeGroupsRequest, token: Token, context: GroupRequestContext, step: Step) -> None:
        described = [self._describe(group_id, context.api_version) for group_id in request.groups]
        step.answer(token, DescribeGroupsResponse(groups=described))

    def _describe(self, group_id: str, version: int) -> DescribedGroup:
        group = find_classic(self._groups, group_id)
        if group is None:
            answer = DescribedGroup(group_id=group_id, group_state=DEAD.value)
            if version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
                answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                is_other = group_id in self._groups
                why = f"Group {group_id} is not a classic group." if is_other else f"Group {group_id} not found."
                answer.error_message = why
            return answer
        protocol_name = group.protocol_name if group.state is STABLE else None
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol_name or "",
            members=[_describe_member(member, protocol_name) for member in group.members.values()],
        )

    def forget(self, group: Group, cause: str, step: Step) -> None:
        """Removes an empty group; the tombstones of its offsets, if it has any, are in the step."""
        if isinstance(group, ConsumerGroup):
            for tombstone in list(group_tombstones(group)):
                self._consumer_records.change(tombstone, step)
        else:
            for member_id in list(group.pending_join_members):
                self._rebalance.drop_member(group, member_id, step)
            step.append(group_metadata_record(group.group_id, None))
            group.transition_to(DEAD, step.timestamp_ms, cause)
            del self._groups[group.group_id]
        step.because(f"group {group.group_id} is gone: {cause}")


def type_of(group: Group) -> str:
    return CONSUMER_TYPE if isinstance(group, ConsumerGroup) else CLASSIC_TYPE


def _describe_member(member: ClassicMember, protocol_name: str | None) -> DescribedGroupMember:
    """What the member offers is told of a stable group only, where it is known which protocol counts."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.protocols[protocol_name],
        member_assignment=member.assignment,
    )
