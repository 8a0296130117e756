"""One member of a group of a new protocol, as a value: every change makes a new one, by a record.

Where a group has members that give up what others wait for, the epoch counts in which a partition or a task was
assigned: with that epoch its owner may commit offsets for it, whatever has happened to the group since (KIP-1251).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import Any, Final, Self, TypeVar

from ..common.records import RecordValue

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""The epoch of a static member that will come back: it is kept until its session is over."""

_SHOWN_NAMES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernMember(ABC):
    """The part of a member that every type of group knows.

    previous_member_epoch: what a member may still send whose answer was lost.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""

    @abstractmethod
    def metadata_value(self) -> RecordValue:
        """The value of the record that has what the member said of itself."""

    @abstractmethod
    def assignment_value(self) -> RecordValue:
        """The value of the record that has what the member owns, and in which epoch it is."""

    @abstractmethod
    def with_metadata(self, value: Any) -> Self:
        """The member as such a record, which was read back, has it."""

    @abstractmethod
    def with_assignment(self, value: Any) -> Self: ...

    @abstractmethod
    def without_assignment(self) -> Self:
        """The member after a tombstone of its assignment: it gave up everything by leaving."""


MemberT = TypeVar("MemberT", bound=ModernMember)


def sorted_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of the alphabet, without repetitions."""
    if all(map(lt, names, islice(names, 1, None))):
        return tuple(names)
    return tuple(sorted(set(names)))


def in_words(names: Sequence[str]) -> str:
    """The first of the names, and how many others there are, for a log line."""
    if not names:
        return "nothing"
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def with_epochs(partitions: Sequence[int], epochs: Sequence[int] | None, member_epoch: int) -> dict[int, int]:
    """Partitions with their assignment epochs. Records from before KIP-1251 have none; the member's own epoch, which is
    not below them, stands for them."""
    if epochs is None or len(epochs) != len(partitions):
        return dict.fromkeys(partitions, member_epoch)
    return dict(zip(partitions, epochs, strict=True))
