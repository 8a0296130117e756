"""Old segments go by time, by size and in front of the start offset, and nothing else goes with them."""

import os
from pathlib import Path
from random import Random

import pytest

from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.errors import OffsetOutOfRange
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.leader_epochs import EpochEntry, LeaderEpochs
from tests.storage.batches import NOW_MS, batch, config, idempotent, offsets, open_log, read_all

HOUR_MS = 60 * 60 * 1000
PER_SEGMENT = 4
BATCH_BYTES = len(batch(1))
SEGMENT_BYTES = PER_SEGMENT * BATCH_BYTES


def filled(disk: Disk, path: str = "/data/t-0", *, count: int = 20, **settings: object) -> Log:
    """Batches of one record, one a minute, four in a segment: with 20 of them the fifth segment is active and full."""
    log = open_log(disk, path, config(segment_bytes=SEGMENT_BYTES, **settings))
    for number in range(count):
        now_ms = NOW_MS + number * 60_000
        log.append_as_leader(batch(1, timestamp=now_ms), 0, now_ms)
    return log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def files(disk: Disk, path: str = "/data/t-0") -> list[str]:
    return [name for name in disk.list_directory(path) if name.endswith((".log", ".deleted"))]


@pytest.mark.parametrize(
    ("age_ms", "left"),
    [
        (HOUR_MS + 3 * 60_000, [0, 4, 8, 12, 16]),
        (HOUR_MS + 3 * 60_000 + 1, [4, 8, 12, 16]),
        (HOUR_MS + 15 * 60_000 + 1, [16]),
        (HOUR_MS + 19 * 60_000, [16]),
        (HOUR_MS + 19 * 60_000 + 1, [20]),
    ],
)
def test_a_segment_goes_when_its_latest_record_is_too_old(disk: SimulatedDisk, age_ms: int, left: list[int]) -> None:
    log = filled(disk, retention_ms=HOUR_MS)
    log.delete_old_segments(20, NOW_MS + age_ms)
    assert bases(log) == left
    assert log.log_start_offset == left[0]
    assert offsets(read_all(log)) == list(range(left[0], 20))


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (5 * SEGMENT_BYTES, [0, 4, 8, 12, 16]),
        (4 * SEGMENT_BYTES + 1, [0, 4, 8, 12, 16]),
        (4 * SEGMENT_BYTES, [4, 8, 12, 16]),
        (SEGMENT_BYTES + 1, [12, 16]),
        (0, [20]),
    ],
)
def test_by_size_the_log_never_becomes_smaller_than_its_limit(disk: SimulatedDisk, limit: int, left: list[int]) -> None:
    log = filled(disk, retention_bytes=limit, retention_ms=-1)
    log.delete_old_segments(20, NOW_MS)
    assert bases(log) == left


def test_size_and_time_together_take_what_is_left_by_the_other(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=SEGMENT_BYTES, retention_ms=1000))
    log.update_config(config(segment_bytes=SEGMENT_BYTES, retention_ms=HOUR_MS, retention_bytes=2 * SEGMENT_BYTES))
    for number in range(12):
        # The first segment is young: by time alone it would keep the old one behind it.
        timestamp = NOW_MS if number < 4 or number >= 8 else NOW_MS - 2 * HOUR_MS
        log.append_as_leader(batch(1, timestamp=timestamp), 0, NOW_MS)
    log.delete_old_segments(12, NOW_MS)
    assert bases(log) == [8]


@pytest.mark.parametrize(("start", "left"), [(3, [0, 4, 8, 12, 16]), (4, [4, 8, 12, 16]), (19, [16]), (20, [16])])
def test_what_lies_before_the_start_offset_goes_whatever_the_policy(
    disk: SimulatedDisk, start: int, left: list[int]
) -> None:
    log = filled(disk, cleanup_policy="compact")
    log.increment_log_start_offset(start)
    log.delete_old_segments(20, NOW_MS)
    assert bases(log) == left
    assert log.log_start_offset == start


def test_compacted_only_topics_keep_their_old_segments(disk: SimulatedDisk) -> None:
    log = filled(disk, cleanup_policy="compact", retention_ms=0, retention_bytes=0)
    assert log.delete_old_segments(20, NOW_MS + HOUR_MS) == []
    log.update_config(config(segment_bytes=SEGMENT_BYTES, cleanup_policy="compact,delete", retention_ms=0))
    assert log.delete_old_segments(20, NOW_MS + HOUR_MS)
    assert log.log_start_offset == 20


@pytest.mark.parametrize(("high_watermark", "left"), [(0, 0), (3, 0), (4, 4), (11, 8), (19, 16), (20, 20)])
def test_nothing_goes_that_is_not_below_the_high_watermark(disk: SimulatedDisk, high_watermark: int, left: int) -> None:
    log = filled(disk, retention_ms=0)
    log.delete_old_segments(high_watermark, NOW_MS + HOUR_MS)
    assert log.log_start_offset == left


def test_an_empty_active_segment_stays(disk: SimulatedDisk) -> None:
    log = filled(disk, retention_ms=0)
    assert log.delete_old_segments(20, NOW_MS + HOUR_MS)
    assert log.delete_old_segments(20, NOW_MS + 2 * HOUR_MS) == []
    assert bases(log) == [20]
    log.append_as_leader(batch(2), 0, NOW_MS)
    assert offsets(read_all(log)) == [20, 21]


def test_records_without_timestamps_are_as_old_as_their_file(disk: SimulatedDisk) -> None:
    """However often the log was opened since."""
    settings = config(retention_ms=HOUR_MS)
    disk.now_ms = lambda: NOW_MS
    log = open_log(disk, "/data/t-0", settings)
    log.append_as_leader(batch(1, timestamp=-1), 0, NOW_MS)
    log.close()
    disk.now_ms = lambda: NOW_MS + HOUR_MS
    log = open_log(disk, "/data/t-0", settings, now_ms=NOW_MS + HOUR_MS, clean_shutdown=True)
    assert log.delete_old_segments(1, NOW_MS + HOUR_MS) == []
    assert log.delete_old_segments(1, NOW_MS + HOUR_MS + 1)


def test_where_files_have_no_times_records_without_timestamps_are_as_old_as_their_segment(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(retention_ms=HOUR_MS))
    log.append_as_leader(batch(1, timestamp=-1), 0, NOW_MS)
    assert log.delete_old_segments(1, NOW_MS + HOUR_MS) == []
    assert log.delete_old_segments(1, NOW_MS + HOUR_MS + 1)


def test_files_keep_another_name_until_they_are_removed(disk: SimulatedDisk) -> None:
    log = filled(disk, count=8, retention_bytes=SEGMENT_BYTES)
    for number in range(2):
        log.append_as_leader(idempotent(number), 0, NOW_MS)
    paths = log.delete_old_segments(10, NOW_MS)
    first, second = "00000000000000000000", "00000000000000000004"
    assert files(disk)[:2] == [f"{first}.index.deleted", f"{first}.log.deleted"]
    assert [os.path.basename(path) for path in paths] == [
        f"{first}.log.deleted",
        f"{first}.index.deleted",
        f"{first}.timeindex.deleted",
    ], "there is no snapshot at the log's beginning"
    paths += log.delete_old_segments(10, NOW_MS + 8 * 24 * HOUR_MS)
    assert f"/data/t-0/{second}.snapshot.deleted" in paths
    for path in paths:
        disk.remove(path)
    assert files(disk) == [f"{log.log_start_offset:020d}.log"]


def test_a_slice_stays_readable_when_its_segment_is_gone(either_disk: tuple[Disk, str]) -> None:
    disk, path = either_disk
    log = filled(disk, f"{path}/t-0", retention_ms=0)
    old = log.read(1, 1000)
    expected = old.read()
    for gone in log.delete_old_segments(20, NOW_MS + HOUR_MS):
        disk.remove(gone)
    assert old.read() == expected
    with pytest.raises(OffsetOutOfRange):
        log.read(1, 1000)


def test_a_slice_of_a_deleted_segment_can_still_be_sent(tmp_path: Path) -> None:
    disk = OsDisk()
    log = filled(disk, f"{tmp_path}/t-0", retention_ms=0)
    old = log.read(1, 1000)
    expected = old.read()
    for gone in log.delete_old_segments(20, NOW_MS + HOUR_MS):
        disk.remove(gone)
    source = old.file.fileno()
    assert source is not None
    with (tmp_path / "sent").open("wb") as out:
        assert os.sendfile(out.fileno(), source, old.position, old.size) == old.size
    assert (tmp_path / "sent").read_bytes() == expected


def test_a_flush_that_began_before_is_no_disk_failure(disk: SimulatedDisk) -> None:
    log = filled(disk, retention_ms=0)
    segments = list(log.segments)
    for path in log.delete_old_segments(20, NOW_MS + HOUR_MS):
        disk.remove(path)
    for segment in segments:
        segment.sync()
        segment.sync_indexes()
    log.flush()
    assert [name for name in disk.list_directory("/data/t-0") if name.startswith("00000000000000000004")] == []


# Restarts


@pytest.mark.parametrize("clean", [True, False])
def test_the_start_offset_survives_a_restart(disk: SimulatedDisk, clean: bool) -> None:
    format_directory(disk, "/data", cluster_id="c", node_id=1, rng=Random(1))
    settings = config(segment_bytes=SEGMENT_BYTES)

    def start() -> tuple[LogDirectory, Log]:
        directory = LogDirectory.open(disk, "/data", rng=Random(2), node_id=1)
        return directory, directory.open_log("t", 0, b"i" * 16, settings, now_ms=NOW_MS)

    directory, log = start()
    for number in range(20):
        log.append_as_leader(idempotent(number), number // 6, NOW_MS)
    log.flush()
    log.increment_log_start_offset(9)
    log.delete_old_segments(20, NOW_MS)
    directory.checkpoint_offsets()
    assert disk.read_file("/data/log-start-offset-checkpoint") == b"0\n1\nt 0 9\n"
    if clean:
        directory.close()
    else:
        disk.crash()
    directory, log = start()
    assert (log.log_start_offset, log.log_end_offset) == (9, 20)
    assert log.end_offset_for_epoch(0) == (0, 9), "epochs that ended before the start are not known any more"
    assert log.end_offset_for_epoch(1) == (1, 12)
    assert log.earliest_epoch == 1
    assert log.append_as_leader(idempotent(19), 4, NOW_MS).is_duplicate


@pytest.mark.parametrize("crash", range(40))
def test_a_crash_during_retention_leaves_a_log_without_holes(crash: int) -> None:
    disk = SimulatedDisk(Random(crash))
    disk.make_directory("/data")
    disk.sync_directory("/")
    log = filled(disk, retention_ms=HOUR_MS)
    log.flush()
    paths = log.delete_old_segments(20, NOW_MS + HOUR_MS + (5 + crash % 20) * 60_000)
    start = log.log_start_offset
    for path in paths[: crash % 7]:
        disk.remove(path)
    disk.crash()
    again = open_log(disk, "/data/t-0", config(segment_bytes=SEGMENT_BYTES), recovery_point=20)
    assert again.log_start_offset <= start
    assert again.log_end_offset == 20
    assert offsets(read_all(again)) == list(range(again.log_start_offset, 20))
    assert not [name for name in files(disk) if name.endswith(".deleted")]


def test_epochs_that_end_where_the_log_begins_are_forgotten(disk: SimulatedDisk) -> None:
    epochs = LeaderEpochs(disk, "/data/epochs")
    for epoch, start_offset in ((0, 0), (1, 10), (4, 20)):
        epochs.assign(epoch, start_offset)
    epochs.truncate_from_start(10)
    assert epochs.entries == [EpochEntry(1, 10), EpochEntry(4, 20)]
    epochs.truncate_from_start(15)
    assert epochs.entries == [EpochEntry(1, 15), EpochEntry(4, 20)]


def test_an_open_transaction_begins_no_earlier_than_the_log(disk: SimulatedDisk) -> None:
    log = filled(disk)
    assert log.first_unstable_offset is None
    data = encode_batch(
        [Record(b"k", b"v", (), NOW_MS)], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    log.append_as_leader(data, 0, NOW_MS)
    log.append_as_leader(batch(3), 0, NOW_MS)
    assert log.first_unstable_offset == 20
    log.increment_log_start_offset(22)
    assert log.first_unstable_offset == 22
