"""Cleaning: the latest record of each key stays in its place, the rest goes, and no crash loses anything."""

from random import Random

import pytest

from pykbroker.protocol.records.batch import Record, TimestampType, encode_batch, iter_records
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.control import ControlRecordType
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.compaction.cleanable_logs import dirtiest
from pykbroker.storage.compaction.compaction import CleanerConfig, Cleaning, CleaningAborted, Uncleanable
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import AppendOrigin, Log
from pykbroker.storage.segments.segment import LOG_SUFFIX, LogSegment
from tests.storage.batches import NOW_MS, config, offsets, open_log, read_all
from tests.storage.cleaning import CODECS, batches, clean, cleanable, keyed
from tests.storage.power_cut import FragileDisk, PowerCut

DAY_MS = 24 * 60 * 60 * 1000
COMPACT = config(cleanup_policy="compact", index_interval_bytes=0)
PATH = "/data/t-0"


def rolled(disk: SimulatedDisk, *segments: list[bytes], settings: object = COMPACT) -> Log:
    """A segment with these batches each, and an empty active one."""
    log = open_log(disk, PATH, settings)  # type: ignore[arg-type]
    for segment in segments:
        for data in segment:
            log.append_as_leader(data, 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
        log.roll(NOW_MS)
    return log


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_all(log)]


def marker(kind: ControlRecordType, producer_id: int = 7) -> bytes:
    record = Record(b"\0\0" + kind.to_bytes(2, "big"), b"\0\0\0\0\0\0", (), NOW_MS)
    return encode_batch([record], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True)


def transactional(*pairs: tuple[bytes, bytes | None], sequence: int = 0, producer_id: int = 7) -> bytes:
    return keyed(*pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)


# What stays


@pytest.mark.parametrize("codec", CODECS)
def test_the_latest_record_of_each_key_stays_at_its_offset(disk: SimulatedDisk, codec: Compression) -> None:
    log = rolled(
        disk,
        [keyed((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), compression=codec)],
        [keyed((b"a", b"2"), (b"d", b"1"), compression=codec), keyed((b"b", b"2"), compression=codec)],
    )
    log.append_as_leader(keyed((b"c", b"in the active segment")), 0, NOW_MS)
    assert clean(disk, log) == 6
    assert contents(log) == [
        (2, b"c", b"1"),
        (3, b"a", b"2"),
        (4, b"d", b"1"),
        (5, b"b", b"2"),
        (6, b"c", b"in the active segment"),
    ]
    first, second, third, _ = batches(log)
    assert (first.header.base_offset, first.header.last_offset, first.header.records_count) == (0, 2, 1)
    assert first.header.compression is codec
    assert second.header.compression is third.header.compression is codec
    assert len(log.segments) == 2


def test_batches_of_which_nothing_goes_are_copied_byte_by_byte(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1"), compression=Compression.GZIP), keyed((b"b", b"1")), keyed((b"c", b"1"))])
    before = [bytes(batch.data) for batch in batches(log)]
    clean(disk, log)
    assert [bytes(batch.data) for batch in batches(log)] == before


def test_a_segment_says_where_it_ends_when_its_last_records_are_gone(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1")), keyed((b"b", b"1"))], [keyed((b"a", b"2")), keyed((b"b", b"2"))])
    log.update_config(config(cleanup_policy="compact", segment_bytes=log.segments[0].size))
    clean(disk, log)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    [empty, *_] = batches(log)
    assert (empty.header.base_offset, empty.header.last_offset, empty.header.records_count) == (1, 1, 0)
    assert contents(log) == [(2, b"a", b"2"), (3, b"b", b"2")]


def test_timestamps_and_headers_stay(disk: SimulatedDisk) -> None:
    records = [
        Record(b"a", b"1", (), NOW_MS),
        Record(b"b", b"1", (("h", b"x"), ("n", None)), NOW_MS + 5),
        Record(b"c", None, (), NOW_MS - 9),
    ]
    log = rolled(disk, [encode_batch(records), keyed((b"a", b"2"), timestamp=NOW_MS + 50)])
    clean(disk, log)
    kept = read_all(log)
    assert [(record.timestamp, list(record.headers)) for record in kept] == [
        (NOW_MS + 5, [("h", b"x"), ("n", None)]),
        (NOW_MS - 9, []),
        (NOW_MS + 50, []),
    ]
    found = log.find_offset_for_timestamp(NOW_MS + 1)
    assert found is not None
    assert found.offset == 1
    newest = log.find_offset_of_max_timestamp()
    assert newest is not None
    assert newest.offset == 3


def test_log_append_time_stays(disk: SimulatedDisk) -> None:
    data = keyed((b"a", b"1"), (b"b", None), timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = rolled(disk, [data, keyed((b"a", b"2"))])
    clean(disk, log)
    [rewritten, _] = batches(log)
    assert rewritten.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert rewritten.header.has_delete_horizon
    assert [record.timestamp for record in iter_records(rewritten)] == [NOW_MS]


def test_records_without_a_key_go(disk: SimulatedDisk) -> None:
    """They were there before the topic became a compacted one."""
    log = rolled(disk, [keyed((None, b"1"), (b"a", b"1")), keyed((None, b"2"))])
    clean(disk, log)
    assert contents(log) == [(1, b"a", b"1")]


def test_nothing_above_the_last_stable_offset_is_cleaned(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1"))], [keyed((b"a", b"2"))], [keyed((b"a", b"3"))])
    assert clean(disk, log, stable=2) == 2
    assert contents(log) == [(1, b"a", b"2"), (2, b"a", b"3")]
    assert not cleanable(log, 2, stable=2).dirty_bytes


def test_a_second_cleaning_begins_where_the_first_ended(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1"), (b"b", b"1"))], [keyed((b"a", b"2"))])
    end = clean(disk, log)
    log.append_as_leader(keyed((b"b", b"2")), 0, NOW_MS)
    log.roll(NOW_MS)
    found = cleanable(log, end)
    assert found.first_dirty_offset == 3
    assert (found.clean_bytes, found.dirty_bytes) == (log.segments[0].size, log.segments[1].size)
    assert clean(disk, log, end) == 4
    assert contents(log) == [(2, b"a", b"2"), (3, b"b", b"2")]


def test_what_the_keys_in_memory_do_not_reach_to_waits_for_the_next_round(disk: SimulatedDisk) -> None:
    log = rolled(disk, *[[keyed((b"%d" % (number % 40), b"%d" % number)) for number in range(100)]] * 2)
    end: int | None = None
    rounds = 0
    while cleanable(log, end).dirty_bytes:
        before = end or 0
        end = clean(disk, log, end, memory_bytes=24 * 32)
        assert before < end <= 200
        rounds += 1
    assert rounds > 1
    assert end == 200
    latest = {key: (offset, value) for offset, key, value in contents(log)}
    assert latest == {
        b"%d" % key: (offset, b"%d" % (offset - 100))
        for key in range(40)
        for offset in [max(100 + number for number in range(100) if number % 40 == key)]
    }


def test_a_batch_with_more_keys_than_memory_is_an_error(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed(*((b"%d" % number, b"") for number in range(200)))])
    with pytest.raises(Uncleanable, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        clean(disk, log, memory_bytes=24 * 64)
    assert len(contents(log)) == 200


# Tombstones


def test_tombstones_stay_for_delete_retention_ms_after_their_first_cleaning(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1"), (b"b", b"1"))], [keyed((b"a", None))])
    end = clean(disk, log)
    assert contents(log) == [(1, b"b", b"1"), (2, b"a", None)]
    [_, with_tombstone] = batches(log)
    assert with_tombstone.header.has_delete_horizon
    assert with_tombstone.header.base_timestamp == NOW_MS + DAY_MS
    for number, now_ms in enumerate((NOW_MS + DAY_MS - 1, NOW_MS + DAY_MS)):
        log.append_as_leader(keyed((b"c", b"%d" % number)), 0, NOW_MS)
        log.roll(NOW_MS)
        end = clean(disk, log, end, now_ms=now_ms)
        assert ((2, b"a", None) in contents(log)) == (number == 0)
    assert contents(log) == [(1, b"b", b"1"), (4, b"c", b"1")]


# Producers and transactions


def test_the_last_batch_of_a_producer_stays_without_its_records(disk: SimulatedDisk) -> None:
    first = keyed((b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    second = keyed((b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=1)
    log = rolled(disk, [first, second, keyed((b"a", b"3"))])
    clean(disk, log)
    assert contents(log) == [(2, b"a", b"3")]
    [empty, _] = batches(log)
    assert (empty.header.last_sequence, empty.header.records_count) == (1, 0)
    for snapshot in log.producers.snapshot_offsets():
        log.producers.remove_snapshot(snapshot)
    log.flush()
    again = open_log(disk, PATH, COMPACT)
    assert again.producers.producers[7].last_sequence == 1


def test_records_of_aborted_transactions_go_at_once_and_their_markers_later(disk: SimulatedDisk) -> None:
    log = rolled(
        disk,
        [
            keyed((b"a", b"1")),
            transactional((b"a", b"aborted")),
            marker(ControlRecordType.ABORT),
            transactional((b"b", b"committed"), sequence=1),
            marker(ControlRecordType.COMMIT),
        ],
    )
    end = clean(disk, log)
    assert [(offset, key, value) for offset, key, value in contents(log) if key in (b"a", b"b")] == [
        (0, b"a", b"1"),
        (3, b"b", b"committed"),
    ]
    assert [batch.header.base_offset for batch in batches(log)] == [0, 2, 3, 4]
    horizons = []
    for number, now_ms in enumerate((NOW_MS, NOW_MS + DAY_MS)):
        log.append_as_leader(keyed((b"c", b"%d" % number)), 0, NOW_MS)
        log.roll(NOW_MS)
        end = clean(disk, log, end, now_ms=now_ms)
        horizons.append([batch.header.base_offset for batch in batches(log) if batch.header.is_control])
    assert horizons == [[2, 4], [4]], "the marker of what is still there stays"


def test_markers_are_not_records_of_a_key_of_which_the_latest_stays(disk: SimulatedDisk) -> None:
    """All commit markers have the same bytes for a key, and each ends the transaction of its own producer."""
    log = rolled(
        disk,
        [data for each in (7, 8, 9) for data in _committed(each)],
        [keyed((b"later", b"1"))],
    )
    for now_ms in (NOW_MS, NOW_MS + 2 * DAY_MS):
        clean(disk, log, now_ms=now_ms)
        assert [batch.header.producer_id for batch in batches(log) if batch.header.is_control] == [7, 8, 9]
    for snapshot in log.producers.snapshot_offsets():
        log.producers.remove_snapshot(snapshot)
    log.flush()
    again = open_log(disk, PATH, COMPACT)
    assert again.first_unstable_offset is None
    assert contents(again)[0] == (0, b"k7", b"v")


def _committed(producer_id: int) -> list[bytes]:
    key = b"k%d" % producer_id
    return [
        transactional((key, b"v"), producer_id=producer_id),
        marker(ControlRecordType.COMMIT, producer_id),
    ]


def test_a_follower_of_a_compacted_log_comes_to_its_end(disk: SimulatedDisk) -> None:
    """KAFKA-17076, KAFKA-20452: nothing of the last batches stays, and the log's end does not go back."""
    log = rolled(disk, [keyed((b"a", b"1")), keyed((b"b", None)), keyed((b"b", None))])
    end = log.log_end_offset
    assert clean(disk, log) == end
    clean(disk, log, now_ms=NOW_MS + DAY_MS)
    assert contents(log) == [(0, b"a", b"1")]
    follower = open_log(disk, "/data/follower-0")
    follower.append_as_follower(log.read(0, 1 << 20).read())
    assert follower.log_end_offset == log.log_end_offset == end
    log.close()
    disk.remove(log.segments[-1].path(LOG_SUFFIX))
    assert open_log(disk, PATH, COMPACT, recovery_point=end, clean_shutdown=True).log_end_offset == end


def test_an_abort_behind_what_is_cleaned_counts(disk: SimulatedDisk) -> None:
    """Another transaction that is still open keeps the cleaner from the marker's segment."""
    log = rolled(
        disk,
        [keyed((b"a", b"1")), transactional((b"a", b"aborted"))],
        [transactional((b"z", b"open"), producer_id=8), marker(ControlRecordType.ABORT)],
    )
    assert log.first_unstable_offset == 2
    assert clean(disk, log, stable=2) == 2
    assert [record for record in contents(log) if record[0] < 2] == [(0, b"a", b"1")]
    assert any(batch.header.is_control for batch in batches(log))


def test_an_aborted_transaction_begins_where_it_did_when_its_first_batch_is_gone(disk: SimulatedDisk) -> None:
    """The first cleaning takes that batch, and the second one writes the entry of the transaction index again."""
    log = rolled(
        disk,
        [
            keyed((b"a", b"1")),
            transactional((b"b", b"aborted")),
            transactional((b"c", b"aborted"), sequence=1),
        ],
        [transactional((b"d", b"aborted"), sequence=2), marker(ControlRecordType.ABORT)],
    )
    end = clean(disk, log, stable=3)
    assert [batch.header.base_offset for batch in batches(log)] == [0, 2, 3, 4]
    clean(disk, log, end)
    aborted = [
        (each.first_offset, each.last_offset) for one in log.segments for each in one.transaction_index.entries()
    ]
    assert aborted == [(1, 4)]


# What is due


def test_the_dirtiest_log_above_its_ratio_is_chosen(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1"))], [keyed((b"a", b"2"))], [keyed((b"a", b"3"))])
    one_third, two_thirds = cleanable(log, 2), cleanable(log, 1)
    assert (one_third.is_due, two_thirds.is_due) == (False, True)
    assert dirtiest([one_third, two_thirds]) is two_thirds
    assert dirtiest([one_third]) is None
    log.update_config(config(cleanup_policy="compact", min_cleanable_dirty_ratio=0.1))
    assert dirtiest([one_third]) is one_third


def test_min_compaction_lag_keeps_young_records(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1"))], [keyed((b"a", b"2"), timestamp=NOW_MS + 1000)])
    log.update_config(config(cleanup_policy="compact", min_compaction_lag_ms=500))
    assert cleanable(log, now_ms=NOW_MS + 1000).end_offset == 1
    assert cleanable(log, now_ms=NOW_MS + 1500).end_offset == 2


def test_max_compaction_lag_makes_a_log_due_and_its_segments_roll(disk: SimulatedDisk) -> None:
    settings = config(cleanup_policy="compact", max_compaction_lag_ms=1000)
    log = rolled(disk, [keyed((b"a", b"1"))] * 9, [keyed((b"a", b"2"))], settings=settings)
    assert not cleanable(log, 9, now_ms=NOW_MS + 1000).is_due
    assert cleanable(log, 9, now_ms=NOW_MS + 1001).is_due
    log.append_as_leader(keyed((b"b", b"1")), 0, NOW_MS)
    log.append_as_leader(keyed((b"b", b"2"), timestamp=NOW_MS + 1001), 0, NOW_MS + 1001)
    assert log.segments[-1].base_offset == log.log_end_offset - 1


# Changes and damage meanwhile


def test_a_damaged_batch_is_not_copied(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1")), keyed((b"a", b"2"))])
    path = log.segments[0].file.path
    damaged = bytearray(disk.read_file(path))
    damaged[-2] ^= 1
    file = disk.open(path)
    file.truncate(0)
    file.append([damaged])
    with pytest.raises(CorruptLog, match="wrong checksum"):
        clean(disk, log)
    assert not [name for name in disk.list_directory(PATH) if name.endswith(".cleaned")]


def begin(log: Log) -> tuple[Cleaning, LogSegment, list[LogSegment]]:
    cleaning = Cleaning(cleanable(log), CleanerConfig(1 << 16, 0.9), now_ms=NOW_MS, progress=lambda size: None)
    [group] = cleaning.plan()
    return cleaning, cleaning.clean(group), group


def test_truncation_before_the_swap_ends_a_cleaning(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1")), keyed((b"a", b"2"))])
    cleaning, segment, group = begin(log)
    log.truncate_to(1)
    with pytest.raises(CleaningAborted):
        cleaning.begin_swap(segment, group)
    check_untouched(disk, log)


def test_truncation_while_names_are_synced_ends_a_cleaning(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1")), keyed((b"a", b"2"))])
    cleaning, segment, group = begin(log)
    cleaning.begin_swap(segment, group)
    log.truncate_to(1)
    with pytest.raises(CleaningAborted):
        cleaning.swap(segment)
    check_untouched(disk, log)


def check_untouched(disk: SimulatedDisk, log: Log) -> None:
    assert contents(log) == [(0, b"a", b"1")]
    assert not [name for name in disk.list_directory(PATH) if name.endswith((".swap", ".cleaned"))]


def test_readers_of_the_old_segment_read_on(disk: SimulatedDisk) -> None:
    log = rolled(disk, [keyed((b"a", b"1")), keyed((b"a", b"2"))])
    old = log.read(0, 10_000)
    before = old.read()
    clean(disk, log)
    assert old.read() == before


@pytest.mark.parametrize("seed", range(8))
def test_a_power_cut_at_any_operation_loses_no_latest_record(seed: int) -> None:
    """Cut at operation 0, 1, 2 … until the cleaning gets through; then the log is cleaned once more."""
    operations = 0
    while True:
        rng = Random(f"{seed} {operations}")
        disk = FragileDisk(rng)
        disk.make_directory(PATH)
        disk.sync_directory("/")
        disk.sync_directory("/data")
        settings = config(cleanup_policy="compact", segment_bytes=Random(seed).choice([150, 250, 400]))
        log, written = random_log(disk, settings, Random(seed))
        durable = log.recovery_point
        disk.operations_left = operations
        try:
            clean(disk, log)
        except PowerCut:
            was_cut = True
        else:
            was_cut = False
        disk.crash()
        log = open_log(disk, PATH, settings, recovery_point=durable)
        assert log.log_end_offset >= durable
        check_latest(log, written, durable)
        if cleanable(log).dirty_bytes:
            before = log.log_end_offset
            clean(disk, log)
            check_latest(log, written, before)
        if not was_cut:
            return
        operations += 1


def random_log(disk: SimulatedDisk, settings: object, rng: Random) -> tuple[Log, list[tuple[int, bytes, bytes]]]:
    """A log that is flushed in part, and what was written to it."""
    log = open_log(disk, PATH, settings)  # type: ignore[arg-type]
    written: list[tuple[int, bytes, bytes]] = []
    for number in range(rng.randint(8, 25)):
        pairs = [(b"%d" % rng.randrange(4), b"%d-%d" % (number, each)) for each in range(rng.randint(1, 3))]
        written += [(log.log_end_offset + delta, key, value) for delta, (key, value) in enumerate(pairs)]
        log.append_as_leader(keyed(*pairs), number // 8, NOW_MS)
        if rng.random() < 0.1:
            log.flush()
    return log, written


def check_latest(log: Log, written: list[tuple[int, bytes, bytes]], durable: int) -> None:
    """Of each key there is the latest durable record or a later one; nothing is new, and all is in order."""
    found = contents(log)
    assert offsets(read_all(log)) == sorted({offset for offset, _, _ in found})
    assert set(found) <= set(written)
    kept = {key: offset for offset, key, _ in found}
    for offset, key, _ in written[:durable]:
        assert kept.get(key, -1) >= offset
