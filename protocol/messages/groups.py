"""Membership in a group by the classic rebalance protocol, and the way to a group's coordinator."""

from __future__ import annotations

from ..schema import Message, Struct, field


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible="3+", listeners="broker"):
    """The request asks which broker coordinates a group or a transactional id.

    v1 adds the key type (KIP-98), v4 takes several keys at once (KIP-699), v5 may be answered with
    TRANSACTION_ABORTABLE (KIP-890), v6 knows share groups by `group:topic id:partition` (KIP-932).
    """

    key: str = field("string", "0-3")
    key_type: int = field("int8", "1+")
    coordinator_keys: list[str] = field("[]string", "4+")


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    """The coordinators, one per key from v4 on (KIP-699)."""

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "0-3")
    error_message: str | None = field("string", "1-3", nullable="1-3", ignorable=True)
    node_id: int = field("int32", "0-3")
    host: str = field("string", "0-3")
    port: int = field("int32", "0-3")
    coordinators: list[Coordinator] = field("[]struct", "4+")


class Coordinator(Struct):
    key: str = field("string", "4+")
    node_id: int = field("int32", "4+")
    host: str = field("string", "4+")
    port: int = field("int32", "4+")
    error_code: int = field("int16", "4+")
    error_message: str | None = field("string", "4+", nullable="4+", ignorable=True)


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+", listeners="broker"):
    """The request joins a group and starts a rebalance; the answer comes when all members have joined.

    v1 adds the rebalance timeout (KIP-62), v4 makes a new member come back with the id it is given (KIP-394), v5
    brings static members (KIP-345), v8 the reason (KIP-800), v9 the leader that need not assign (KIP-814).
    """

    group_id: str = field("string")
    session_timeout_ms: int = field("int32")
    rebalance_timeout_ms: int = field("int32", "1+", default=-1, ignorable=True)
    member_id: str = field("string")
    group_instance_id: str | None = field("string", "5+", nullable="5+", default=None)
    protocol_type: str = field("string")
    protocols: list[JoinGroupRequestProtocol] = field("[]struct")
    reason: str | None = field("string", "8+", nullable="8+", default=None, ignorable=True)


class JoinGroupRequestProtocol(Struct):
    name: str = field("string", map_key=True)
    metadata: bytes = field("bytes")


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    """The new generation; the leader also gets all members with their subscriptions.

    v5 adds instance ids (KIP-345), v7 the protocol type and a nullable protocol name (KIP-559), v9 skip_assignment
    for a static leader that returns (KIP-814).
    """

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    error_code: int = field("int16")
    generation_id: int = field("int32", default=-1)
    protocol_type: str | None = field("string", "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field("string", nullable="7+")
    leader: str = field("string")
    skip_assignment: bool = field("bool", "9+")
    member_id: str = field("string")
    members: list[JoinGroupResponseMember] = field("[]struct")


class JoinGroupResponseMember(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = field("bytes")


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+", listeners="broker"):
    """The request asks for the member's assignment; the leader brings those of all members.

    v3 brings static members (KIP-345), v5 the protocol's type and name (KIP-559).
    """

    group_id: str = field("string")
    generation_id: int = field("int32")
    member_id: str = field("string")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
    protocol_type: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field("[]struct")


class SyncGroupRequestAssignment(Struct):
    member_id: str = field("string")
    assignment: bytes = field("bytes")


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible="4+"):
    """The member's assignment, from v5 on with the protocol's type and name (KIP-559)."""

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16")
    protocol_type: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = field("bytes")


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+", listeners="broker"):
    """The request keeps a member in its group.

    v3 brings static members (KIP-345).
    """

    group_id: str = field("string")
    generation_id: int = field("int32")
    member_id: str = field("string")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    """The response says whether the member still belongs to the generation; REBALANCE_IN_PROGRESS: join again."""

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16")


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+", listeners="broker"):
    """The request takes a member out of its group, from v3 on several at once (KIP-345).

    v5 adds the reason (KIP-800).
    """

    group_id: str = field("string")
    member_id: str = field("string", "0-2")
    members: list[MemberIdentity] = field("[]struct", "3+")


class MemberIdentity(Struct):
    member_id: str = field("string", "3+")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
    reason: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    """The outcome, from v3 on for each member (KIP-345)."""

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16")
    members: list[MemberResponse] = field("[]struct", "3+")


class MemberResponse(Struct):
    member_id: str = field("string", "3+")
    group_instance_id: str | None = field("string", "3+", nullable="3+")
    error_code: int = field("int16", "3+")
