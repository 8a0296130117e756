"""What is asked of a coordinator in parts, besides the requests of the protocol.

One request of a client may concern a hundred thousand groups, or offsets of a group; handlers ask for some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pykbroker.long_work import LongWork, portions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListGroupsRequest

from .offsets.offsets import CommittedOffset
from .offsets.pending_offsets import PendingAsOfNow


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSomeGroups:
    """Of these groups those that are there and that the request asks for. Answered by a `ListGroupsResponse`."""

    request: ListGroupsRequest
    group_ids: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConsumerGroup:
    """One group of a ConsumerGroupDescribe request. Answered by a `consumer_descriptions.ConsumerGroupAsOfNow`."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """One group of a DeleteGroups request. Answered by an `ErrorCode`, when all of the group is gone."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAllOffsets:
    """Everything that the group has committed. Answered by `AllOffsets`."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1


@dataclass(frozen=True, slots=True)
class AllOffsets:
    """A group's offsets at one time. table: by topic and partition. pending: where a transaction may be about to
    replace them, and what was on its way to the table."""

    error_code: ErrorCode = ErrorCode.NONE
    table: dict[str, dict[int, CommittedOffset]] = field(default_factory=dict)
    pending: PendingAsOfNow | None = None

    def by_topic(self) -> LongWork[dict[str, dict[int, CommittedOffset]]]:
        """All that counted then."""
        for offsets in () if self.pending is None else self.pending.committed:
            for portion in portions(offsets.items()):
                for (topic, partition), offset in portion:
                    known = self.table.setdefault(topic, {})
                    if partition not in known or known[partition].order < offset.order:
                        known[partition] = offset
                yield len(portion) // 4
        return self.table

    def is_pending(self, topic: str, partition: int) -> bool:
        return self.pending is not None and self.pending.is_pending(topic, partition)
