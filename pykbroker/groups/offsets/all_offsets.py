"""All offsets of a group at one time: the answer to `FetchAllOffsets`, which may take many turns to tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykbroker.long_work import LongWork, portions
from pykbroker.protocol.errors import ErrorCode

from .committed_offsets import CommittedOffset
from .pending_offsets import PendingAsOfNow


@dataclass(frozen=True, slots=True)
class AllOffsets:
    """The offsets of one group.

    table: by topic and partition. pending: the offsets that open transactions may replace, and those that ended
    transactions have not moved to the table yet.
    """

    error_code: ErrorCode = ErrorCode.NONE
    table: dict[str, dict[int, CommittedOffset]] = field(default_factory=dict)
    pending: PendingAsOfNow | None = None

    def by_topic(self) -> LongWork[dict[str, dict[int, CommittedOffset]]]:
        """Every offset that counted at that time."""
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
