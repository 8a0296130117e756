"""The values of a share partition; Kafka's `RecordState`, `AcknowledgeType`, `ShareAcquireMode`, `AcquiredRecords`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from pykbroker.sharing.persister import StateBatch

NOBODY: Final = ""
"""The member that holds what is not acquired."""

_LEAST_THROTTLED_DELIVERIES: Final = 2


class RecordState(IntEnum):
    """The state of one record in a share group. Its numbers are those of the persister's batches.

    ACQUIRED is never persisted: a leader that comes later hands such a record out again. ARCHIVING is persisted before
    the record's dead letter is written, and ARCHIVED behind it (KIP-1191).
    """

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class DeadLetterCause(Enum):
    """The reason why a record gets a dead letter, in the words that stand there; Kafka's `ShareGroupDLQManager`."""

    CLIENT_REJECT = "Offset rejected by client."
    DELIVERY_COUNT_EXCEEDED = "Offset delivery count exceeded the threshold."


class DeadLetters(NamedTuple):
    """Consecutive records that get a dead letter each, for one reason. delivery_count: of each of them."""

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause


class AcknowledgeType(IntEnum):
    """An acknowledgement of one record. GAP: there is no record at the offset, such as a transaction's marker."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcquireMode(IntEnum):
    """KIP-1206: whether more records than asked for may be acquired, up to the end of a record batch."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class FetchedBatch(NamedTuple):
    """A record batch that was read. is_aborted: it belongs to a transaction that was aborted, and the group is not to
    see it.
    """

    base_offset: int
    last_offset: int
    is_aborted: bool = False


class Acquired(NamedTuple):
    """Consecutive records that a member got, and how often they were delivered, this time included."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """A member's word on consecutive records. types: one for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class Limits(NamedTuple):
    """The limits of a share group, as they are now.

    record_lock_duration_ms: for how long a record is a member's. max_record_locks: how far the records in flight reach,
    from the first to the last (`share.partition.max.record.locks`). delivery_count_limit: how often a record is handed
    out. renew_enabled: whether members may renew their locks (KIP-1222). has_dead_letters: whether what is rejected or
    was handed out too often gets a dead letter (KIP-1191).
    """

    record_lock_duration_ms: int = 30_000
    max_record_locks: int = 2000
    delivery_count_limit: int = 5
    renew_enabled: bool = True
    has_dead_letters: bool = False

    @property
    def throttled_deliveries(self) -> int:
        """Return after how many deliveries records come in ever smaller portions, to find the one that is bad."""
        return max(_LEAST_THROTTLED_DELIVERIES, -(-self.delivery_count_limit // 2))


class Change:
    """Changes of states that are to be persisted together. batches: what the persister is told, in this order.

    ranges: offsets that are in transition until `SharePartition.complete`. Records that are released because time is
    over change at once, whatever becomes of the writing, unless they get dead letters. letters: those that are due once
    the change is persisted.
    """

    __slots__ = ("batches", "delivery_count_limit", "has_dead_letters", "letters", "member", "ranges")

    def __init__(self, member: str = NOBODY, delivery_count_limit: int = 0, *, has_dead_letters: bool = False) -> None:
        self.member = member
        self.delivery_count_limit = delivery_count_limit
        self.has_dead_letters = has_dead_letters
        self.batches: list[StateBatch] = []
        self.ranges: list[tuple[int, int]] = []
        self.letters: list[DeadLetters] = []

    def __bool__(self) -> bool:
        return bool(self.batches)

    def add(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        """Add a change; neighbours with one state and count are one batch."""
        batches = self.batches
        if batches:
            before = batches[-1]
            if before.last_offset + 1 == first and before[2:] == (state, delivery_count):
                batches[-1] = StateBatch(before.first_offset, last, int(state), delivery_count)
                return
        batches.append(StateBatch(first, last, int(state), delivery_count))

    def add_range(self, first: int, last: int) -> None:
        ranges = self.ranges
        if ranges and ranges[-1][1] + 1 == first:
            ranges[-1] = ranges[-1][0], last
        else:
            ranges.append((first, last))

    def add_letters(self, first: int, last: int, delivery_count: int, cause: DeadLetterCause) -> None:
        """Add dead letters; neighbours for one reason with one count go together."""
        letters = self.letters
        if letters:
            before = letters[-1]
            if before.last_offset + 1 == first and before[2:] == (delivery_count, cause):
                letters[-1] = before._replace(last_offset=last)
                return
        letters.append(DeadLetters(first, last, delivery_count, cause))
