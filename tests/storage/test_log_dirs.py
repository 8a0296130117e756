"""A log directory: who owns it, what it finds again, and what it refuses in one clear line."""

import gc
import re
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import pytest

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.directories.directory_names import parse_partition_directory
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.checkpoints import OffsetCheckpoint
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.errors import DirectoryLocked, InconsistentDirectory, StorageError
from pykbroker.storage.log.log import LogConfig
from pykbroker.storage.segments.leader_epochs import EpochEntry
from tests.storage.batches import NOW_MS, batch, idempotent, offsets, read_all
from tests.storage.power_cut import FragileDisk, PowerCut

CLUSTER = "QW1vbmdUaGVzZU5vdGhpbmc"
TOPIC_ID = random_uuid(Random(1))
CONFIG = LogConfig()


def formatted(disk: Disk, path: str = "/data/logs") -> LogDirectory:
    format_directory(disk, path, cluster_id=CLUSTER, node_id=1, rng=Random(1))
    return opened(disk, path)


def opened(disk: Disk, path: str = "/data/logs") -> LogDirectory:
    return LogDirectory.open(disk, path, rng=Random(2), node_id=1, cluster_id=CLUSTER)


def test_formatted_directory_is_as_kafka_has_it(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    lines = disk.read_file("/data/logs/meta.properties").decode().splitlines()
    assert set(lines) == {
        "#",
        "version=1",
        "node.id=1",
        f"cluster.id={CLUSTER}",
        f"directory.id={directory.meta.directory_id}",
    }
    assert uuid_to_text(directory.directory_id) == directory.meta.directory_id
    with pytest.raises(InconsistentDirectory, match="already formatted"):
        format_directory(disk, "/data/logs", cluster_id=CLUSTER, node_id=1, rng=Random(1))


def test_meta_properties_that_kafka_wrote_are_read(disk: SimulatedDisk) -> None:
    lines = (
        "#",
        "#Sat Nov 21 13:04:26 UTC 2026",
        "node.id=1",
        "directory.id=m1X20NYwqkNBN6uRUJxk5A",
        "version=1",
        f"cluster.id={CLUSTER}",
        "",
    )
    disk.make_directory("/data/logs")
    disk.replace_file("/data/logs/meta.properties", "\n".join(lines).encode())
    directory = opened(disk)
    assert directory.meta.directory_id == "m1X20NYwqkNBN6uRUJxk5A"
    assert directory.meta.cluster_id == CLUSTER


def test_directory_id_is_given_where_an_old_kafka_left_it_out(disk: SimulatedDisk) -> None:
    disk.make_directory("/data/logs")
    disk.replace_file("/data/logs/meta.properties", f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n".encode())
    first = opened(disk)
    given = first.directory_id
    first.release()
    assert opened(disk).directory_id == given


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "the log directory /data/logs is not formatted"),
        (f"version=1\nnode.id=2\ncluster.id={CLUSTER}\n", "belongs to node 2, not to node 1"),
        ("version=1\nnode.id=1\ncluster.id=other\n", "belongs to cluster other, not to cluster"),
        (f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n", "has version '0'"),
        ("node.id=1\n", "has version None"),
        ("version=1\nnode.id=x\ncluster.id=y\n", "lacks a sound node.id"),
        ("version=1\nnode.id=1\n", "lacks a sound node.id or cluster.id"),
        ("version=1\nnode.id=1\ncluster.id=\n", "lacks a cluster.id"),
    ],
)
def test_directory_of_somebody_else_is_refused(disk: SimulatedDisk, text: str | None, message: str) -> None:
    disk.make_directory("/data/logs")
    if text is not None:
        disk.replace_file("/data/logs/meta.properties", text.encode())
    with pytest.raises(InconsistentDirectory, match=re.escape(message)) as refused:
        opened(disk)
    assert "\n" not in str(refused.value)
    disk.lock("/data/logs/.lock").release()


def test_missing_directory_is_refused(disk: SimulatedDisk) -> None:
    with pytest.raises(InconsistentDirectory, match="the log directory /nowhere does not exist"):
        opened(disk, "/nowhere")


def test_directory_in_use_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "logs")
    directory = formatted(OsDisk(), path)
    with pytest.raises(DirectoryLocked, match=f"{path} is in use by another process"):
        opened(OsDisk(), path)
    directory.release()
    opened(OsDisk(), path).release()


def test_logs_come_back_after_a_clean_shutdown(either_disk: tuple[Disk, str]) -> None:
    disk, base = either_disk
    path = f"{base}/logs"
    directory = formatted(disk, path)
    assert not directory.was_clean_shutdown
    for partition in range(3):
        log = directory.open_log("t", partition, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        for sequence in range(partition + 1):
            log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    directory.checkpoint_high_watermarks({TopicPartition("t", 2): 3})
    directory.close(broker_epoch=12)
    assert disk.read_file(f"{path}/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":12}'

    again = opened(disk, path)
    assert again.was_clean_shutdown
    assert again.previous_broker_epoch == 12
    assert not disk.exists(f"{path}/.kafka_cleanshutdown"), "the marker is good for one start"
    assert {at: found.topic_id for at, found in again.found.items()} == {
        TopicPartition("t", partition): TOPIC_ID for partition in range(3)
    }
    assert again.high_watermarks == {TopicPartition("t", 2): 3}
    for partition in range(3):
        log = again.open_log("t", partition, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        assert offsets(read_all(log)) == list(range(partition + 1))
        assert log.recovery_point == partition + 1
    assert again.found == {}
    again.release()


def test_checkpoints_are_kafkas(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    for topic in ("b", "a"):
        log = directory.open_log(topic, 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        log.append_as_leader(batch(5), 0, NOW_MS)
    directory.logs[TopicPartition("a", 0)].flush()
    directory.logs[TopicPartition("b", 0)].increment_log_start_offset(3)
    directory.checkpoint_offsets()
    directory.checkpoint_high_watermarks({TopicPartition("a", 0): 4})
    assert disk.read_file("/data/logs/recovery-point-offset-checkpoint") == b"0\n2\na 0 5\nb 0 0\n"
    assert disk.read_file("/data/logs/log-start-offset-checkpoint") == b"0\n1\nb 0 3\n"
    assert disk.read_file("/data/logs/replication-offset-checkpoint") == b"0\n1\na 0 4\n"
    directory.release()
    again = opened(disk)
    assert again.open_log("b", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS).log_start_offset == 3


@pytest.mark.parametrize("seed", range(8))
def test_a_start_that_was_checkpointed_stays_though_deleted_segments_come_back(seed: int) -> None:
    """Their new names are durable with the next flush, which may be far away."""
    disk = SimulatedDisk(Random(seed))
    small = LogConfig.from_properties({"segment.bytes": "150", "retention.bytes": "0"})
    directory = formatted(disk)
    log = directory.open_log("t", 0, TOPIC_ID, small, now_ms=NOW_MS)
    for _ in range(5):
        log.append_as_leader(batch(3), 0, NOW_MS)
    directory.checkpoint_offsets()
    log.increment_log_start_offset(12)
    log.delete_old_segments(15, NOW_MS)
    directory.checkpoint_log_start_offsets()
    start = log.log_start_offset
    disk.crash()
    again = opened(disk).open_log("t", 0, TOPIC_ID, small, now_ms=NOW_MS)
    assert again.log_start_offset == start >= 12


def test_a_process_killed_while_a_log_begins_anew_leaves_none_that_begins_at_0() -> None:
    small = LogConfig.from_properties({"segment.bytes": "150"})
    for operations in count():
        disk = FragileDisk(Random(1))
        directory = formatted(disk)
        log = directory.open_log("t", 0, TOPIC_ID, small, now_ms=NOW_MS)
        log.truncate_fully_and_start_at(10, now_ms=NOW_MS)
        for _ in range(5):
            log.append_as_leader(batch(3), 0, NOW_MS)
        log.flush()
        directory.checkpoint_offsets()
        disk.operations_left = operations
        with suppress(PowerCut):
            log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
        is_done = log.log_start_offset == 100 and disk.operations_left > 0
        disk.operations_left = None
        disk.process_died()
        again = opened(disk).open_log("t", 0, TOPIC_ID, small, now_ms=NOW_MS)
        assert again.log_start_offset in (10, 100)
        if is_done:
            assert operations > 10
            return


def test_a_log_that_a_power_cut_took_is_not_missed_by_the_start_after_one_that_was_killed() -> None:
    at = TopicPartition("t", 0)
    for operations in count():
        disk = FragileDisk(Random(1))
        directory = formatted(disk)
        directory.open_log(at.topic, at.partition, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        directory.checkpoint_high_watermarks({at: 5})
        disk.crash()
        disk.remove_directory(f"/data/logs/{at}")
        disk.operations_left = operations
        with suppress(PowerCut):
            opened(disk).open_log(at.topic, at.partition, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        is_done = disk.operations_left > 0
        disk.operations_left = None
        disk.process_died()
        again = opened(disk).open_log(at.topic, at.partition, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        assert again.log_end_offset == 0
        if is_done:
            assert operations > 10
            return


def test_a_log_whose_records_a_power_cut_took_is_not_expected_by_the_start_after_one_that_was_killed(
    disk: SimulatedDisk,
) -> None:
    """The leader epochs told how far it had come."""
    log = formatted(disk).open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    for epoch in (2, 4):
        log.append_as_leader(batch(2), epoch, NOW_MS)
    log.flush()
    disk.crash()
    for name in disk.list_directory("/data/logs/t-0"):
        if name.startswith("0000"):
            disk.remove(f"/data/logs/t-0/{name}")
    assert opened(disk).open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS).epochs == []
    disk.process_died()
    again = opened(disk).open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    assert (again.log_end_offset, again.epochs) == (0, [])


def test_a_start_that_goes_back_in_a_crash_has_the_epochs_of_its_records_again(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    for epoch in (2, 4, 7):
        log.append_as_leader(batch(2), epoch, NOW_MS)
    directory.checkpoint_offsets()
    log.increment_log_start_offset(5)
    log.append_as_leader(batch(1), 7, NOW_MS)
    log.flush()
    disk.crash()
    again = opened(disk).open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    assert again.log_start_offset == 0
    assert again.epochs == [EpochEntry(2, 0), EpochEntry(4, 2), EpochEntry(7, 4)]


def test_crash_leaves_no_marker_and_logs_recover(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    log.append_as_leader(batch(2), 0, NOW_MS)
    log.flush()
    directory.checkpoint_offsets()
    log.append_as_leader(batch(2), 0, NOW_MS)
    disk.crash()
    again = opened(disk)
    assert not again.was_clean_shutdown
    log = again.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    assert log.log_end_offset in (2, 4)


def test_a_crash_after_a_clean_start_is_no_clean_shutdown(disk: SimulatedDisk) -> None:
    formatted(disk).close()
    opened(disk)
    disk.crash()
    assert not opened(disk).was_clean_shutdown


@pytest.mark.parametrize("suffixes", [(".index",), (".timeindex",), (".index", ".timeindex")])
def test_indexes_that_a_power_cut_behind_a_clean_shutdown_took_of_an_empty_log_are_made_anew(
    disk: SimulatedDisk, suffixes: tuple[str, ...]
) -> None:
    """Whole-cluster seed 543815: nobody syncs the names of a log that never had a record."""
    directory = formatted(disk)
    directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    directory.close()
    names = [name for name in disk.list_directory("/data/logs/t-0") if name.endswith(suffixes)]
    assert len(names) == len(suffixes)
    for name in names:
        disk.remove(f"/data/logs/t-0/{name}")
    again = opened(disk)
    again.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    again.close()
    assert set(names) <= set(disk.list_directory("/data/logs/t-0"))


def test_logs_that_nobody_opened_keep_their_checkpoints_and_their_recovery(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    log.append_as_leader(batch(2), 0, NOW_MS)
    log.flush()
    directory.checkpoint_offsets()
    directory.checkpoint_high_watermarks({TopicPartition("t", 0): 2})
    directory.release()
    second = opened(disk)
    second.checkpoint_high_watermarks({})
    second.close()
    third = opened(disk)
    assert not third.was_clean_shutdown
    assert third.high_watermarks == {TopicPartition("t", 0): 2}
    assert third.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS).recovery_point == 2


def test_deleted_log_is_gone_at_once_and_its_files_later(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    log.append_as_leader(batch(2), 0, NOW_MS)
    path = directory.delete_log(log)
    assert re.fullmatch(r"/data/logs/t-0\.[0-9a-f]{32}-delete", path)
    assert directory.deleted_paths == [path]
    other_id = random_uuid(Random(9))
    again = directory.open_log("t", 0, other_id, CONFIG, now_ms=NOW_MS)
    assert again.log_end_offset == 0
    directory.remove_deleted([path])
    assert directory.deleted_paths == []
    assert not disk.exists(path)


def test_name_of_a_deleted_log_is_not_too_long_for_a_file_system(tmp_path: Path) -> None:
    directory = formatted(OsDisk(), str(tmp_path / "logs"))
    log = directory.open_log("t" * 249, 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    assert disk_name_bytes(directory.delete_log(log)) == 255
    directory.release()


def disk_name_bytes(path: str) -> int:
    return len(path.rpartition("/")[2].encode())


def test_directory_of_an_earlier_topic_of_that_name_is_put_aside(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS).append_as_leader(batch(2), 0, NOW_MS)
    directory.close()
    again = opened(disk)
    log = again.open_log("t", 0, random_uuid(Random(9)), CONFIG, now_ms=NOW_MS)
    assert log.log_end_offset == 0
    [stray] = [name for name in disk.list_directory("/data/logs") if name.endswith("-stray")]
    assert disk.exists(f"/data/logs/{stray}/{0:020d}.log"), "nothing is lost"
    assert again.deleted_paths == []


def test_stray_logs_can_be_put_aside(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    directory.close()
    again = opened(disk)
    assert again.delete_stray(TopicPartition("t", 0)).endswith("-stray")
    assert again.found == {}


def test_topic_id_is_written_as_kafka_writes_it(disk: SimulatedDisk) -> None:
    directory = formatted(disk)
    directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    text = f"version: 0\ntopic_id: {uuid_to_text(TOPIC_ID)}"
    assert disk.read_file("/data/logs/t-0/partition.metadata") == text.encode()


@pytest.mark.parametrize(
    "data", [b"", bytes(43), b"version: 1\ntopic_id: x", b"version: 0\ntopic_id: short", b"nonsense"]
)
def test_partition_metadata_that_a_crash_tore_is_written_again(disk: SimulatedDisk, data: bytes) -> None:
    formatted(disk).release()
    disk.make_directory("/data/logs/t-0")
    disk.replace_file("/data/logs/t-0/partition.metadata", data)
    directory = opened(disk)
    assert directory.found[TopicPartition("t", 0)].topic_id is None
    directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    directory.release()
    assert opened(disk).found[TopicPartition("t", 0)].topic_id == TOPIC_ID


def test_partition_metadata_is_durable_with_the_first_checkpoint() -> None:
    for seed in range(30):
        disk = SimulatedDisk(Random(seed))
        disk.make_directory("/data")
        disk.sync_directory("/")
        directory = formatted(disk)
        log = directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        log.append_as_leader(batch(), 0, NOW_MS)
        log.flush()
        directory.checkpoint_offsets()
        disk.crash()
        assert opened(disk).found[TopicPartition("t", 0)].topic_id == TOPIC_ID


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\n", b"0\n2\nt 0 5\n", b"0\n1\nt 0\n", b"0\n1\nt x 5\n", b"\xff\xfe", b"0\nx\n"]
)
def test_damaged_checkpoint_costs_a_longer_recovery_only(disk: SimulatedDisk, data: bytes) -> None:
    formatted(disk).release()
    disk.replace_file("/data/logs/recovery-point-offset-checkpoint", data)
    with pytest.raises(StorageError):
        OffsetCheckpoint(disk, "/data/logs/recovery-point-offset-checkpoint").read()
    directory = opened(disk)
    assert directory.open_log("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS).recovery_point == 0


def test_checkpoint_that_kafka_left_empty_has_no_entries(disk: SimulatedDisk) -> None:
    disk.replace_file("/data/checkpoint", b"")
    assert OffsetCheckpoint(disk, "/data/checkpoint").read() == {}
    assert OffsetCheckpoint(disk, "/data/missing").read() == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", ("t", 0)),
        ("my-topic.a_b-12", ("my-topic.a_b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("__cluster_metadata-0", None),
        ("t-0.0123456789abcdef0123456789abcdef-delete", None),
        ("t-0.0123456789abcdef0123456789abcdef-stray", None),
        ("t-00", None),
        ("t-", None),
        ("-0", None),
        ("t", None),
        ("ü-0", None),
        ("lost+found", None),
        ("t-0\n", None),
    ],
)
def test_names_of_partition_directories(name: str, expected: tuple[str, int] | None) -> None:
    assert parse_partition_directory(name) == expected


@pytest.mark.parametrize("topic", ["..", "../x", "a/b", "", "x" * 250])
def test_no_path_is_made_of_what_is_not_a_topic_name(disk: SimulatedDisk, topic: str) -> None:
    directory = formatted(disk)
    if topic == "..":
        # A legal directory name by its letters; that it is no topic is decided before.
        assert parse_partition_directory("..-0") == ("..", 0)
        return
    with pytest.raises(AssertionError):
        directory.open_log(topic, 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)


def test_logs_may_be_opened_while_somebody_goes_over_all_of_them(disk: SimulatedDisk) -> None:
    """As a thread does that gets its turn in the middle of a garbage collection."""
    directory = formatted(disk)
    for index in range(20):
        directory.open_log("t", index, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    new = iter(range(20, 200))

    def open_one_more(phase: str, _info: dict[str, int]) -> None:
        if phase == "stop" and (index := next(new, None)) is not None:
            directory.open_log("t", index, TOPIC_ID, CONFIG, now_ms=NOW_MS)

    no_spare_tuples = [(each, each) for each in range(10_000)]
    thresholds = gc.get_threshold()
    gc.callbacks.append(open_one_more)
    gc.set_threshold(1)
    try:
        directory.checkpoint_offsets()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(open_one_more)
    assert len(directory.logs) > 20
    assert no_spare_tuples
