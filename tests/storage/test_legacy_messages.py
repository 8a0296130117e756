"""Logs with messages of the formats 0 and 1: opened, recovered, read, found, cut, deleted and cleaned as any others."""

from random import Random

import pytest

from pykbroker.protocol.records.batch import (
    MAGIC_VALUE_V2,
    Record,
    RecordBatchHeader,
    encode_batch,
    iter_batches,
    iter_records,
)
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log, LogConfig
from pykbroker.storage.log.log_copy import LogCopy
from pykbroker.storage.segments.batch_scan import scan_batches, scan_headers
from tests.legacy_messages import messages
from tests.storage.batches import NOW_MS, batch, config, idempotent, offsets, open_log, read_all
from tests.storage.cleaning import batches, clean

PATH = "/data/t-0"
SMALL = config(index_interval_bytes=200)


def records(first: int, count: int, *, magic: int = 2) -> list[Record]:
    return [
        Record(b"key %d" % (offset % 5), b"value %d" % offset, (), NOW_MS + offset if magic else -1, offset)
        for offset in range(first, first + count)
    ]


HISTORY = {
    0: messages(records(0, 12, magic=0), 0),
    12: messages(records(12, 12, magic=1), 1) + encode_batch(records(24, 6), base_offset=24),
    30: encode_batch(records(30, 6), base_offset=30, partition_leader_epoch=3) + messages(records(36, 8, magic=1), 1),
}
"""A broker that was upgraded, twice, and whose topic was set back to format 1 for a while."""
END = 44
ALL = records(0, 12, magic=0) + records(12, END - 12)


def write(disk: SimulatedDisk, segments: dict[int, bytes] | None = None) -> None:
    disk.make_directory(PATH)
    for base_offset, data in (HISTORY if segments is None else segments).items():
        disk.replace_file(f"{PATH}/{base_offset:020d}.log", data)
    disk.replace_file(f"{PATH}/leader-epoch-checkpoint", b"0\n1\n3 30\n")


def check(log: Log, expected: list[Record] = ALL) -> None:
    assert read_all(log) == expected
    for record in expected:
        assert record in read_from(log, record.offset)
        found = log.find_offset_for_timestamp(record.timestamp) if record.timestamp >= 0 else None
        assert found is None or (found.timestamp, found.offset) == (record.timestamp, record.offset)


def read_from(log: Log, offset: int) -> list[Record]:
    """The first batch of a fetch."""
    [only] = iter_batches(log.read(offset, 1).read())
    return list(iter_records(only))


@pytest.mark.parametrize("clean_shutdown", [True, False])
@pytest.mark.parametrize("recovery_point", [0, 20, END])
def test_a_log_of_all_formats_opens_and_goes_on(disk: SimulatedDisk, clean_shutdown: bool, recovery_point: int) -> None:
    write(disk)
    log = open_log(disk, PATH, SMALL, clean_shutdown=clean_shutdown, recovery_point=recovery_point)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (0, END, 3)
    assert log.earliest_epoch == -1
    check(log)
    assert log.find_offset_for_timestamp(0) == (NOW_MS + 12, 12, -1)
    assert log.find_offset_of_max_timestamp() == (NOW_MS + END - 1, END - 1, -1)
    log.append_as_leader(batch(timestamp=NOW_MS), 4, NOW_MS)
    log.append_as_leader(idempotent(0), 4, NOW_MS)
    log.close()
    for base_offset, data in HISTORY.items():
        assert disk.read_file(f"{PATH}/{base_offset:020d}.log").startswith(data), "nobody rewrites them"
    again = open_log(disk, PATH, SMALL, clean_shutdown=clean_shutdown, recovery_point=recovery_point)
    assert again.log_end_offset == END + 2
    assert list(again.producers.producers) == [7]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_torn_tail_is_cut_off_at_every_byte(disk: SimulatedDisk, magic: int) -> None:
    data = messages(records(0, 8, magic=magic), magic)
    write(disk, {0: data})
    ends = [(position + header.size_bytes, header.next_offset) for position, header in headers(disk)]
    for cut in range(len(data)):
        write(disk, {0: data[:cut]})
        log = open_log(disk, PATH)
        assert (log.size_bytes, log.log_end_offset) == max((end for end in ends if end[0] <= cut), default=(0, 0))
        assert log.append_as_leader(batch(), 0, NOW_MS).first_offset == log.log_end_offset - 1
        log.close()


def headers(disk: SimulatedDisk) -> list[tuple[int, RecordBatchHeader]]:
    file = disk.open(f"{PATH}/{0:020d}.log")
    return list(scan_headers(file, 0, file.size()))


@pytest.mark.parametrize("magic", [0, 1])
def test_damage_at_any_byte_ends_the_log_before_it(disk: SimulatedDisk, magic: int) -> None:
    """After a crash; but for the upper bytes of an offset, which no checksum covers."""
    data = messages(records(0, 8, magic=magic), magic)
    write(disk, {0: data})
    found = headers(disk)
    for position in range(len(data)):
        at, _ = next(each for each in reversed(found) if each[0] <= position)
        if position < at + 8:
            continue
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        write(disk, {0: bytes(damaged)})
        log = open_log(disk, PATH)
        assert log.size_bytes == at
        log.close()


def test_zeros_behind_old_messages_are_a_torn_tail(disk: SimulatedDisk) -> None:
    data = messages(records(0, 8, magic=0), 0)
    for zeros in (1, 13, 26, 61, 500):
        write(disk, {0: data + bytes(zeros)})
        assert open_log(disk, PATH).size_bytes == len(data)


def test_both_walks_find_the_same_in_any_mixture(disk: SimulatedDisk) -> None:
    rng = Random(1)
    for _ in range(30):
        data, offset = b"", 0
        for _ in range(rng.randrange(1, 12)):
            count, magic = rng.randrange(1, 6), rng.randrange(3)
            some = records(offset, count, magic=magic)
            data += messages(some, magic) if magic < MAGIC_VALUE_V2 else encode_batch(some, base_offset=offset)
            offset += count
        big = records(offset, 1)[0]._replace(
            key=b"k" * rng.choice((10, 5000)), value=bytes(rng.choice((10, 3_000_000)))
        )
        data += messages([big], 1)
        write(disk, {0: data})
        file = disk.open(f"{PATH}/{0:020d}.log")
        whole = [(position, found.header) for position, found in scan_batches(file, 0, len(data))]
        assert whole == list(scan_headers(file, 0, len(data)))
        everything = [record for _, found in scan_batches(file, 0, len(data)) for record in iter_records(found)]
        assert offsets(everything) == list(range(offset + 1))
        assert all(found.is_crc_valid for _, found in scan_batches(file, 0, len(data)))


def test_a_follower_takes_old_messages_as_they_are(disk: SimulatedDisk) -> None:
    write(disk)
    log = open_log(disk, PATH, SMALL)
    copy = open_log(disk, "/data/copy-0", SMALL)
    for segment in log.segments:
        copy.append_as_follower(segment.file.read_at(0, segment.size))
        copy.roll(NOW_MS)
    check(copy)
    log.close()
    copy.close()
    for name in disk.list_directory(PATH):
        if name.endswith((".log", ".index")):
            assert disk.read_file(f"/data/copy-0/{name}") == disk.read_file(f"{PATH}/{name}")


def test_a_copy_of_a_log_that_starts_within_a_wrapper_is_recovered(disk: SimulatedDisk) -> None:
    """It begins where the wrapper begins, which only the wrapper's inside tells."""
    write(disk)
    log = open_log(disk, PATH, SMALL)
    log.increment_log_start_offset(20)
    copy = LogCopy(log, open_log(disk, "/data/copy-0", SMALL))
    while (data := copy.next_slice(1, now_ms=NOW_MS)) is not None:
        copy.append(data)
    copy.finish()
    check(copy.log, ALL[20:])
    assert copy.log.segments[0].base_offset == 18
    check(open_log(disk, "/data/copy-0", SMALL, log_start_offset=20), ALL[20:])


def test_records_in_front_are_deleted_and_a_diverging_tail_truncated(disk: SimulatedDisk) -> None:
    write(disk)
    log = open_log(disk, PATH, SMALL)
    log.increment_log_start_offset(14)
    check(log, ALL[14:])
    for path in log.delete_old_segments(END, NOW_MS):
        disk.remove(path)
    check(log, ALL[14:])
    log.truncate_to(20)
    log.append_as_leader(batch(), 0, NOW_MS)
    # The wrapper that held the offset is gone as a whole.
    assert offsets(read_all(log)) == [14, 15, 16, 17, 20]


def test_retention_counts_old_segments(disk: SimulatedDisk) -> None:
    write(disk)
    log = open_log(disk, PATH, config(retention_bytes=1), clean_shutdown=True)
    log.delete_old_segments(END, NOW_MS)
    assert log.log_start_offset == 30
    log = open_log(disk, PATH, config(retention_ms=1000), clean_shutdown=True, log_start_offset=30)
    log.delete_old_segments(END, NOW_MS + END + 1001)
    assert log.log_start_offset == END


COMPACT = config(cleanup_policy="compact", index_interval_bytes=200)


def compacted(disk: SimulatedDisk, settings: LogConfig = COMPACT) -> Log:
    log = open_log(disk, PATH, settings)
    log.roll(NOW_MS)
    clean(disk, log)
    return log


def test_cleaning_keeps_whole_messages_and_makes_batches_of_parts(disk: SimulatedDisk) -> None:
    """As Kafka's cleaner: what it must write anew, it writes in today's format."""
    write(disk)
    log = compacted(disk)
    latest = ALL[-5:]
    assert read_all(log) == latest
    log.close()
    for clean_shutdown in (True, False):
        assert read_all(open_log(disk, PATH, COMPACT, clean_shutdown=clean_shutdown)) == latest


def test_a_message_that_stays_whole_is_copied(disk: SimulatedDisk) -> None:
    data = messages(records(0, 4, magic=0), 0) + messages(records(4, 1, magic=1), 1)
    write(disk, {0: data})
    log = compacted(disk)
    assert disk.read_file(f"{PATH}/{0:020d}.log") == data
    assert read_all(log) == records(0, 4, magic=0) + records(4, 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_tombstone_in_an_old_format_goes_when_its_horizon_has_passed(disk: SimulatedDisk, magic: int) -> None:
    value, tombstone = records(0, 2, magic=magic)
    tombstone = tombstone._replace(key=value.key, value=None)
    kept = records(2, 1, magic=magic)
    write(disk, {0: messages([value, tombstone, *kept], magic)})
    log = compacted(disk)
    assert read_all(log) == [tombstone, *kept]
    assert [each.header.has_delete_horizon for each in batches(log)] == [True, False]
    log.append_as_leader(encode_batch([Record(b"another", b"", (), NOW_MS)]), 0, NOW_MS)
    log.roll(NOW_MS)
    clean(disk, log, 3, now_ms=NOW_MS + log.config.delete_retention_ms + 1)
    assert offsets(read_all(log)) == [2, 3]


def test_without_timestamps_there_is_no_time_index(disk: SimulatedDisk) -> None:
    write(disk, {0: messages(records(0, 40, magic=0), 0), 40: b""})
    log = open_log(disk, PATH, SMALL)
    assert log.segments[0].offset_index.last() is not None
    assert disk.read_file(f"{PATH}/{0:020d}.timeindex") == b""
    log.close()
    assert open_log(disk, PATH, SMALL, clean_shutdown=True).log_end_offset == 40
