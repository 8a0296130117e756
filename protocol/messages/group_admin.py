"""Listing, describing and deleting groups."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+", listeners="broker"):
    """The request lists the groups that this broker coordinates.

    v4 filters by state (KIP-518), v5 by type (KIP-848).
    """

    states_filter: list[str] = field("[]string", "4+")
    types_filter: list[str] = field("[]string", "5+")


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    """Groups with their protocol type.

    v4 adds the state (KIP-518), v5 the type (KIP-848).
    """

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16")
    groups: list[ListedGroup] = field("[]struct")


class ListedGroup(Struct):
    group_id: str = field("string")
    protocol_type: str = field("string")
    group_state: str = field("string", "4+", ignorable=True)
    group_type: str = field("string", "5+", ignorable=True)


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+", listeners="broker"):
    """The request asks for classic groups in detail.

    v3 can ask for authorized operations (KIP-430), v6 makes a missing group an error (KIP-1043).
    """

    groups: list[str] = field("[]string")
    include_authorized_operations: bool = field("bool", "3+")


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    """State, protocol and members of each group.

    v3 adds authorized operations (KIP-430), v4 instance ids (KIP-345), v6 an error message (KIP-1043).
    """

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    groups: list[DescribedGroup] = field("[]struct")


class DescribedGroup(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", "6+", nullable="6+", default=None)
    group_id: str = field("string")
    group_state: str = field("string")
    protocol_type: str = field("string")
    protocol_data: str = field("string")
    members: list[DescribedGroupMember] = field("[]struct")
    authorized_operations: int = field("int32", "3+", default=-2147483648)


class DescribedGroupMember(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field("string", "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = field("string")
    client_host: str = field("string")
    member_metadata: bytes = field("bytes")
    member_assignment: bytes = field("bytes")


class DeleteGroupsRequest(Message, api_key=42, versions="0-3", flexible="2+", listeners="broker"):
    """The request deletes groups without members, with their offsets (KIP-229)."""

    groups_names: list[str] = field("[]string")


class DeleteGroupsResponse(Message, api_key=42, versions="0-3", flexible="2+"):
    """The outcome for each group; v3 adds an error message (KIP-1331)."""

    throttle_time_ms: int = field("int32")
    results: list[DeletableGroupResult] = field("[]struct")


class DeletableGroupResult(Struct):
    group_id: str = field("string", map_key=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", "3+", nullable="3+", default=None, ignorable=True)
