"""DescribeGroups: what an administrator sees of a classic group."""

from __future__ import annotations

from collections.abc import Mapping

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import DescribedGroup, DescribedGroupMember

from ..common.group import Group
from .classic_group import DEAD, STABLE, find_classic
from .classic_group_member import ClassicGroupMember

_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6


def describe_group(groups: Mapping[str, Group], group_id: str, version: int) -> DescribedGroup:
    group = find_classic(groups, group_id)
    if group is None:
        answer = DescribedGroup(group_id=group_id, group_state=DEAD.value)
        if version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
            answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            is_other = group_id in groups
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


def _describe_member(member: ClassicGroupMember, protocol_name: str | None) -> DescribedGroupMember:
    """A member's metadata is shown in a stable group only, where a protocol has been selected."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.protocols[protocol_name],
        member_assignment=member.assignment,
    )
