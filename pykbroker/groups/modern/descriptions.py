"""The description of a group of a new protocol, which takes many turns where the group has many members."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, Self, TypeVar

from pykbroker.java_hash import place_in_a_table
from pykbroker.long_work import PORTION, LongWork, ordered, portions
from pykbroker.protocol.errors import ErrorCode

from ..common.group import Group, GroupType
from .modern_member import MemberT

DescribedT = TypeVar("DescribedT")
DescribedMemberT = TypeVar("DescribedMemberT")


@dataclass(frozen=True, slots=True)
class GroupAsOfNow(ABC, Generic[DescribedT, DescribedMemberT, MemberT]):
    """A group at one time, however many turns it takes to describe its members. group: without members."""

    group: DescribedT
    _members: Mapping[str, MemberT]

    def member_ids(self) -> LongWork[Iterator[str]]:
        """The member ids in the order in which Kafka lists them."""
        places: list[tuple[int, str]] = []
        for portion in portions(self._members, PORTION // 4):
            places += [(place_in_a_table(member_id), member_id) for member_id in portion]
            yield len(portion) * 3
        return (member_id for _, member_id in (yield from ordered(places)))

    def steps_of(self, member_id: str) -> int:
        """Return how many steps of long work it takes to describe the member and to encode the description."""
        each = self._partitions_of(self._members[member_id])
        return 5 + 2 * len(each) + sum(map(len, each)) // 8

    def for_thread(self) -> Self | None:
        """The same group, whose members may be described in a thread; None where that is nowhere needed."""
        return None

    @abstractmethod
    def _partitions_of(self, member: MemberT) -> list[Collection[int]]:
        """The sets of partitions, of whatever, that the description of the member names."""

    @abstractmethod
    def describe_member(self, member_id: str) -> DescribedMemberT: ...


class DescribableGroup(Protocol):
    """The properties of a group that its description begins with."""

    group_id: str
    group_epoch: int
    assignment_epoch: int

    @property
    def state(self) -> Enum: ...


def described_fields(group: DescribableGroup) -> dict[str, Any]:
    """The fields that the description of each group has."""
    return {
        "group_id": group.group_id,
        "group_state": group.state.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def missing_fields(group: Group | None, group_id: str, kind: GroupType) -> dict[str, Any]:
    """The fields of the description of a group that is none of this type."""
    words = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a {kind.value} group."
    return {"group_id": group_id, "error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": words}
