"""A log directory as a whole: sound as a broker leaves it, and what is said of each file that contradicts others."""

import posixpath
import struct
from collections.abc import Callable
from random import Random

import pytest

from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.checks.directory_check import ClusterFacts, DirectoryCheck, TopicFacts, check_together
from pykbroker.storage.checks.findings import Finding, FindingKind
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from tests.storage.batches import NOW_MS, batch, config, idempotent

TOPIC_ID = bytes(range(16))
PATH = "/data/one"
SETTINGS = config(segment_bytes=1500, index_interval_bytes=300)
CLUSTER = ClusterFacts({"t": TopicFacts(TOPIC_ID, is_compacted=False, partitions=frozenset({0, 1}))}, lambda data: None)


def write_directory(disk: SimulatedDisk, path: str = PATH, *, clean: bool = True, seed: int = 1) -> None:
    """Two partitions of several segments, epochs and producers."""
    format_directory(disk, path, cluster_id="cluster", node_id=1, rng=Random(seed))
    directory = LogDirectory.open(disk, path, rng=Random(seed))
    logs = [directory.open_log("t", index, TOPIC_ID, SETTINGS, now_ms=NOW_MS) for index in range(2)]
    for log in logs:
        for number in range(40):
            log.append_as_leader(idempotent(number * 2, 2, timestamp=NOW_MS + number), number // 20, NOW_MS)
        log.flush()
    directory.checkpoint_offsets()
    directory.checkpoint_high_watermarks({TopicPartition("t", index): 80 for index in range(2)})
    if clean:
        directory.close(broker_epoch=3)
    else:
        for log in logs:
            log.append_as_leader(batch(3), 1, NOW_MS)
        directory.release()


@pytest.fixture
def directory(disk: SimulatedDisk) -> str:
    write_directory(disk)
    return PATH


def check(disk: SimulatedDisk, path: str = PATH, cluster: ClusterFacts = CLUSTER) -> list[Finding]:
    return list(DirectoryCheck(disk, path, cluster, deep=True).run())


def damage(disk: SimulatedDisk, path: str = PATH, cluster: ClusterFacts = CLUSTER) -> list[Finding]:
    return [finding for finding in check(disk, path, cluster) if finding.is_damage]


def file(name: str, suffix: str = "") -> str:
    return posixpath.join(PATH, "t-0", name) + suffix


def change(disk: SimulatedDisk, path: str, edit: Callable[[bytes], bytes]) -> None:
    disk.replace_file(path, edit(disk.read_file(path)))


FIRST = "00000000000000000000"


def test_what_a_stopped_broker_leaves_is_sound(disk: SimulatedDisk, directory: str) -> None:
    checked = DirectoryCheck(disk, directory, CLUSTER, deep=True)
    assert list(checked.run()) == []
    report = checked.report.partitions[TopicPartition("t", 0)]
    assert (report.first_offset, report.log_end_offset, report.records, report.batches) == (0, 80, 80, 40)
    assert report.epochs == [(0, 0), (1, 40)]
    assert report.segments > 1


def test_a_torn_tail_behind_a_crash_is_a_note(disk: SimulatedDisk) -> None:
    write_directory(disk, clean=False)
    assert damage(disk) == []
    last = max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    change(disk, file(last), lambda data: data[:-3])
    assert damage(disk) == []
    (note,) = [finding for finding in check(disk) if finding.path == file(last)]
    assert note.offset == 80
    assert "the next start cuts it off" in note.what


def test_a_damaged_last_batch_is_no_torn_tail_where_the_machine_stayed_up(disk: SimulatedDisk) -> None:
    write_directory(disk, clean=False)
    last = max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    change(disk, file(last), flip(-3))
    (finding,) = damage(disk)
    assert (finding.kind, finding.offset) == (FindingKind.BATCH, 80)
    disk.replace_file(f"{PATH}/.boot-id", b"of another start of the machine")
    assert damage(disk) == []


def test_damage_below_the_recovery_point_is_damage_after_a_crash_too(disk: SimulatedDisk) -> None:
    write_directory(disk, clean=False)
    last = max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    change(disk, file(last), lambda data: data[:-260])
    (finding, *_) = damage(disk)
    assert finding.kind is FindingKind.BATCH


def flip(position: int, bits: int = 1) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        at = position % len(data)
        return data[:at] + bytes((data[at] ^ bits,)) + data[at + 1 :]

    return edit


DAMAGES: list[tuple[str, Callable[[bytes], bytes], FindingKind, str]] = [
    (file(FIRST, ".log"), flip(200), FindingKind.BATCH, "the checksum is"),
    (file(FIRST, ".log"), flip(7), FindingKind.BATCH, "the base offset is 1, the neighbours leave 0 for it"),
    (file(FIRST, ".log"), lambda data: data[:91] + data[182:], FindingKind.HOLE, "the offsets 2-3 are not there"),
    (file(FIRST, ".log"), lambda data: data + bytes(37), FindingKind.BATCH, "37 zero bytes"),
    (file(FIRST, ".index"), flip(3), FindingKind.INDEX, "offset"),
    (file(FIRST, ".index"), lambda data: b"garbage of 24 bytes, so." * 400, FindingKind.INDEX, "the offset"),
    (file(FIRST, ".index"), lambda data: data[:-1], FindingKind.INDEX, "7 bytes behind the last entry"),
    (file(FIRST, ".timeindex"), lambda data: data[:-12], FindingKind.INDEX, "the last timestamp is"),
    (file(FIRST, ".timeindex"), flip(7), FindingKind.INDEX, "the youngest record up to there has"),
    (file("00000000000000000080.snapshot"), flip(20), FindingKind.PRODUCERS, "the checksum is"),
    (file("leader-epoch-checkpoint"), lambda data: b"0\n1\n0 0\n", FindingKind.EPOCHS, "epoch 0 at offset 40"),
    (file("leader-epoch-checkpoint"), lambda data: b"0\n0\n", FindingKind.EPOCHS, "no epoch at offset 0"),
    (file("leader-epoch-checkpoint"), lambda data: data[:-3] + b"99\n", FindingKind.EPOCHS, "epoch 0 at offset 40"),
    (
        file("partition.metadata"),
        lambda data: f"version: 0\ntopic_id: {uuid_to_text(bytes(16))}".encode(),
        FindingKind.IDENTITY,
        "the topic id is AAAAAAAAAAAAAAAAAAAAAA, in the metadata it is AAECAwQFBgcICQoLDA0ODw",
    ),
    (
        f"{PATH}/recovery-point-offset-checkpoint",
        lambda data: b"0\n1\nt 0 81\n",
        FindingKind.LOST,
        "the log ends at 80, its recovery point is 81 (recovery-point-offset-checkpoint)",
    ),
    (
        f"{PATH}/replication-offset-checkpoint",
        lambda data: b"0\n2\nt 0 80\nt 1 99\n",
        FindingKind.LOST,
        "the log ends at 80, its high watermark is 99 (replication-offset-checkpoint)",
    ),
    (
        f"{PATH}/cleaner-offset-checkpoint",
        lambda data: b"0\n1\nt 1 81\n",
        FindingKind.OFFSETS,
        "t-1: the offset up to which it is compacted is 81, the log ends at 80",
    ),
    (f"{PATH}/replication-offset-checkpoint", lambda data: b"junk", FindingKind.OFFSETS, "line 1: the version"),
    (f"{PATH}/meta.properties", lambda data: b"", FindingKind.IDENTITY, "there is no version"),
]


@pytest.mark.parametrize(("path", "edit", "kind", "complaint"), DAMAGES, ids=range(len(DAMAGES)))
def test_what_is_wrong_is_said_of_the_file(
    disk: SimulatedDisk, directory: str, path: str, edit: Callable[[bytes], bytes], kind: FindingKind, complaint: str
) -> None:
    change(disk, path, edit)
    found = damage(disk)
    # A hole moves what is behind it, and the indexes do not know.
    others = {FindingKind.INDEX} if kind is FindingKind.HOLE else set()
    assert {finding.kind for finding in found} - others == {kind}
    places = {f"{PATH}/t-0", f"{PATH}/t-1"} if kind is FindingKind.LOST else {path}
    assert {finding.path for finding in found if finding.kind is kind} <= places
    assert any(complaint in finding.what for finding in found), found


def test_zeros_behind_the_end_of_a_log_are_a_tail(disk: SimulatedDisk, directory: str) -> None:
    last = max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    size = len(disk.read_file(file(last)))
    change(disk, file(last), lambda data: data + bytes(37))
    (finding,) = damage(disk)
    assert finding.kind is FindingKind.TAIL
    assert (finding.position, finding.end, finding.offset) == (size, size + 37, 80)


def test_files_that_are_missing_are_said(disk: SimulatedDisk, directory: str) -> None:
    disk.remove(file(FIRST, ".timeindex"))
    disk.remove(file("leader-epoch-checkpoint"))
    disk.remove(file("partition.metadata"))
    kinds = {(posixpath.basename(finding.path), finding.kind) for finding in damage(disk)}
    assert kinds == {
        (FIRST + ".timeindex", FindingKind.INDEX),
        ("leader-epoch-checkpoint", FindingKind.EPOCHS),
        ("partition.metadata", FindingKind.IDENTITY),
    }


def test_a_missing_segment_is_a_hole(disk: SimulatedDisk, directory: str) -> None:
    bases = sorted(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    assert len(bases) > 2
    for suffix in (".index", ".timeindex"):
        disk.remove(file(bases[1].removesuffix(".log") + suffix))
    disk.rename(file(bases[1]), "/data/aside.log")
    (finding,) = damage(disk)
    assert finding.kind is FindingKind.HOLE
    assert finding.path == file(bases[2])
    compacted = ClusterFacts(
        {"t": TopicFacts(TOPIC_ID, is_compacted=True, partitions=frozenset({0, 1}))}, lambda data: None
    )
    assert damage(disk, cluster=compacted) == []
    disk.replace_file(f"{PATH}/cleaner-offset-checkpoint", b"0\n1\nt 0 1\n")
    assert damage(disk) == [], "it was compacted once"


def test_a_missing_first_segment_is_told_by_the_epochs_and_by_its_indexes(disk: SimulatedDisk, directory: str) -> None:
    disk.remove(file(FIRST, ".log"))
    found = damage(disk)
    assert {finding.kind for finding in found} == {FindingKind.HOLE}
    assert f"it is missing, and {FIRST}.index is still there" in [finding.what for finding in found]
    assert "the log begins with it, and held offset 0 when it was closed" in [finding.what for finding in found]


def test_what_was_never_flushed_may_be_gone_with_the_machine(disk: SimulatedDisk) -> None:
    write_directory(disk, clean=False)
    disk.replace_file(f"{PATH}/replication-offset-checkpoint", b"0\n1\nt 0 99\n")
    (finding,) = damage(disk)
    assert finding.kind is FindingKind.LOST
    disk.replace_file(f"{PATH}/.boot-id", b"of another start of the machine")
    assert damage(disk) == []


def test_a_missing_last_segment_is_told_by_the_checkpoints(disk: SimulatedDisk, directory: str) -> None:
    last = max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".log"))
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(file(last.removesuffix(".log") + suffix))
    found = damage(disk)
    assert {finding.kind for finding in found} == {FindingKind.LOST, FindingKind.PRODUCERS}
    assert any(f"the log ends at {int(last[:20])}, its recovery point is 80" in finding.what for finding in found)


def test_a_log_without_segments_ends_where_offsets_begin(disk: SimulatedDisk, directory: str) -> None:
    for name in disk.list_directory(f"{PATH}/t-0"):
        if name != "partition.metadata":
            disk.remove(file(name))
    kinds = [(finding.kind, finding.offset) for finding in damage(disk)]
    assert kinds == [(FindingKind.LOST, 0)] * 2, "by the recovery point and by the high watermark"
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        disk.replace_file(f"{PATH}/{name}", b"0\n2\nt 0 0\nt 1 80\n")
    assert damage(disk) == [], "the next start makes it as it was"


def test_a_missing_partition_is_said_once_nobody_else_has_it(disk: SimulatedDisk, directory: str) -> None:
    disk.remove_directory(f"{PATH}/t-1")
    write_directory(disk, "/data/two", seed=2)
    one, two = (DirectoryCheck(disk, path, CLUSTER) for path in (PATH, "/data/two"))
    assert [finding for finding in one.run() if finding.is_damage] == []
    (finding,) = check_together(disk, [one.report])
    assert (finding.kind, finding.path) == (FindingKind.MISSING, f"{PATH}/t-1")
    assert [finding for finding in two.run() if finding.is_damage] == []
    (finding,) = check_together(disk, [one.report, two.report])
    assert finding.what == f"{PATH} has a log of the same partition"


def test_directories_of_different_nodes_are_told_apart(disk: SimulatedDisk, directory: str) -> None:
    format_directory(disk, "/data/two", cluster_id="other", node_id=2, rng=Random(3))
    format_directory(disk, "/data/three", cluster_id="cluster", node_id=1, rng=Random(1))
    checks = [DirectoryCheck(disk, path, CLUSTER) for path in (PATH, "/data/two", "/data/three")]
    for each in checks:
        list(each.run())
    found = [finding.what for finding in check_together(disk, [each.report for each in checks])]
    assert found == [
        f"cluster.id is other, in {PATH} it is cluster",
        f"node.id is 2, in {PATH} it is 1",
        f"{PATH} has the same directory.id: one of them is a copy",
    ]


def test_what_is_on_its_way_out_is_no_damage(disk: SimulatedDisk, directory: str) -> None:
    disk.make_directory(f"{PATH}/gone-0.{'0' * 32}-delete")
    disk.make_directory(f"{PATH}/old-0")
    disk.replace_file(f"{PATH}/notes.txt", b"")
    disk.replace_file(file(FIRST, ".log.deleted"), b"")
    disk.replace_file(file("00000000000000000099.index"), b"")
    found = [finding for finding in check(disk) if finding.kind is FindingKind.LEFTOVER]
    assert {finding.path: finding.what for finding in found} == {
        f"{PATH}/gone-0.{'0' * 32}-delete": "a deleted partition; the next start removes it",
        f"{PATH}/old-0": "no topic of the cluster has this replica",
        f"{PATH}/notes.txt": "nothing is known of it",
        file(FIRST, ".log.deleted"): "a segment that is not in use",
        file("00000000000000000099.index"): "an index without its segment",
    }
    assert damage(disk) == []


def test_preallocated_indexes_of_a_killed_kafka_are_sound(disk: SimulatedDisk) -> None:
    write_directory(disk, clean=False)
    last = max(name for name in disk.list_directory(f"{PATH}/t-0") if name.endswith(".index"))
    change(disk, file(last), lambda data: data + bytes(8 * 1000))
    change(disk, file(last.replace(".index", ".timeindex")), lambda data: data + bytes(12 * 1000))
    assert damage(disk) == []


def test_aborted_transactions_without_their_marker_are_said(disk: SimulatedDisk, directory: str) -> None:
    disk.replace_file(file(FIRST, ".txnindex"), struct.pack(">hqqqq", 0, 7, 2, 5, 6))
    (finding,) = damage(disk)
    assert "no transaction of producer 7 was aborted at offset 5" in finding.what


def write_aborted_transaction(disk: SimulatedDisk) -> None:
    """A directory with one segment, whose transaction index tells of an abort."""
    format_directory(disk, PATH, cluster_id="cluster", node_id=1, rng=Random(1))
    directory = LogDirectory.open(disk, PATH, rng=Random(1))
    log = directory.open_log("t", 0, TOPIC_ID, SETTINGS, now_ms=NOW_MS)
    marker = EndTransactionMarker(ControlRecordType.ABORT, coordinator_epoch=1)
    data = encode_batch([Record(b"key", b"")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    end = encode_end_transaction_batch(marker, producer_id=7, producer_epoch=0, timestamp=NOW_MS)
    log.append_as_follower(data + struct.pack(">q", 1) + end[8:])
    directory.close()


def test_an_aborted_transaction_that_the_index_lacks_is_said(disk: SimulatedDisk) -> None:
    write_aborted_transaction(disk)
    assert damage(disk) == []
    disk.remove(file(FIRST, ".txnindex"))
    (finding,) = damage(disk)
    assert (finding.offset, finding.what) == (1, "it lacks the transaction of producer 7 that was aborted there")


def test_every_flipped_byte_of_a_partition_is_found(disk: SimulatedDisk, directory: str) -> None:
    """Also what no checksum covers: leader epochs of last batches are told by the epoch checkpoint."""
    for name in disk.list_directory(f"{PATH}/t-0"):
        data = disk.read_file(file(name))
        for position in range(0, len(data), 41 if name.endswith(".log") else 11):
            disk.replace_file(file(name), flip(position, 0x55)(data))
            assert damage(disk), (name, position)
        disk.replace_file(file(name), data)
