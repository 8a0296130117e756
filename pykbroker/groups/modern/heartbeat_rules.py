"""The reasons for which a heartbeat of a new protocol is refused, whichever type of group it is for.

The words are those of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from pykbroker.protocol.errors import ApiError, ErrorCode

from ..common.group import GroupType
from ..common.records import CoordinatorRecord
from .modern_group import ModernGroup
from .modern_member import JOINING_EPOCH, ModernMember

NO_REBALANCE_TIMEOUT = -1


def not_found(groups: Container[str], group_id: str, kind: GroupType, missed: str | None = None) -> ApiError:
    """The error for an id that names no group of the type.

    groups: the ids of groups of all types. missed: what Kafka calls the group that it misses, if not by its type.
    """
    if group_id in groups:
        words = f"Group {group_id} is not a {kind.value} group."
    else:
        words = f"{missed or f'{kind.value.capitalize()} group'} {group_id} not found."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, words)


def check_room(group: ModernGroup[Any, Any], kind: GroupType, most: int) -> None:
    """Raises ApiError for one member more where the group has as many as it may have."""
    if len(group.members) >= most:
        words = f"The {kind.value} group has reached its maximum capacity of {most} members."
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, words)


def check_record_size(what: str, record: CoordinatorRecord, most_bytes: int) -> None:
    """Raises ApiError for a record that is too large: a failed append makes all groups load again.

    what: the subject of the sentence, with its verb.
    """
    size_bytes = record.size_bytes
    if size_bytes > most_bytes:
        words = f"The {what} {size_bytes} bytes, of {most_bytes} at most."
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, words)


def check_epoch_of_member(
    kind: GroupType, member: ModernMember, epoch: int, owns_what_it_has: Callable[[], bool]
) -> None:
    """The answer that brought the newest epoch may have been lost: the member may send the one before, as long as it
    reports nothing that it was not given (`owns_what_it_has`). Raises ApiError."""
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    if epoch > member.member_epoch:
        raise _fenced(kind, "greater", epoch, member)
    if epoch != member.previous_member_epoch or not owns_what_it_has():
        raise _fenced(kind, "smaller", epoch, member)


def _fenced(kind: GroupType, which: str, epoch: int, member: ModernMember) -> ApiError:
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind.value} group member has a {which} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )
