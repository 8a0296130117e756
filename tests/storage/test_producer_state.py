"""Idempotent producers: what is new, what is a duplicate, what is out of order, and what survives a restart."""

import pytest

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import AppendResult, Log
from pykbroker.storage.producers.producer_snapshots import decode_snapshot
from tests.storage.batches import NOW_MS, batch, config, idempotent, open_log

OUT_OF_ORDER, OLD_EPOCH = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH
MAX_SEQUENCE = 2**31 - 1

# (sequence, count, epoch) of one producer's batches in turn -> the offset that is answered, or the error
TABLE: list[tuple[str, list[tuple[tuple[int, int, int], int | ErrorCode]]]] = [
    ("in order", [((0, 3, 0), 0), ((3, 1, 0), 3), ((4, 2, 0), 4)]),
    ("a duplicate has the first offset", [((0, 3, 0), 0), ((3, 2, 0), 3), ((3, 2, 0), 3), ((0, 3, 0), 0)]),
    (
        "five batches are remembered",
        [((n, 1, 0), n) for n in range(6)] + [((1, 1, 0), 1), ((5, 1, 0), 5), ((0, 1, 0), OUT_OF_ORDER)],
    ),
    ("a gap", [((0, 1, 0), 0), ((2, 1, 0), OUT_OF_ORDER), ((1, 1, 0), 1)]),
    ("an overlap is no duplicate", [((0, 3, 0), 0), ((1, 2, 0), OUT_OF_ORDER), ((0, 4, 0), OUT_OF_ORDER)]),
    ("an old epoch", [((0, 1, 2), 0), ((1, 1, 1), OLD_EPOCH), ((0, 1, 1), OLD_EPOCH), ((1, 1, 2), 1)]),
    ("a new epoch begins at 0", [((0, 1, 0), 0), ((3, 1, 1), OUT_OF_ORDER), ((0, 1, 1), 1), ((1, 1, 1), 2)]),
    ("a new epoch forgets duplicates", [((0, 1, 0), 0), ((0, 1, 1), 1), ((0, 1, 1), 1), ((0, 1, 0), OLD_EPOCH)]),
    ("an unknown producer may begin anywhere", [((77, 1, 3), 0), ((78, 1, 3), 1), ((77, 1, 3), 0)]),
    ("sequences start again", [((MAX_SEQUENCE, 1, 0), 0), ((0, 1, 0), 1), ((1, 1, 0), 2), ((MAX_SEQUENCE, 1, 0), 0)]),
    (
        "a batch that wraps inside",
        [((MAX_SEQUENCE - 1, 4, 0), 0), ((2, 1, 0), 4), ((MAX_SEQUENCE - 1, 4, 0), 0), ((1, 1, 0), OUT_OF_ORDER)],
    ),
]


def answer(log: Log, sequence: int, count: int, epoch: int) -> int | ErrorCode:
    try:
        return log.append_as_leader(idempotent(sequence, count, epoch=epoch), 0, NOW_MS).first_offset
    except ApiError as refused:
        return refused.code


@pytest.mark.parametrize("restart", ["never", "clean", "crash"])
@pytest.mark.parametrize("steps", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_sequences(
    disk: SimulatedDisk, steps: list[tuple[tuple[int, int, int], int | ErrorCode]], restart: str
) -> None:
    log = open_log(disk, "/data/t-0")
    if restart == "never":
        for (sequence, count, epoch), expected in steps:
            assert answer(log, sequence, count, epoch) == expected
        return
    # A snapshot keeps the last batch of a producer only; after a crash the log itself tells of five.
    appended = 0
    for (sequence, count, epoch), expected in steps:
        is_known = not isinstance(expected, int) or expected >= appended or restart == "crash"
        if is_known:
            assert answer(log, sequence, count, epoch) == expected
        appended = log.log_end_offset
        if restart == "clean":
            log.close()
        log = open_log(disk, "/data/t-0", clean_shutdown=restart == "clean", recovery_point=log.recovery_point)
        assert log.log_end_offset == appended


def test_duplicate_answer_tells_the_first_appends_time(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(message_timestamp_type="LogAppendTime"))
    first = log.append_as_leader(idempotent(0, 3), 0, NOW_MS)
    again = log.append_as_leader(idempotent(0, 3), 0, NOW_MS + 5000)
    assert again == first._replace(is_duplicate=True)
    assert first.log_append_time_ms == NOW_MS
    assert log.log_end_offset == 3


def test_producers_do_not_disturb_each_other(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    for sequence in range(3):
        for producer_id in (1, 2, 3):
            log.append_as_leader(idempotent(sequence, producer_id=producer_id), 0, NOW_MS)
        log.append_as_leader(batch(), 0, NOW_MS)
    assert log.log_end_offset == 12
    assert sorted(log.producers.producers) == [1, 2, 3]


def test_a_refused_batch_leaves_no_trace(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    log.append_as_leader(idempotent(0), 0, NOW_MS)
    for sequence, epoch in ((5, 0), (9, 1)):
        with pytest.raises(ApiError):
            log.append_as_leader(idempotent(sequence, epoch=epoch), 0, NOW_MS)
    assert log.append_as_leader(idempotent(1), 0, NOW_MS).first_offset == 1


def test_idle_producers_expire(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", producer_id_expiration_ms=1000)
    log.append_as_leader(idempotent(0, timestamp=NOW_MS), 0, NOW_MS)
    log.remove_expired_producers(NOW_MS + 999)
    assert answer(log, 5, 1, 0) is OUT_OF_ORDER
    log.remove_expired_producers(NOW_MS + 1000)
    assert log.producers.producers == {}
    assert answer(log, 5, 1, 0) == 1
    log.close()
    later = open_log(disk, "/data/t-0", clean_shutdown=True, now_ms=NOW_MS + 1000, producer_id_expiration_ms=1000)
    assert later.producers.producers == {}


def test_follower_knows_the_producers_when_it_becomes_leader(disk: SimulatedDisk) -> None:
    leader = open_log(disk, "/data/leader-0")
    for sequence in range(7):
        leader.append_as_leader(idempotent(sequence), 0, NOW_MS)
    follower = open_log(disk, "/data/follower-0")
    follower.append_as_follower(leader.read(0, 1 << 20).read())
    assert follower.append_as_leader(idempotent(4), 1, NOW_MS) == AppendResult(4, 4, NOW_MS, 0, 76, True)
    assert answer(follower, 7, 1, 0) == 7


def test_truncation_forgets_what_producers_had_there(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(10):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    assert len(log.segments) > 3
    log.truncate_to(5)
    assert answer(log, 6, 1, 0) is OUT_OF_ORDER
    assert answer(log, 4, 1, 0) == 4
    assert answer(log, 5, 1, 0) == 5


def test_snapshots_are_taken_at_rolls_and_at_the_end(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.close()
    bases = [segment.base_offset for segment in log.segments]
    assert log.producers.snapshot_offsets() == [*bases[1:], 5]
    path = f"/data/t-0/{5:020d}.snapshot"
    [entry] = decode_snapshot(disk.read_file(path), path)
    assert (entry.producer_id, entry.producer_epoch, entry.last_sequence) == (7, 0, 4)
    assert (entry.batches[-1].last_offset, entry.last_timestamp) == (4, NOW_MS)


def test_a_power_cut_behind_a_flush_tears_no_snapshot_of_a_roll(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.flush()
    taken = {offset: disk.read_file(log.producers.snapshot_path(offset)) for offset in log.producers.snapshot_offsets()}
    disk.crash()
    assert taken
    for offset, data in taken.items():
        assert disk.read_file(log.producers.snapshot_path(offset)) == data


def test_a_snapshot_of_a_killed_process_is_durable_behind_the_next_flush(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    disk.process_died()
    again = open_log(disk, "/data/t-0", config(segment_bytes=200), machine_stayed_up=True)
    taken = {each: disk.read_file(again.producers.snapshot_path(each)) for each in again.producers.snapshot_offsets()}
    again.flush()
    disk.crash()
    assert taken
    for offset, data in taken.items():
        assert disk.read_file(again.producers.snapshot_path(offset)) == data


def test_a_snapshot_that_was_removed_is_not_missed_by_a_flush(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    for offset in log.producers.snapshot_offsets():
        log.producers.remove_snapshot(offset)
    log.flush()
    assert log.recovery_point == log.log_end_offset == 5


def test_damaged_snapshot_is_replaced_by_reading_the_log(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    for sequence in range(3):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.close()
    path = f"/data/t-0/{3:020d}.snapshot"
    good = disk.read_file(path)
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 1
        with pytest.raises(CorruptLog):
            list(decode_snapshot(bytes(damaged), path))
    for data in (b"", good[:-1], good + b"x"):
        with pytest.raises(CorruptLog):
            list(decode_snapshot(data, path))
    disk.replace_file(path, good[:-1])
    again = open_log(disk, "/data/t-0", clean_shutdown=True, recovery_point=3)
    assert answer(again, 3, 1, 0) == 3


@pytest.mark.parametrize("is_torn", [True, False], ids=["torn", "sound"])
def test_a_snapshot_where_the_log_begins_stays_unless_a_power_cut_tore_it(disk: SimulatedDisk, is_torn: bool) -> None:
    """The segments in front of it are there still, and are read at the start: no other one is taken there."""
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    start = log.segments[1].base_offset
    log.increment_log_start_offset(start)
    path = log.producers.snapshot_path(start)
    disk.process_died()
    if is_torn:
        disk.replace_file(path, disk.read_file(path)[:-1])
    again = open_log(disk, "/data/t-0", config(segment_bytes=200), log_start_offset=start)
    assert again.segments[0].base_offset < start == again.log_start_offset
    assert disk.exists(path) is not is_torn
    assert answer(again, 5, 1, 0) == 5


def test_a_snapshot_that_a_power_cut_tore_where_the_log_begins_is_removed(disk: SimulatedDisk) -> None:
    """No other one is taken there, and what it told is in segments that are gone."""
    log = open_log(disk, "/data/t-0", config(segment_bytes=200))
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    start = log.segments[1].base_offset
    log.increment_log_start_offset(start)
    log.delete_old_segments(5, NOW_MS)
    path = log.producers.snapshot_path(start)
    disk.process_died()
    disk.replace_file(path, disk.read_file(path)[:-1])
    again = open_log(disk, "/data/t-0", config(segment_bytes=200), log_start_offset=start)
    assert again.log_start_offset == start
    assert not disk.exists(path)


def test_snapshot_beyond_the_log_end_is_not_believed(disk: SimulatedDisk) -> None:
    log = open_log(disk, "/data/t-0")
    for sequence in range(3):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.close()
    log_file = disk.open(f"/data/t-0/{0:020d}.log")
    log_file.truncate(log_file.size() - 1)
    again = open_log(disk, "/data/t-0")
    assert again.log_end_offset == 2
    assert again.producers.snapshot_offsets() == []
    assert answer(again, 2, 1, 0) == 2
