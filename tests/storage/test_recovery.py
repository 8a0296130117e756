"""What a log makes of what a crash left: nothing that was flushed is lost, nothing that is torn stays."""

from random import Random

import pytest

from pykbroker.protocol.records.batch import iter_batches
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import Log, LogConfig
from tests.storage.batches import NOW_MS, batch, config, idempotent, offsets, open_log, read_all

SMALL = config(segment_bytes=500, index_interval_bytes=100)
LOG_0 = f"/data/t-0/{0:020d}.log"
INDEX_0 = f"/data/t-0/{0:020d}.index"
TIME_INDEX_0 = f"/data/t-0/{0:020d}.timeindex"


def filled(disk: SimulatedDisk, settings: LogConfig | None = None, count: int = 10) -> Log:
    """`count` batches of two records, a millisecond apart, in two epochs."""
    log = open_log(disk, "/data/t-0", settings)
    for number in range(count):
        log.append_as_leader(batch(2, timestamp=NOW_MS + number), 3 if number < count // 2 else 4, NOW_MS)
    return log


def check_all(log: Log, end: int) -> None:
    """Every way into the log agrees on what is there."""
    assert log.log_end_offset == end
    assert offsets(read_all(log)) == list(range(end))
    for offset in range(end):
        [first, *_] = iter_batches(log.read(offset, 1).read())
        assert first.header.base_offset == offset // 2 * 2
        assert log.find_offset_for_timestamp(NOW_MS + offset // 2) == (
            NOW_MS + offset // 2,
            offset // 2 * 2,
            first.header.partition_leader_epoch,
        )
    assert log.find_offset_for_timestamp(NOW_MS + end // 2) is None


def test_torn_tail_is_cut_off_at_every_byte(disk: SimulatedDisk) -> None:
    whole = bytearray(disk_bytes(filled(disk, count=4)))
    size = len(whole) // 4
    for end in range(len(whole) + 1):
        again = reopened_with(bytes(whole[:end]))
        assert again.log_end_offset == end // size * 2
        assert again.size_bytes == end // size * size
        assert offsets(read_all(again)) == list(range(end // size * 2))
        assert again.append_as_leader(batch(), 5, NOW_MS).first_offset == end // size * 2


def test_damage_at_any_byte_ends_the_log_before_it(disk: SimulatedDisk) -> None:
    whole = disk_bytes(filled(disk, count=3))
    size = len(whole) // 3
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        again = reopened_with(bytes(damaged))
        in_batch = position % size
        if 12 <= in_batch < 16:
            # The leader epoch is not under the checksum: a higher one cannot be told from a sound one.
            # Then it may be the sound one behind it that seems to go back.
            assert again.log_end_offset in (position // size * 2, position // size * 2 + 2, 6)
        elif in_batch < 8:
            # So is the base offset: one further on looks like a hole that compaction left.
            assert again.log_end_offset >= position // size * 2
        else:
            assert again.log_end_offset == position // size * 2


def disk_bytes(log: Log) -> bytes:
    [segment] = log.segments
    return segment.file.read_at(0, segment.size)


def reopened_with(data: bytes) -> Log:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/data/t-0")
    disk.open(LOG_0, create=True).append([data])
    return open_log(disk, "/data/t-0")


@pytest.mark.parametrize(
    "tail", [bytes(1), bytes(60), bytes(61), bytes(5000), b"\xff" * 100, b"\x00" * 16 + b"\x02" + bytes(80)]
)
def test_tail_of_zeros_or_garbage_is_cut_off(disk: SimulatedDisk, tail: bytes) -> None:
    whole = disk_bytes(filled(disk))
    again = reopened_with(whole + tail)
    check_all(again, 20)
    assert again.size_bytes == len(whole)


def test_offsets_and_epochs_that_go_back_end_the_log() -> None:
    first = batch(2, base_offset=0, epoch=4)
    for second in (batch(2, base_offset=1, epoch=4), batch(2, base_offset=2, epoch=3)):
        assert reopened_with(first + second).log_end_offset == 2
    assert reopened_with(first + batch(2, base_offset=2, epoch=4)).log_end_offset == 4
    assert reopened_with(first + batch(2, base_offset=7, epoch=4)).log_end_offset == 9, "a hole from compaction"


def test_epochs_are_found_again(disk: SimulatedDisk) -> None:
    filled(disk, SMALL)
    again = open_log(disk, "/data/t-0", SMALL)
    assert [again.end_offset_for_epoch(epoch) for epoch in (3, 4, 5)] == [(3, 10), (4, 20), (-1, -1)]


def test_segments_behind_a_torn_one_go(disk: SimulatedDisk) -> None:
    log = filled(disk, config(segment_bytes=300))
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) == 4
    torn = disk.open(f"/data/t-0/{bases[1]:020d}.log")
    torn.truncate(torn.size() - 1)
    again = open_log(disk, "/data/t-0", SMALL)
    assert [segment.base_offset for segment in again.segments] == bases[:2]
    check_all(again, bases[2] - 2)
    assert {name[:20] for name in disk.list_directory("/data/t-0") if name.endswith("index")} == {
        f"{base:020d}" for base in bases[:2]
    }
    assert (
        again.append_as_leader(batch(2, timestamp=NOW_MS + bases[2] // 2 - 1), 4, NOW_MS).first_offset == bases[2] - 2
    )


def test_what_lies_before_the_recovery_point_is_not_read_again(disk: SimulatedDisk) -> None:
    log = filled(disk, SMALL)
    bases = [segment.base_offset for segment in log.segments]
    log.flush()
    [first, *_] = log.segments
    damaged = bytearray(disk.read_file(LOG_0))
    damaged[80] ^= 1
    disk.replace_file(LOG_0, bytes(damaged))
    assert open_log(disk, "/data/t-0", SMALL, recovery_point=bases[1]).log_end_offset == 20
    with pytest.raises(CorruptLog, match=r"at position 0, where offset 0 belongs.*everything below offset"):
        open_log(disk, "/data/t-0", SMALL, recovery_point=bases[1] - 1)
    assert disk.read_file(LOG_0) == bytes(damaged)
    assert first.base_offset == 0


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "empty", "zeros behind", "half an entry", "lying", "garbage"])
def test_indexes_are_mended(disk: SimulatedDisk, suffix: str, damage: str, clean: bool) -> None:
    log = filled(disk, SMALL, count=40)
    log.close()
    for base in [segment.base_offset for segment in log.segments]:
        path = f"/data/t-0/{base:020d}{suffix}"
        good = disk.read_file(path)
        match damage:
            case "missing":
                disk.remove(path)
            case "empty":
                disk.replace_file(path, b"")
            case "zeros behind":
                disk.replace_file(path, good + bytes(24 * 100))
            case "half an entry":
                disk.replace_file(path, good[:-3])
            case "lying":
                disk.replace_file(path, good[:-6] + b"\x00\x00\x00\x00\x01\x01" if suffix == ".index" else good)
            case _:
                disk.replace_file(path, b"\x7f" * 24)
    if not clean or damage in ("missing", "lying"):
        again = open_log(disk, "/data/t-0", SMALL, clean_shutdown=clean, recovery_point=80)
        check_all(again, 80)
    else:
        # The time index of an old segment is believed after a clean shutdown as long as its end makes sense.
        again = open_log(disk, "/data/t-0", SMALL, clean_shutdown=clean, recovery_point=80)
        assert offsets(read_all(again)) == list(range(80))


def test_preallocated_index_of_a_killed_kafka_is_read(disk: SimulatedDisk) -> None:
    log = filled(disk, config(index_interval_bytes=100))
    log.close()
    for path in (INDEX_0, TIME_INDEX_0):
        disk.replace_file(path, disk.read_file(path).ljust(10 << 10, b"\0"))
    again = open_log(disk, "/data/t-0", config(index_interval_bytes=100), clean_shutdown=True, recovery_point=20)
    check_all(again, 20)


def test_leftovers_of_other_work_are_removed(disk: SimulatedDisk) -> None:
    filled(disk).close()
    for name in (f"{5:020d}.index", f"{5:020d}.timeindex", f"{0:020d}.log.deleted", f"{0:020d}.log.cleaned", "x.tmp"):
        disk.open(f"/data/t-0/{name}", create=True)
    open_log(disk, "/data/t-0", clean_shutdown=True, recovery_point=20)
    assert disk.list_directory("/data/t-0") == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{20:020d}.snapshot",
        "leader-epoch-checkpoint",
    ]


def test_log_start_offset_beyond_the_end_begins_anew(disk: SimulatedDisk) -> None:
    filled(disk).close()
    again = open_log(disk, "/data/t-0", log_start_offset=100)
    assert (again.log_start_offset, again.log_end_offset, again.latest_epoch) == (100, 100, None)
    assert again.append_as_leader(batch(), 5, NOW_MS).first_offset == 100


def test_clean_start_does_not_write(disk: SimulatedDisk) -> None:
    filled(disk, SMALL).close()
    before = {name: disk.read_file(f"/data/t-0/{name}") for name in disk.list_directory("/data/t-0")}
    again = open_log(disk, "/data/t-0", SMALL, clean_shutdown=True, recovery_point=20)
    check_all(again, 20)
    again.close()
    assert {name: disk.read_file(f"/data/t-0/{name}") for name in disk.list_directory("/data/t-0")} == before


@pytest.mark.parametrize("seed", range(150))
def test_crash_loses_nothing_that_was_flushed(seed: int) -> None:
    """A random run of appends, flushes, rolls and restarts: a crash leaves a prefix with all that was durable."""
    rng = Random(seed)
    disk = SimulatedDisk(rng)
    disk.make_directory("/data/t-0")
    disk.sync_directory("/")
    disk.sync_directory("/data")
    settings = config(segment_bytes=rng.choice([300, 1000, 100_000]), index_interval_bytes=rng.choice([0, 100, 4096]))
    written: list[tuple[bytes | None, int]] = []
    recovery_point = durable = sequence = 0
    log = open_log(disk, "/data/t-0", settings)
    for _ in range(60):
        match rng.randrange(10):
            case 0:
                log.flush()
                durable = log.log_end_offset
                if rng.random() < 0.7:
                    recovery_point = log.recovery_point
            case 1:
                log.roll(NOW_MS)
            case 2:
                disk.crash()
                log = open_log(disk, "/data/t-0", settings, recovery_point=recovery_point)
                assert durable <= log.log_end_offset <= len(written)
                del written[log.log_end_offset :]
                recovery_point = log.recovery_point
                # Producers know exactly what is left.
                sequence = log.producers.producers[7].last_sequence + 1 if written else 0
                assert sequence == len(written)
            case 3 if rng.random() < 0.3:
                log.close()
                durable = recovery_point = log.log_end_offset
                disk.crash()
                log = open_log(disk, "/data/t-0", settings, clean_shutdown=True, recovery_point=recovery_point)
                assert log.log_end_offset == durable
            case _:
                count = rng.randint(1, 4)
                log.append_as_leader(idempotent(sequence, count, timestamp=NOW_MS + sequence), 0, NOW_MS)
                written += [(b"value", NOW_MS + sequence)] * count
                sequence += count
    assert [(record.value, record.timestamp) for record in read_all(log)] == written
    assert offsets(read_all(log)) == list(range(len(written)))
