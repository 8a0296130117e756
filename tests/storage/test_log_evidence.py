"""What recovery may cut off: what a dying process or a dying machine may have torn, and nothing else."""

from random import Random

import pytest

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS, batch, config, offsets, read_all

TOPIC_ID = b"a topic of tests"
AT = TopicPartition("t", 0)
LOG_0 = f"/data/t-0/{0:020d}.log"
BATCHES = 10
SMALL = config(segment_bytes=400)


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    format_directory(disk, "/data", cluster_id="c", node_id=1, rng=Random(1))
    return disk


def opened(disk: SimulatedDisk) -> LogDirectory:
    return LogDirectory.open(disk, "/data", rng=Random(1))


def log_of(directory: LogDirectory, topic_id: bytes = TOPIC_ID) -> Log:
    return directory.open_log("t", 0, topic_id, SMALL, now_ms=NOW_MS)


def killed(disk: SimulatedDisk, *, flushed: bool = False, high_watermark: int = 0) -> int:
    """The size of a batch; ten of two records were written."""
    directory = opened(disk)
    log = log_of(directory)
    for number in range(BATCHES):
        log.append_as_leader(batch(2, timestamp=NOW_MS + number), 3, NOW_MS)
    if flushed:
        log.flush()
        directory.checkpoint_recovery_points()
    if high_watermark:
        directory.checkpoint_high_watermarks({AT: high_watermark})
    size = log.segments[0].file.size() // 4
    directory.release()
    return size


def machine_went_down(disk: SimulatedDisk) -> None:
    """With everything on disk by luck."""
    disk.boot += 1


def flip(disk: SimulatedDisk, path: str, position: int, bit: int = 1) -> bytes:
    damaged = bytearray(disk.read_file(path))
    damaged[position] ^= bit
    disk.replace_file(path, bytes(damaged))
    return bytes(damaged)


def last_file(disk: SimulatedDisk) -> str:
    return "/data/t-0/" + max(name for name in disk.list_directory("/data/t-0") if name.endswith(".log"))


def test_a_flipped_bit_is_no_torn_tail_after_a_kill(disk: SimulatedDisk) -> None:
    size = killed(disk)
    names = disk.list_directory("/data/t-0")
    damaged = flip(disk, LOG_0, 2 * size + 70)
    for _ in range(2):
        directory = opened(disk)
        with pytest.raises(
            CorruptLog,
            match=rf"{LOG_0} is damaged at position {2 * size}, where offset 4 belongs: the checksum is wrong; .*"
            "7 sound batches follow",
        ):
            log_of(directory)
        directory.close()
        assert disk.read_file(LOG_0) == damaged
        assert [name for name in disk.list_directory("/data/t-0") if name in names] == names


def test_a_whole_batch_at_the_end_is_not_torn_by_a_kill(disk: SimulatedDisk) -> None:
    for position in (8 + 3, 16, 70):
        killed(disk)
        path = last_file(disk)
        flip(disk, path, disk.open(path).size() // 2 + position)
        with pytest.raises(CorruptLog, match="is damaged at position"):
            log_of(opened(disk))
        disk.remove_directory("/data/t-0")
        for name in (".boot-id", "replication-offset-checkpoint"):
            disk.remove(f"/data/{name}")
        disk.crash()


def test_a_write_that_was_cut_short_is_cut_off(disk: SimulatedDisk) -> None:
    killed(disk, high_watermark=18)
    last = disk.open(last_file(disk))
    last.truncate(last.size() - 1)
    log = log_of(opened(disk))
    assert offsets(read_all(log)) == list(range(18))


def test_the_high_watermark_was_reached_when_only_the_process_died(disk: SimulatedDisk) -> None:
    killed(disk, high_watermark=19)
    last = disk.open(last_file(disk))
    last.truncate(last.size() - 1)
    directory = opened(disk)
    with pytest.raises(CorruptLog, match="the log had come to offset 19"):
        log_of(directory)
    directory.checkpoint_high_watermarks({})
    directory.release()
    assert opened(disk).high_watermarks == {AT: 19}


def test_a_machine_that_went_down_may_have_lost_what_was_never_flushed(
    disk: SimulatedDisk, caplog: pytest.LogCaptureFixture
) -> None:
    killed(disk, high_watermark=20)
    machine_went_down(disk)
    last = disk.open(last_file(disk))
    last.truncate(last.size() - 1)
    assert offsets(read_all(log_of(opened(disk)))) == list(range(18))
    assert "the records from offset 18 to 19 were acknowledged and never flushed" in caplog.text


def test_a_machine_that_went_down_does_not_flip_bits(disk: SimulatedDisk) -> None:
    size = killed(disk, high_watermark=20)
    machine_went_down(disk)
    flip(disk, LOG_0, size + 70)
    with pytest.raises(CorruptLog, match="8 sound batches follow"):
        log_of(opened(disk))


def test_what_was_flushed_is_never_cut_off(disk: SimulatedDisk) -> None:
    killed(disk, flushed=True)
    machine_went_down(disk)
    last = disk.open(last_file(disk))
    last.truncate(last.size() - 1)
    with pytest.raises(CorruptLog, match="everything below offset 20 was flushed"):
        log_of(opened(disk))


@pytest.mark.parametrize("missing", ["first", "middle", "last"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_data_file_is_noticed(disk: SimulatedDisk, missing: str, clean: bool) -> None:
    killed(disk, flushed=True, high_watermark=20)
    if clean:
        directory = opened(disk)
        log_of(directory)
        directory.close()
    logs = [name for name in disk.list_directory("/data/t-0") if name.endswith(".log")]
    disk.remove("/data/t-0/" + logs[{"first": 0, "middle": 1, "last": -1}[missing]])
    directory = opened(disk)
    with pytest.raises(CorruptLog):
        read_all(log_of(directory))


def test_a_missing_partition_does_not_begin_anew(disk: SimulatedDisk) -> None:
    killed(disk, high_watermark=20)
    disk.remove_directory("/data/t-0")
    for _ in range(2):
        directory = opened(disk)
        with pytest.raises(CorruptLog, match=r"/data/t-0 is missing, which held offsets up to 19"):
            log_of(directory)
        directory.checkpoint_high_watermarks({})
        directory.close()


@pytest.mark.parametrize("removed", [True, False])
def test_a_topic_may_have_the_name_of_one_that_was_deleted(disk: SimulatedDisk, removed: bool) -> None:
    killed(disk, flushed=True, high_watermark=20)
    directory = opened(disk)
    path = directory.delete_log(log_of(directory))
    if removed:
        directory.remove_deleted([path])
    log_of(directory, b"another of tests").append_as_leader(batch(), 3, NOW_MS)
    directory.release()
    assert log_of(opened(disk), b"another of tests").log_end_offset == 1


def test_a_truncated_log_is_not_damaged(disk: SimulatedDisk) -> None:
    killed(disk, flushed=True, high_watermark=20)
    directory = opened(disk)
    log_of(directory).truncate_to(6)
    directory.release()
    assert log_of(opened(disk)).log_end_offset == 6


def test_a_log_whose_process_died_as_it_began_anew_is_not_damaged(disk: SimulatedDisk) -> None:
    """The last segments go first: what is left ends before the start that DeleteRecords had given it. The next start
    ends what was begun.
    """
    directory = opened(disk)
    log = log_of(directory)
    for number in range(BATCHES):
        log.append_as_leader(batch(2, timestamp=NOW_MS + number), 3, NOW_MS)
    log.increment_log_start_offset(2 * BATCHES - 1)
    directory.checkpoint_log_start_offsets()
    truncation = log.begin_anew(100, now_ms=NOW_MS)
    truncation.prepare()
    for segment in reversed(log.segments[2:]):
        segment.put_aside()
    directory.release()

    log = log_of(opened(disk))
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)


@pytest.mark.parametrize("damage", [None, b"version: 0\ntopic_id: ?"])
def test_a_log_that_lost_its_topic_id_is_still_this_topics(disk: SimulatedDisk, damage: bytes | None) -> None:
    """The process died before its first checkpoint; what it wrote is there, and so was the id."""
    killed(disk, high_watermark=20)
    path = "/data/t-0/partition.metadata"
    if damage is None:
        disk.remove(path)
    else:
        disk.replace_file(path, damage)
    assert offsets(read_all(log_of(opened(disk)))) == list(range(20))
