"""One log: what goes in comes out, at the offsets that were promised."""

import gc
import os
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import Record, decode_batch_header, encode_batch, iter_batches
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    encode_end_transaction_batch,
)
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.errors import DiskFailed, NoRoom
from pykbroker.storage.log.log import AppendOrigin, Log, LogConfig, OffsetOutOfRange
from tests.storage.batches import NOW_MS, batch, config, idempotent, offsets, open_log, read_all

WEEK_MS = 7 * 24 * 60 * 60 * 1000
MEBIBYTE = str(1 << 20)


def append(log: Log, data: bytes, *, epoch: int = 0, now_ms: int = NOW_MS) -> int:
    return log.append_as_leader(data, epoch, now_ms).first_offset


def test_offsets_are_given_in_order_and_records_come_back(either_disk: tuple[Disk, str]) -> None:
    disk, path = either_disk
    log = open_log(disk, f"{path}/t-0")
    assert [append(log, batch(3)), append(log, batch(1)), append(log, batch(2))] == [0, 3, 4]
    assert log.log_end_offset == 6
    assert offsets(read_all(log)) == [0, 1, 2, 3, 4, 5]
    assert read_all(log)[0] == Record(b"key", b"value", (), NOW_MS, 0)


def test_leader_stamps_its_epoch_and_keeps_the_rest_of_the_batch(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    sent = batch(2)
    append(log, sent)
    append(log, memoryview(sent), epoch=4)
    stored = [read.data for read in iter_batches(log.read(0, 10_000).read())]
    assert [decode_batch_header(data).partition_leader_epoch for data in stored] == [0, 4]
    assert [decode_batch_header(data).base_offset for data in stored] == [0, 2]
    assert all(bytes(data[16:]) == sent[16:] for data in stored)
    assert log.latest_epoch == 4
    assert log.earliest_epoch == 0


def test_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, batch(10))
    append(log, batch(10))
    for offset in range(10, 20):
        [read] = iter_batches(log.read(offset, 10_000).read())
        assert read.header.base_offset == 10


def test_read_ends_below_the_maximum_offset(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    for _ in range(5):
        append(log, batch(2))
    assert [read.header.base_offset for read in iter_batches(log.read(0, 10_000, max_offset=6).read())] == [0, 2, 4]
    assert log.read(6, 10_000, max_offset=6).size == 0
    assert log.read(8, 10_000, max_offset=6).size == 0
    assert log.read(10, 10_000).size == 0


def test_read_keeps_to_max_bytes_but_for_the_first_batch(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    size = len(batch(1))
    for _ in range(5):
        append(log, batch(1))
    assert log.read(0, 2 * size).size == 2 * size
    assert log.read(0, 2 * size + 1).size == 2 * size + 1
    assert log.read(0, 1).size == size
    assert log.read(0, 0).size == size
    assert log.read(0, size - 1, min_one_batch=False).size == 0
    assert log.read(0, size, min_one_batch=False).size == size


@pytest.mark.parametrize("offset", [-1, -5, 4, 2**40])
def test_read_outside_of_the_log_is_out_of_range(disk: SimulatedDisk, offset: int) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, batch(3))
    with pytest.raises(OffsetOutOfRange):
        log.read(offset, 100)


def test_read_below_the_start_is_out_of_range(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, batch(5))
    log.increment_log_start_offset(3)
    with pytest.raises(OffsetOutOfRange):
        log.read(2, 100)
    assert decode_batch_header(log.read(3, 1000).read()).base_offset == 0


def test_slice_of_a_real_file_can_be_sent(tmp_path: object) -> None:
    log = open_log(OsDisk(), f"{tmp_path}/t-0")
    append(log, batch(1))
    found = log.read(0, 1000)
    assert found.file.fileno() is not None
    assert len(found.read()) == found.size
    log.close()
    assert len(found.read()) == found.size, "who holds a slice can still send it"


@pytest.mark.parametrize("value_size", [10, 5000])
def test_every_offset_is_found_through_many_segments_and_a_restart(disk: SimulatedDisk, value_size: int) -> None:
    settings = config(segment_bytes=60_000, index_interval_bytes=500)
    log = open_log(disk, "/data/t-0", settings)
    value = bytes(value_size)
    for count in range(150):
        append(log, batch(count % 4 + 1, value=value))
    assert len(log.segments) > 1 or value_size == 10
    end = log.log_end_offset
    for _ in range(2):
        for offset in range(end):
            header = decode_batch_header(log.read(offset, 100).read())
            assert header.base_offset <= offset <= header.last_offset
        log.close()
        log = open_log(disk, "/data/t-0", settings, clean_shutdown=True, recovery_point=end)
        assert log.log_end_offset == end
    assert offsets(read_all(log)) == list(range(end))


# Rolling


def test_rolls_when_the_segment_is_full(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=1000))
    size = len(batch(1))
    for _ in range(1000 // size + 1):
        append(log, batch(1))
    assert [segment.base_offset for segment in log.segments] == [0, 1000 // size]


def test_rolls_by_the_time_between_records(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_ms=1000, message_timestamp_after_max_ms=10**9))
    append(log, batch(timestamp=NOW_MS))
    append(log, batch(timestamp=NOW_MS + 1000), now_ms=NOW_MS + 10**6)
    assert len(log.segments) == 1, "the clock does not count where records have timestamps"
    append(log, batch(timestamp=NOW_MS + 1001))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_rolls_by_the_clock_where_records_have_no_timestamp(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_ms=1000))
    append(log, batch(timestamp=-1))
    append(log, batch(timestamp=-1), now_ms=NOW_MS + 1000)
    assert len(log.segments) == 1
    append(log, batch(timestamp=-1), now_ms=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_rolls_when_an_index_is_full(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_index_bytes=36, index_interval_bytes=0))
    for count in range(10):
        append(log, batch(timestamp=NOW_MS + count))
    assert len(log.segments) > 2


@pytest.mark.parametrize("start", [0, 2**31 - 1])
def test_rolls_before_relative_offsets_overflow(disk: SimulatedDisk, start: int) -> None:
    log = open_log(disk, "/data/t-0")
    log.truncate_fully_and_start_at(start, now_ms=NOW_MS)
    log.append_as_follower(batch(base_offset=start, epoch=0))
    log.append_as_follower(batch(base_offset=start + 2**31 - 1, epoch=0))
    assert len(log.segments) == 1
    log.append_as_follower(batch(base_offset=start + 2**31, epoch=0))
    assert [segment.base_offset for segment in log.segments] == [start, start + 2**31]
    assert offsets(read_all(log, start + 2**31)) == [start + 2**31]


def test_jitter_makes_segments_roll_earlier(disk: SimulatedDisk) -> None:
    settings = config(segment_ms=1000, segment_jitter_ms=900, message_timestamp_after_max_ms=10**9)
    log = Log.open(disk, "/data/t-0", settings, now_ms=NOW_MS, rng=Random(3))
    timestamp = NOW_MS
    for _ in range(200):
        timestamp += 50
        append(log, batch(timestamp=timestamp))
    bases = [segment.base_offset for segment in log.segments]
    rolls = [after - before for before, after in pairwise(bases)]
    assert max(rolls) <= 21
    assert min(rolls) < max(rolls)


def test_batch_larger_than_a_segment_is_refused(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=500))
    with pytest.raises(ApiError) as refused:
        append(log, batch(value=bytes(1000)))
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


# Timestamps


def test_offset_for_timestamp_is_the_first_record_at_or_after_it_also_inside_a_batch(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(index_interval_bytes=100, segment_bytes=2000))
    for start in range(0, 300, 10):
        records = [Record(None, b"v", (), NOW_MS + 2 * (start + index)) for index in range(10)]
        append(log, encode_batch(records, compression=Compression.GZIP if start % 20 else Compression.NONE))
    assert len(log.segments) > 1
    for _ in range(2):
        for timestamp in range(-3, 610):
            found = log.find_offset_for_timestamp(NOW_MS + timestamp)
            expected = max((timestamp + 1) // 2, 0)
            if expected >= 300:
                assert found is None
            else:
                assert found == (NOW_MS + 2 * expected, expected, 0)
        assert log.find_offset_of_max_timestamp() == (NOW_MS + 598, 299, 0)
        log.close()
        log = open_log(disk, "/data/t-0", clean_shutdown=True, recovery_point=300)


def test_offset_for_timestamp_with_times_out_of_order(disk: SimulatedDisk) -> None:
    rng = Random(5)
    log = open_log(disk, "/data/t-0", config(index_interval_bytes=100, segment_bytes=1000))
    times: list[int] = []
    for _ in range(60):
        drawn = [rng.randrange(100) for _ in range(3)]
        times += drawn
        append(log, encode_batch([Record(None, b"v", (), NOW_MS + time) for time in drawn]))
    for timestamp in range(101):
        expected = next((offset for offset, time in enumerate(times) if time >= timestamp), None)
        found = log.find_offset_for_timestamp(NOW_MS + timestamp)
        assert (None if found is None else found.offset) == expected
    largest = log.find_offset_of_max_timestamp()
    assert largest is not None
    assert largest.timestamp == NOW_MS + max(times)
    assert largest.offset == times.index(max(times))


def test_records_before_the_log_start_are_not_found_by_timestamp(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, encode_batch([Record(None, b"v", (), NOW_MS + index) for index in range(10)]))
    log.increment_log_start_offset(4)
    assert log.find_offset_for_timestamp(0) == (NOW_MS + 4, 4, 0)


def test_an_empty_log_has_no_timestamps(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    assert log.find_offset_for_timestamp(0) is None
    assert log.find_offset_of_max_timestamp() is None


def test_log_append_time_is_the_brokers_for_every_record(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(message_timestamp_type="LogAppendTime"))
    result = log.append_as_leader(batch(3, timestamp=5), 0, NOW_MS)
    assert result.log_append_time_ms == NOW_MS
    assert {record.timestamp for record in read_all(log)} == {NOW_MS}
    assert log.find_offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 0)
    assert log.find_offset_of_max_timestamp() == (NOW_MS, 0, 0)
    [stored] = iter_batches(log.read(0, 1000).read())
    stored.ensure_valid()


def test_create_time_has_no_append_time_in_the_answer(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    assert log.append_as_leader(batch(), 0, NOW_MS).log_append_time_ms == -1


# Followers


def leader_with_epochs(disk: Disk, path: str) -> Log:
    """Three epochs: 1 at 0, 3 at 10, 4 at 20; ends at 30."""
    log = open_log(disk, path, config(segment_bytes=400))
    for epoch in (1, 3, 4):
        for _ in range(5):
            append(log, batch(2), epoch=epoch)
    return log


@pytest.mark.parametrize("preallocate", [False, True])
def test_a_follower_takes_more_batches_at_once_than_a_system_call_takes_buffers(
    either_disk: tuple[Disk, str], preallocate: bool
) -> None:
    disk, path = either_disk
    log = open_log(disk, f"{path}/t-0", config(preallocate=preallocate, segment_bytes=1 << 20))
    template = batch(epoch=0)
    answer = b"".join(offset.to_bytes(8, "big") + template[8:] for offset in range(5000))
    log.append_as_follower(answer)
    log.flush()
    assert log.log_end_offset == 5000
    assert disk.read_file(log.segments[0].path(".log")).rstrip(b"\0") == answer.rstrip(b"\0")
    assert [log.read(offset, 1).read() for offset in (1023, 1024, 4999)] == [
        offset.to_bytes(8, "big") + template[8:] for offset in (1023, 1024, 4999)
    ]


def test_follower_has_the_same_bytes_and_epochs(disk: SimulatedDisk) -> None:
    leader = leader_with_epochs(disk, "/data/leader-0")
    follower = open_log(disk, "/data/follower-0", config(segment_bytes=1000))
    while follower.log_end_offset < leader.log_end_offset:
        # As fetched: the last batch is cut off.
        result = follower.append_as_follower(leader.read(follower.log_end_offset, 250).read())
        assert result is not None
        assert result.last_offset == follower.log_end_offset - 1
    assert read_all(follower) == read_all(leader)
    assert [follower.end_offset_for_epoch(epoch) for epoch in range(6)] == [
        leader.end_offset_for_epoch(epoch) for epoch in range(6)
    ]


def test_follower_takes_no_batch_twice_and_none_that_is_damaged(disk: SimulatedDisk) -> None:
    follower = open_log(disk, "/data/t-0")
    data = batch(2, base_offset=0, epoch=0)
    assert follower.append_as_follower(data[:-1]) is None
    follower.append_as_follower(data)
    with pytest.raises(ApiError) as refused:
        follower.append_as_follower(data)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    damaged = bytearray(batch(2, base_offset=2, epoch=0))
    damaged[-1] ^= 1
    with pytest.raises(ApiError) as refused:
        follower.append_as_follower(damaged)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert follower.log_end_offset == 2


def test_epochs_end_where_the_next_one_begins(disk: SimulatedDisk) -> None:
    log = leader_with_epochs(disk, "/data/t-0")
    answers = {epoch: log.end_offset_for_epoch(epoch) for epoch in (-1, 0, 1, 2, 3, 4, 5)}
    assert answers == {
        -1: (-1, -1),
        0: (0, 0),
        1: (1, 10),
        2: (1, 10),
        3: (3, 20),
        4: (4, 30),
        5: (-1, -1),
    }


def test_epoch_of_a_leader_without_records_counts(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, batch(3), epoch=0)
    log.assign_epoch_start_offset(2, 3)
    assert log.end_offset_for_epoch(0) == (0, 3)
    assert log.end_offset_for_epoch(2) == (2, 3)
    assert log.latest_epoch == 2


def test_follower_truncates_to_leader_epoch(disk: SimulatedDisk) -> None:
    log = leader_with_epochs(disk, "/data/t-0")
    assert len(log.segments) > 3
    log.truncate_to(14)
    assert log.log_end_offset == 14
    assert log.end_offset_for_epoch(3) == (3, 14)
    assert log.end_offset_for_epoch(4) == (-1, -1)
    assert offsets(read_all(log)) == list(range(14))
    assert append(log, batch(2), epoch=7) == 14
    log.close()
    again = open_log(disk, "/data/t-0")
    assert offsets(read_all(again)) == list(range(16))
    assert again.end_offset_for_epoch(5) == (3, 14)


def test_an_epoch_without_records_that_was_given_up_does_not_come_back(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    log.assign_epoch_start_offset(1, 0)
    log.flush()
    log.truncate_to(0)
    log.append_as_follower(batch(2, base_offset=0, epoch=0))
    log.abandon()
    again = open_log(disk, "/data/t-0", machine_stayed_up=True)
    assert offsets(read_all(again)) == [0, 1]
    assert again.latest_epoch == 0


@pytest.mark.parametrize("offset", range(31))
def test_truncation_at_any_offset_survives_a_restart(disk: SimulatedDisk, offset: int) -> None:
    log = leader_with_epochs(disk, "/data/t-0")
    log.flush()
    log.truncate_to(offset)
    kept = offset // 2 * 2
    assert log.log_end_offset == kept
    assert offsets(read_all(log)) == list(range(kept))
    log.append_as_follower(batch(1, base_offset=kept, epoch=9))
    log.close()
    again = open_log(disk, "/data/t-0")
    assert offsets(read_all(again, 0)) == list(range(kept + 1))
    assert again.find_offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 1 if kept else 9)


def test_truncation_to_before_the_start_begins_anew(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", log_start_offset=100)
    append(log, batch(5))
    log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert append(log, batch(1)) == 50
    assert offsets(read_all(log)) == [50]


def test_start_anew_at_a_leaders_start_offset(disk: SimulatedDisk) -> None:
    log = leader_with_epochs(disk, "/data/t-0")
    log.truncate_fully_and_start_at(1000, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (1000, 1000, None)
    log.append_as_follower(batch(1, base_offset=1000, epoch=5))
    log.close()
    again = open_log(disk, "/data/t-0")
    assert (again.log_start_offset, again.log_end_offset) == (1000, 1001)


# Coordinators' own records


def test_coordinator_appends_batches_and_markers(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    log.append_as_leader(batch(2) + batch(1), 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
    transactional = encode_batch(
        [Record(None, b"v", (), NOW_MS)], producer_id=5, producer_epoch=1, base_sequence=0, is_transactional=True
    )
    append(log, transactional)
    assert log.first_unstable_offset == 3
    marker = encode_end_transaction_batch(
        EndTransactionMarker(ControlRecordType.COMMIT, 2), producer_id=5, producer_epoch=1, timestamp=NOW_MS
    )
    result = log.append_as_leader(marker, 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert (result.first_offset, result.last_offset) == (4, 4)
    assert log.first_unstable_offset is None
    for stale, error in (
        (EndTransactionMarker(ControlRecordType.ABORT, 1), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (EndTransactionMarker(ControlRecordType.ABORT, 3), ErrorCode.INVALID_PRODUCER_EPOCH),
    ):
        epoch = 0 if error is ErrorCode.INVALID_PRODUCER_EPOCH else 1
        data = encode_end_transaction_batch(stale, producer_id=5, producer_epoch=epoch, timestamp=NOW_MS)
        with pytest.raises(ApiError) as refused:
            log.append_as_leader(data, 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
        assert refused.value.code is error
    log.close()
    again = open_log(disk, "/data/t-0")
    assert again.log_end_offset == 5
    assert again.producers.producers[5].coordinator_epoch == 2


def test_open_transaction_is_known_after_a_restart(disk: SimulatedDisk) -> None:
    for number, clean in enumerate((True, False)):
        path = f"/data/t-{number}"
        log = open_log(disk, path)
        append(log, batch(2))
        record = Record(None, b"v", (), NOW_MS)
        append(
            log,
            encode_batch([record], producer_id=5, producer_epoch=1, base_sequence=0, is_transactional=True),
        )
        log.close()
        assert open_log(disk, path, clean_shutdown=clean, recovery_point=3).first_unstable_offset == 2


# The disk


def test_failed_write_changes_nothing(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, idempotent(0))
    disk.free_bytes = 10
    with pytest.raises(NoRoom):
        append(log, idempotent(1))
    disk.free_bytes = None
    assert log.log_end_offset == 1
    assert append(log, idempotent(1)) == 1
    assert offsets(read_all(log)) == [0, 1]


def test_config_is_read_from_kafkas_properties() -> None:
    settings = LogConfig.from_properties(
        {
            "cleanup.policy": "compact,delete",
            "compression.type": "zstd",
            "segment.bytes": MEBIBYTE,
            "message.timestamp.type": "LogAppendTime",
            "min.cleanable.dirty.ratio": "0.25",
            "preallocate": "false",
            "retention.ms": None,
            "follower.replication.throttled.replicas": "",
        }
    )
    assert settings.compact
    assert settings.delete
    assert settings.compression_type is Compression.ZSTD
    assert settings.segment_bytes == 1 << 20
    assert settings.retention_ms == WEEK_MS
    assert settings.min_cleanable_dirty_ratio == 0.25
    assert LogConfig.from_properties({"compression.type": "uncompressed"}).compression_type is Compression.NONE
    assert LogConfig.from_properties({"compression.type": "producer"}).compression_type is None
    internal = LogConfig.from_properties({"internal.segment.bytes": " 0200 ", "segment.bytes": MEBIBYTE})
    assert internal.segment_bytes == 200
    assert LogConfig.from_properties({"internal.segment.bytes": "-5"}).segment_bytes == 0
    for key, value in (("message.timestamp.type", "x"), ("preallocate", "maybe"), ("segment.bytes", "many")):
        with pytest.raises(ValueError, match=value):
            LogConfig.from_properties({key: value})


def test_deletion_under_a_running_flush_is_no_disk_failure(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, batch(1))
    log.abandon()
    disk.remove_directory("/data/t-0")
    log.flush()
    with pytest.raises(DiskFailed):
        append(log, batch(1))


def test_failed_sync_is_told(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    append(log, batch(1))
    disk.remove_directory("/data/t-0")
    with pytest.raises(DiskFailed):
        log.flush()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors where Linux shows them")
def test_a_log_holds_no_descriptors_until_its_segments_are_used(tmp_path: Path) -> None:
    def descriptors() -> int:
        return sum(str(tmp_path) in os.readlink(f"/proc/self/fd/{name}") for name in open_descriptors())

    log = open_log(OsDisk(), f"{tmp_path}/t-0", config(segment_bytes=200))
    for _ in range(10):
        append(log, batch(1))
    assert len(log.segments) > 3
    log.close()
    again = open_log(OsDisk(), f"{tmp_path}/t-0", clean_shutdown=True, recovery_point=10)
    del log
    gc.collect()
    assert descriptors() == 0
    append(again, batch(1))
    assert descriptors() == 1
    assert offsets(read_all(again)) == list(range(11))
    assert descriptors() == len(again.segments)


def test_indexes_beside_an_empty_segment_are_begun_anew(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    log.close()
    for name in ("index", "timeindex"):
        disk.replace_file(f"/data/t-0/00000000000000000000.{name}", b"what a damaged disk might hold")
    log = open_log(disk, "/data/t-0", config(index_interval_bytes=1), clean_shutdown=True)
    for _ in range(5):
        append(log, batch(1))
    log.close()
    again = open_log(disk, "/data/t-0", config(index_interval_bytes=1), clean_shutdown=True, recovery_point=5)
    assert offsets(read_all(again)) == list(range(5))
    index = again.segments[0].offset_index
    assert [index.lookup(offset) for offset in range(5)] == [each * again.segments[0].size // 5 for each in range(5)]


def open_descriptors() -> list[str]:
    names = os.listdir("/proc/self/fd")
    return [name for name in names if os.path.lexists(f"/proc/self/fd/{name}")]
