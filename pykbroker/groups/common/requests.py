"""Requests of handlers to a coordinator besides those of the protocol.

One request of a client may concern a hundred thousand groups, or all offsets of a group; handlers split it and ask for
a part at a time. `check_group_id` is what the protocol's requests need before they have a coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetDeleteRequest
from pykbroker.protocol.messages.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatResponse
    from pykbroker.protocol.messages.topics import CreatableTopic

MOST_NAMES = 10_000
"""How many topics one member of a consumer or share group may name; a regular expression may match any number."""


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
    """One group of a StreamsGroupDescribe request. Answered by a `StreamsGroupAsOfNow`.

    with_description: whether the description of the topology is asked for as well (KIP-1331).
    """

    group_id: str
    with_description: bool = False


@dataclass(frozen=True, slots=True)
class StreamsHeartbeatAnswer:
    """The answer to a StreamsGroupHeartbeat. missing: internal topics of the group that are to be created."""

    response: StreamsGroupHeartbeatResponse
    missing: Sequence[CreatableTopic] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroup:
    """One group of a ShareGroupDescribe request. Answered by a `ShareGroupAsOfNow`."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSharePartitions:
    """The share partitions of a group whose state is kept. Answered by partitions by topic id."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndShareInitialization:
    """The share coordinator has, or could not, create the state of these partitions. Answered by None.

    topics: partitions by topic id. is_done: whether all of their state is there.
    """

    group_id: str
    topics: Mapping[bytes, frozenset[int]]
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShareOffsets:
    """New start offsets of a share group without members. Answered by a `ShareAlteration`.

    topics: by name, the start offsets by partition.
    """

    group_id: str
    topics: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginShareStateDeletion:
    """The state of a share group without members is about to be deleted. Answered by a `ShareDeletion`.

    topics: the names of the topics; None for all, where the group goes, too.
    """

    group_id: str
    topics: Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndShareStateDeletion:
    """The share coordinator keeps no state of these topics any more. Answered by None."""

    group_id: str
    topic_ids: Sequence[bytes]


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
    if isinstance(request, ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest):
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
