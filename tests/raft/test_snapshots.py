"""When a snapshot is due, and which one has become superfluous."""

from __future__ import annotations

from pykbroker.raft.snapshots import (
    RetentionLimits,
    SnapshotId,
    SnapshotSchedule,
    StoredSnapshot,
    is_oldest_superfluous,
)

UNLIMITED = RetentionLimits(max_bytes=-1, max_ms=-1)


def stored(*timestamps_ms: int, size_bytes: int = 10) -> list[StoredSnapshot]:
    return [
        StoredSnapshot(SnapshotId(100 * number, 1), size_bytes, timestamp_ms)
        for number, timestamp_ms in enumerate(timestamps_ms, 1)
    ]


def test_a_snapshot_is_due_at_once_when_there_are_bytes_enough() -> None:
    schedule = SnapshotSchedule(max_bytes=1000, max_interval_ms=60_000, now_ms=5)
    assert schedule.deadline_ms(1000) == 5
    assert schedule.deadline_ms(999) == 60_005


def test_a_snapshot_is_due_after_the_interval_where_there_is_anything_new() -> None:
    schedule = SnapshotSchedule(max_bytes=1000, max_interval_ms=60_000, now_ms=5)
    assert schedule.deadline_ms(0) is None
    schedule.restart(100)
    assert schedule.deadline_ms(1) == 60_100


def test_without_an_interval_only_bytes_count() -> None:
    schedule = SnapshotSchedule(max_bytes=1000, max_interval_ms=0, now_ms=5)
    assert schedule.deadline_ms(999) is None
    assert schedule.deadline_ms(1001) == 5


def test_the_last_snapshot_is_never_superfluous() -> None:
    limits = RetentionLimits(max_bytes=0, max_ms=0)
    assert not is_oldest_superfluous([], 1000, limits, 10**9)
    assert not is_oldest_superfluous(stored(1), 1000, limits, 10**9)
    assert is_oldest_superfluous(stored(1, 2), 1000, limits, 10**9)


def test_a_snapshot_goes_when_log_and_snapshots_are_too_large() -> None:
    limits = RetentionLimits(max_bytes=1019, max_ms=-1)
    assert is_oldest_superfluous(stored(1, 2), 1000, limits, 0)
    assert not is_oldest_superfluous(stored(1, 2), 999, limits, 0)


def test_a_snapshot_goes_when_its_last_record_is_too_old() -> None:
    limits = RetentionLimits(max_bytes=-1, max_ms=50)
    assert is_oldest_superfluous(stored(1000, 1040), 0, limits, 1051)
    assert not is_oldest_superfluous(stored(1000, 1040), 0, limits, 1050)


def test_without_limits_everything_stays() -> None:
    assert not is_oldest_superfluous(stored(0, 0), 2**60, UNLIMITED, 2**60)
