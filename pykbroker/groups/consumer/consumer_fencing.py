"""Who may store and read offsets of a consumer group: its members, in an epoch in which the partition was theirs.

A member whose epoch has moved on may still commit for what it kept: the epoch in which a partition was assigned to it
is what counts (KIP-1251). The model is Kafka's `ConsumerGroup.validateOffsetCommit`.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode

from .consumer_group import ConsumerGroup
from .consumer_member import ConsumerMember

FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH = 9


def validate_commit(group: ConsumerGroup, member_id: str, member_epoch: int, version: int) -> ErrorCode:
    """What is wrong with the request as a whole; `validate_commit_of_partition` comes next."""
    if member_epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not member.uses_classic_protocol and version < FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH:
        return ErrorCode.UNSUPPORTED_VERSION
    return _stale(member) if member_epoch > member.member_epoch else ErrorCode.NONE


def validate_commit_in_transaction(
    group: ConsumerGroup, member_id: str, instance_id: str | None, member_epoch: int
) -> ErrorCode:
    """Producers of the time before KIP-447 do not say for whom they commit; and they know generations only.

    `validate_commit_of_partition` comes next here too; whatever it finds is ILLEGAL_GENERATION.
    """
    if member_epoch < 0 and (group.is_empty or (not member_id and instance_id is None)):
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.ILLEGAL_GENERATION if member_epoch > member.member_epoch else ErrorCode.NONE


def validate_commit_of_partition(
    group: ConsumerGroup, member_id: str, member_epoch: int, topic_id: bytes, partition: int
) -> ErrorCode:
    member = group.members.get(member_id)
    if member is None or member_epoch == member.member_epoch:
        return ErrorCode.NONE
    assigned_in = member.assigned.get(topic_id, {}).get(partition)
    if assigned_in is None:
        assigned_in = member.pending_revocation.get(topic_id, {}).get(partition)
    return _stale(member) if assigned_in is None or member_epoch < assigned_in else ErrorCode.NONE


def validate_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> ErrorCode:
    """Whoever does not say that it is a member may read."""
    if member_id is None and member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member_epoch == member.member_epoch else _stale(member)


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
