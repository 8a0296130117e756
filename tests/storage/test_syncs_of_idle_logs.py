"""What a node has to sync at its end for logs that nobody wrote to, of which it may have thousands."""

import errno
from collections import Counter
from random import Random

import pytest

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.sim.disk import SimulatedDisk, SimulatedFile
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.errors import DiskFailed
from pykbroker.storage.log.log import LogConfig
from tests.storage.batches import NOW_MS, batch, offsets, read_all

COUNT = 10
TOPIC_ID = b"0123456789abcdef"


class CountingDisk(SimulatedDisk):
    """Counts the syncs of names, and of files that are replaced, below the directories of partitions."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.syncs: Counter[str] = Counter()

    def sync_directory(self, path: str) -> None:
        self.syncs["names"] += path != "/data"
        super().sync_directory(path)

    def sync_volume(self, path: str) -> bool:
        self.syncs["volume"] += 1
        return super().sync_volume(path)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.syncs["files"] += sync and path.count("/") > 2
        super().replace_file(path, data, sync=sync)


@pytest.fixture
def counting() -> CountingDisk:
    disk = CountingDisk(Random(3))
    disk.make_directory("/data")
    disk.sync_directory("/")
    format_directory(disk, "/data", cluster_id="test", node_id=1, rng=Random(1))
    disk.syncs.clear()
    return disk


def opened(disk: CountingDisk, leader_epoch: int) -> LogDirectory:
    directory = LogDirectory.open(disk, "/data", rng=Random(1))
    for index in range(COUNT):
        log = directory.open_log("t", index, TOPIC_ID, LogConfig(), now_ms=NOW_MS)
        log.assign_epoch_start_offset(leader_epoch, log.log_end_offset)
    return directory


def append_and_close(directory: LogDirectory, leader_epoch: int) -> None:
    for log in directory.logs.values():
        log.append_as_leader(batch(), leader_epoch, NOW_MS)
    directory.close()


def test_logs_without_records_are_closed_without_a_sync(counting: CountingDisk) -> None:
    for leader_epoch in range(3):
        opened(counting, leader_epoch).close()
    assert not +counting.syncs
    counting.crash()
    directory = opened(counting, 3)
    append_and_close(directory, 3)
    assert counting.syncs["names"] >= COUNT


def test_logs_that_nobody_wrote_to_are_closed_with_a_sync_of_their_epochs_alone(counting: CountingDisk) -> None:
    append_and_close(opened(counting, 0), 0)
    counting.syncs.clear()
    for leader_epoch in range(1, 4):
        opened(counting, leader_epoch).close()
    assert +counting.syncs == {"files": 3 * COUNT}


def test_many_logs_are_closed_with_a_few_syncs_of_the_volume(
    counting: CountingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykbroker.storage.directories.log_dirs._MANY_LOGS", COUNT)
    for leader_epoch in range(3):
        directory = opened(counting, leader_epoch)
        counting.syncs.clear()
        append_and_close(directory, leader_epoch)
        assert +counting.syncs == {"volume": 3}
        counting.crash()
    directory = opened(counting, 3)
    assert directory.was_clean_shutdown
    for log in directory.logs.values():
        assert offsets(read_all(log)) == [0, 1, 2]
        assert [entry.epoch for entry in log.epochs] == [0, 1, 2, 3]
    counting.syncs.clear()
    directory.close()
    assert +counting.syncs == {"volume": 3}, "for the epoch of no records"


def test_no_records_of_many_logs_are_synced_by_themselves(
    counting: CountingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykbroker.storage.directories.log_dirs._MANY_LOGS", COUNT)
    synced: list[str] = []
    monkeypatch.setattr(SimulatedFile, "sync", lambda self: synced.append(self.path))
    append_and_close(opened(counting, 0), 0)
    assert not synced, "each would flush the device"


def test_many_logs_are_not_closed_cleanly_where_a_write_of_one_did_not_come_to_the_disk(
    counting: CountingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykbroker.storage.directories.log_dirs._MANY_LOGS", COUNT)

    def check(self: SimulatedFile) -> None:
        if "/t-7/" in self.path:
            raise DiskFailed("sync", self.path, OSError(errno.EIO, "lost"))

    monkeypatch.setattr(SimulatedFile, "check_written", check)
    directory = opened(counting, 0)
    with pytest.raises(DiskFailed):
        append_and_close(directory, 0)
    directory.release()
    assert not opened(counting, 1).was_clean_shutdown


def test_where_the_volume_cannot_be_synced_each_log_is(counting: CountingDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykbroker.storage.directories.log_dirs._MANY_LOGS", 1)
    monkeypatch.setattr(CountingDisk, "sync_volume", lambda self, path: False)
    append_and_close(opened(counting, 0), 0)
    assert counting.syncs["files"] >= COUNT
    counting.crash()
    assert {len(read_all(log)) for log in opened(counting, 1).logs.values()} == {1}


@pytest.mark.parametrize("seed", range(20))
def test_epochs_with_records_survive_whatever_came_between(seed: int) -> None:
    disk = CountingDisk(Random(seed))
    disk.make_directory("/data")
    disk.sync_directory("/")
    format_directory(disk, "/data", cluster_id="test", node_id=1, rng=Random(1))
    opened(disk, 0).close()
    append_and_close(opened(disk, 0), 0)
    opened(disk, 3).close()
    append_and_close(opened(disk, 5), 5)
    opened(disk, 6).close()
    disk.crash()
    directory = opened(disk, 9)
    assert len(directory.logs) == COUNT
    for log in directory.logs.values():
        assert offsets(read_all(log)) == [0, 1]
        assert [log.end_offset_for_epoch(epoch) for epoch in (0, 4, 5, 8, 9)] == [
            (0, 1),
            (0, 1),
            (5, 2),
            (5, 2),
            (9, 2),
        ]
    directory.release()


def test_a_topic_id_is_durable_before_records_are_trusted_to_be(counting: CountingDisk) -> None:
    opened(counting, 0).close()
    append_and_close(opened(counting, 1), 1)
    counting.crash()
    again = LogDirectory.open(counting, "/data", rng=Random(1))
    assert {at: found.topic_id for at, found in again.found.items()} == {
        TopicPartition("t", index): TOPIC_ID for index in range(COUNT)
    }
    again.release()
