"""The interface of a group to its shard, whichever type the group has. The model is Kafka's interface `Group`.

Offsets are committed for classic groups and for consumer groups, and an administrator lists all; each type of group
says for itself who may commit, when an offset is unused, and which records delete the group. So the rules of offsets
know this interface and neither type.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import ClassVar, Protocol

from pykbroker.protocol.errors import ErrorCode

from .records import CoordinatorRecord


class GroupType(Enum):
    """The values are the names that ListGroups shows."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"


class Group(Protocol):
    """The interface of a group. A group id names one group: a `ClassicGroup`, a `ConsumerGroup` or a `ShareGroup`."""

    type: ClassVar[GroupType]
    group_id: str

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def state(self) -> Enum:
        """The value of the state is the name that ListGroups shows."""
        ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def has_pending_members(self) -> bool:
        """Tell whether a member id was handed out whose owner has not joined with it yet."""
        ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def copy(self) -> Group:
        """A group that no later change of this one reaches."""
        ...

    def tombstones(self) -> Iterable[CoordinatorRecord]:
        """The records that delete the group, in Kafka's order."""
        ...

    # Offsets

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, member_epoch: int, version: int
    ) -> ErrorCode:
        """Return what is wrong with an OffsetCommit as a whole.

        member_epoch: the generation, where the member has one.
        """
        ...

    def validate_txn_offset_commit(self, member_id: str, instance_id: str | None, member_epoch: int) -> ErrorCode:
        """Return what is wrong with a TxnOffsetCommit as a whole."""
        ...

    def validate_committed_partitions(
        self, member_id: str, member_epoch: int, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode:
        """The error of the first partition, by topic id and index, that the member may not commit for in this epoch."""
        ...

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode: ...

    def validate_offset_delete(self) -> ErrorCode: ...

    def offset_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        """Return when an offset of a topic without subscribers fell out of use; None while it may be in use."""
        ...
