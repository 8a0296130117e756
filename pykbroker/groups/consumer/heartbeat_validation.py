"""The rules for the fields of a ConsumerGroupHeartbeat, and for its member epoch.

The model is Kafka's `GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid`.
"""

from __future__ import annotations

from collections.abc import Collection

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest

from ..common.group import GroupType
from ..common.requests import MOST_NAMES
from ..modern.heartbeat_rules import NO_REBALANCE_TIMEOUT, check_epoch_of_member
from ..modern.modern_member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from .consumer_group_member import ConsumerGroupMember
from .reconciliation import ReportedPartitions

FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT = 1


def validate_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raises ApiError for fields that are missing, empty or not supported."""
    wrong = _what_is_empty(request, version) or _what_misses(request)
    if wrong is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, wrong)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        words = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, words)


def _what_is_empty(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """A member that joins by version 0 has no id yet (KIP-1082)."""
    epoch = request.member_epoch
    has_member_id = version >= FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT or epoch > JOINING_EPOCH or epoch == LEAVING_EPOCH
    if has_member_id and not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.instance_id is not None and not request.instance_id.strip():
        return "InstanceId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    return None


def _what_misses(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.member_epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == NO_REBALANCE_TIMEOUT:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    if request.member_epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    if request.subscribed_topic_names is not None and len(request.subscribed_topic_names) > MOST_NAMES:
        return f"SubscribedTopicNames has more than {MOST_NAMES} names."
    return "MemberEpoch is invalid." if request.member_epoch < STATIC_LEAVING_EPOCH else None


def validate_epoch(member: ConsumerGroupMember, epoch: int, owned: ReportedPartitions | None) -> None:
    """Raises ApiError for an epoch that is neither the member's nor, as long as it reports no partition that it was not
    given, the one before."""
    check_epoch_of_member(GroupType.CONSUMER, member, epoch, lambda: _is_subset(owned, member))


def _is_subset(owned: ReportedPartitions | None, member: ConsumerGroupMember) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in member.assigned and each <= member.assigned[topic_id].keys() for topic_id, each in owned.items()
    )
