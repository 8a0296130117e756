"""Requests of handlers to a coordinator besides those of the protocol.

One request of a client may concern a hundred thousand groups, or all offsets of a group; handlers split it and ask for
a part at a time. `check_group_id` is what the protocol's requests need before they have a coordinator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetDeleteRequest
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatResponse
    from pykbroker.protocol.messages.topics import CreatableTopic

MOST_NAMES = 10_000
"""How many topics one member of a consumer group may name; a regular expression may match any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSomeGroups:
    """The groups among `group_ids` that exist and that the request asks for. Answered by a `ListGroupsResponse`."""

    request: ListGroupsRequest
    group_ids: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConsumerGroup:
    """One group of a ConsumerGroupDescribe request. Answered by a `ConsumerGroupAsOfNow`."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeStreamsGroup:
    """One group of a StreamsGroupDescribe request. Answered by a `StreamsGroupAsOfNow`."""

    group_id: str


@dataclass(frozen=True, slots=True)
class StreamsHeartbeatAnswer:
    """The answer to a StreamsGroupHeartbeat. missing: internal topics of the group that are to be created."""

    response: StreamsGroupHeartbeatResponse
    missing: Sequence[CreatableTopic] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """One group of a DeleteGroups request. Answered by an `ErrorCode` once the whole group is deleted."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAllOffsets:
    """All offsets that a group has committed. Answered by `AllOffsets`."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1


_NEED_A_GROUP = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetDeleteRequest,
    TxnOffsetCommitRequest,
)


def check_group_id(group_id: str, request: object) -> None:
    """Raises ApiError where the request needs the name of a group, and has none: Kafka says so whoever coordinates."""
    if group_id:
        return
    if isinstance(request, _NEED_A_GROUP):
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
