"""The values that readers of a partition ask with and get: fetches, offsets of timestamps and of epochs.

Values only; the rules are in `partition`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import RecordsRegion

NO_EPOCH = -1
NO_OFFSET = -1


class FetchIsolation(Enum):
    """The bound of a fetch: a replica everything, a consumer what is replicated, or what is decided as well."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


@dataclass(slots=True)
class FetchParams:
    """A Fetch request asks this of all its partitions; Kafka's class of this name. Not frozen, as the class below.

    replica_id: the follower's, -1 for a consumer. replica_epoch: the follower's broker epoch. number: requests of the
    node are numbered as they come.
    """

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation
    rack_id: str
    leader_only: bool
    number: int


@dataclass(slots=True)
class FetchPartitionData:
    """One partition's part of a fetch; Kafka's class of this name. Not frozen, because it is made on the hot path.

    aborted_transactions: (producer id, first offset) each; None where the isolation level does not ask for them.
    diverging_epoch: (epoch, its end offset), where the reader's log took another way.
    """

    error_code: ErrorCode = ErrorCode.NONE
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: RecordsRegion | bytes = b""
    records_size: int = 0
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None
    preferred_read_replica: int = -1


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """The largest epoch up to the one that was asked for ends here; -1 and -1 where that is not known."""

    error_code: ErrorCode = ErrorCode.NONE
    leader_epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET


class OffsetSpec:
    """The timestamps of ListOffsets that are none."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


@dataclass(slots=True)
class ListedOffset:
    """One answer of ListOffsets; -1 for what there is not. Not frozen, as the classes above."""

    error_code: ErrorCode = ErrorCode.NONE
    timestamp: int = -1
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class DeletedRecords:
    """The deletion of records.

    offset: before which everything is deleted, the high watermark where that was asked for.
    """

    error_code: ErrorCode = ErrorCode.NONE
    offset: int = NO_OFFSET
