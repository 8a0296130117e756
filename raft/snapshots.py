"""Snapshots of the replicated state: when one is due, and what a newer one makes superfluous (KIP-630).

Rules only. What a snapshot holds is the business of the state machine, where it is kept that of whoever keeps the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class SnapshotId(NamedTuple):
    """The id of a snapshot. end_offset: behind the last record that it covers. epoch: of that record."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot on the disk. timestamp_ms: of the last record that it covers."""

    id: SnapshotId
    size_bytes: int
    timestamp_ms: int


class SnapshotSchedule:
    """The schedule of snapshots: one after so many bytes of records, or so long after the one before.

    Times are of a monotonic clock. An interval of 0 is none. As with Kafka's `SnapshotGenerator` the time counts from
    the start of the process, or from the last snapshot in it.
    """

    def __init__(self, max_bytes: int, max_interval_ms: int, now_ms: int) -> None:
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._since_ms = now_ms

    def deadline_ms(self, new_bytes: int) -> int | None:
        """Return when a snapshot is due if no record comes; None where there is nothing new, or only bytes count.

        new_bytes: the size of the records that no snapshot covers.
        """
        if new_bytes >= self._max_bytes:
            return self._since_ms
        if not new_bytes or not self._max_interval_ms:
            return None
        return self._since_ms + self._max_interval_ms

    def restart(self, now_ms: int) -> None:
        """A snapshot was taken."""
        self._since_ms = now_ms


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Limits of retention. max_bytes: log and snapshots together. max_ms: age of a snapshot. Negative: no limit."""

    max_bytes: int
    max_ms: int


def is_oldest_superfluous(
    snapshots: Sequence[StoredSnapshot], log_size_bytes: int, limits: RetentionLimits, now_ms: int
) -> bool:
    """Tell whether the oldest may go, and with it the log in front of the second one. The last one always stays.

    snapshots: in the order of their offsets. now_ms: of the clock that the records' timestamps come from.
    """
    if len(snapshots) < 2:
        return False
    size_bytes = log_size_bytes + sum(snapshot.size_bytes for snapshot in snapshots)
    if 0 <= limits.max_bytes < size_bytes:
        return True
    return 0 <= limits.max_ms < now_ms - snapshots[0].timestamp_ms
