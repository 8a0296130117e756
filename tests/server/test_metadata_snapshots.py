"""The metadata log with its snapshots: what a start finds, whatever was removed, damaged or cut off."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.compile import encode
from pykbroker.protocol.messages.control_records import KRaftVersionRecord, VotersRecord, VotersRecordVoter
from pykbroker.protocol.messages.metadata_records import PartitionRecord, TopicRecord
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches
from pykbroker.protocol.records.control import ControlRecordType, encode_control_key
from pykbroker.protocol.schema import Message
from pykbroker.raft.election_state import ElectionState, InvalidQuorumState
from pykbroker.raft.epochs import EpochChain
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.quorum.metadata_snapshots import MetadataSnapshots
from pykbroker.server.quorum.snapshot_format import (
    BATCH_RECORDS,
    InvalidSnapshot,
    QuorumRecords,
    decode_snapshot,
    encode_snapshot,
)
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.errors import CorruptLog, NoRoom
from pykbroker.storage.segments.log_config import LogConfig
from tests.cluster.oracles.resources import census
from tests.storage.power_cut import FragileDisk, PowerCut

DIRECTORY = "/data/__cluster_metadata-0"
CONFIG = LogConfig(segment_bytes=400, retention_bytes=-1, retention_ms=-1)
NOW_MS = 1_700_000_000_000
SNAPSHOT = SnapshotId(8, 3)


def open_log(disk: Disk, directory: str = DIRECTORY, *, now_ms: int = NOW_MS) -> MetadataLog:
    return MetadataLog.open(disk, directory, CONFIG, clean_shutdown=False, now_ms=now_ms)


def topic_records(number: int) -> list[Message]:
    topic_id = number.to_bytes(16, "big")
    return [
        TopicRecord(name=f"topic-{number}", topic_id=topic_id),
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1),
    ]


def write_topics(log: MetadataLog, numbers: Sequence[int], *, epoch: int = 1) -> None:
    for number in numbers:
        log.append_records(topic_records(number), epoch, NOW_MS + number)
    log.flush()


def replayed(log: MetadataLog) -> MetadataImage:
    image = MetadataImage()
    for offset, message in log.read():
        image.replay(message, offset)
    return image


def image_of(numbers: Sequence[int]) -> MetadataImage:
    image = MetadataImage()
    for number in numbers:
        for record in topic_records(number):
            image.replay(record, 0)
    return image


def take_snapshot(log: MetadataLog, image: MetadataImage) -> SnapshotId:
    head = log.begin_snapshot(image.offset, NOW_MS)
    log.write_snapshot(head, image.view().records())
    return head.id


def with_two_snapshots(directory: Path) -> tuple[SnapshotId, SnapshotId]:
    """Topics 0 to 9 in the log; the snapshots cover five, and eight of them."""
    log = open_log(OsDisk(), str(directory))
    write_topics(log, range(5))
    first = take_snapshot(log, replayed(log))
    write_topics(log, range(5, 8), epoch=2)
    log.abandon()
    log = open_log(OsDisk(), str(directory))
    second = take_snapshot(log, replayed(log))
    write_topics(log, range(8, 10), epoch=3)
    log.abandon()
    return first, second


def damage(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    data[len(data) // 2] ^= 1
    Path(path).write_bytes(data)


# The bytes


def test_a_snapshot_is_read_as_it_was_written_in_batches_of_a_thousand() -> None:
    messages = [message for number in range(BATCH_RECORDS) for message in topic_records(number)]
    data = b"".join(encode_snapshot(messages, epoch=3, timestamp_ms=5, now_ms=6))
    snapshot = decode_snapshot(data)
    assert list(snapshot.messages) == messages
    assert snapshot.timestamp_ms == 5
    counts = [(batch.header.records_count, batch.header.partition_leader_epoch) for batch in iter_batches(data)]
    assert counts == [(1, 3), (BATCH_RECORDS, 3), (BATCH_RECORDS, 3), (1, 3)]


def test_the_quorums_own_records_stand_beside_the_header_as_they_came() -> None:
    quorum = QuorumRecords()
    value = encode(KRaftVersionRecord(kraft_version=1), 0)
    quorum.note(Record(encode_control_key(ControlRecordType.KRAFT_VERSION), value))
    quorum.note(Record(encode_control_key(ControlRecordType.LEADER_CHANGE), b"not of the voters"))
    data = b"".join(encode_snapshot([], epoch=0, timestamp_ms=0, now_ms=0, quorum=quorum))
    assert decode_snapshot(data).quorum == quorum
    assert [batch.header.records_count for batch in iter_batches(data)] == [2, 1]


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_snapshot_that_lost_a_batch_is_refused(lost: int) -> None:
    messages = [message for number in range(BATCH_RECORDS) for message in topic_records(number)]
    portions = list(encode_snapshot(messages, epoch=3, timestamp_ms=5, now_ms=6))
    with pytest.raises(InvalidSnapshot):
        decode_snapshot(b"".join(portions[:lost] + portions[lost + 1 :]))


# The start


def test_a_start_with_a_snapshot_gives_what_the_whole_log_gives(tmp_path: Path) -> None:
    _, second = with_two_snapshots(tmp_path)
    log = open_log(OsDisk(), str(tmp_path))
    image = replayed(log)
    assert image == image_of(range(10))
    assert image.offset == log.end_offset - 1 == 19
    assert log.snapshots.ids[-1] == second == SnapshotId(16, 2)
    log.abandon()


def test_the_log_in_front_of_the_latest_snapshot_is_not_needed(tmp_path: Path) -> None:
    _, second = with_two_snapshots(tmp_path)
    log = open_log(OsDisk(), str(tmp_path))
    log.remove(log.begin_at(second, NOW_MS))
    assert 0 < log.size_bytes < 1000
    log.abandon()

    assert [path.name for path in tmp_path.glob("*.checkpoint")] == ["00000000000000000016-0000000002.checkpoint"]
    log = open_log(OsDisk(), str(tmp_path))
    assert 0 < log.start_offset <= 16
    assert replayed(log) == image_of(range(10))
    assert log.last_epoch == 3
    log.abandon()


def test_a_log_that_began_at_a_snapshot_within_a_segment_begins_there_again(tmp_path: Path) -> None:
    """What is in front of it in the segment has an epoch that nobody knows any more."""
    log = open_log(OsDisk(), str(tmp_path))
    write_topics(log, range(3), epoch=1)
    write_topics(log, range(3, 7), epoch=2)
    image = replayed(log)
    snapshot = take_snapshot(log, image)
    write_topics(log, range(7, 9), epoch=2)
    log.remove(log.begin_at(snapshot, NOW_MS))
    log.flush()
    log.close()
    again = MetadataLog.open(OsDisk(), str(tmp_path), CONFIG, clean_shutdown=True, now_ms=NOW_MS)
    assert again.start_offset == snapshot.end_offset
    assert EpochChain.of_log(again).epoch_before(snapshot.end_offset) == snapshot.epoch == 2
    assert replayed(again) == image_of(range(9))
    again.abandon()


def test_a_log_that_ends_before_its_snapshot_begins_anew_behind_it(tmp_path: Path) -> None:
    """As after the loss of the log's files, or in a follower that took the leader's snapshot."""
    _, second = with_two_snapshots(tmp_path)
    for path in tmp_path.glob("*.log"):
        path.unlink()
    for _ in range(2):
        log = open_log(OsDisk(), str(tmp_path))
        assert (log.start_offset, log.end_offset, log.last_epoch) == (16, 16, 2)
        assert replayed(log) == image_of(range(8))
        log.abandon()
    assert open_log(OsDisk(), str(tmp_path)).snapshots.ids == [second]


def test_a_damaged_snapshot_is_set_aside_where_the_log_has_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = with_two_snapshots(tmp_path)
    log = open_log(OsDisk(), str(tmp_path))
    log.remove(log.begin_at(first, NOW_MS))
    path = log.snapshots.path(second)
    damage(path)
    log.abandon()

    log = open_log(OsDisk(), str(tmp_path))
    assert replayed(log) == image_of(range(10))
    assert log.snapshots.ids == [first]
    log.abandon()
    assert f"{path} is damaged" in caplog.text
    assert Path(path + ".damaged").exists()


def test_all_snapshots_may_be_damaged_while_the_log_goes_back_to_the_first_record(tmp_path: Path) -> None:
    with_two_snapshots(tmp_path)
    for path in tmp_path.glob("*.checkpoint"):
        damage(str(path))
    log = open_log(OsDisk(), str(tmp_path))
    assert replayed(log) == image_of(range(10))
    assert not log.snapshots.ids
    log.abandon()


def test_a_damaged_snapshot_whose_log_is_gone_is_refused_and_left_alone(tmp_path: Path) -> None:
    _, second = with_two_snapshots(tmp_path)
    log = open_log(OsDisk(), str(tmp_path))
    log.remove(log.begin_at(second, NOW_MS))
    path = log.snapshots.path(second)
    damage(path)
    log.abandon()
    with pytest.raises(CorruptLog, match=r"0016-0000000002\.checkpoint: .* the metadata can't be put together"):
        open_log(OsDisk(), str(tmp_path))
    assert Path(path).exists()


def test_an_older_snapshot_does_not_stand_in_for_records_that_nobody_has(tmp_path: Path) -> None:
    """The log ends between the two: taking the older one would lose the topics that only the newer one has."""
    _, second = with_two_snapshots(tmp_path)
    damage(str(tmp_path / "00000000000000000016-0000000002.checkpoint"))
    for path in tmp_path.glob("*.log"):
        path.unlink()
    with pytest.raises(CorruptLog, match=str(second.end_offset)):
        open_log(OsDisk(), str(tmp_path))


def damaged_copies(data: bytes) -> Iterator[bytes]:
    """One bit of each byte flipped, and every length that is too short."""
    for at in range(len(data)):
        yield data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
        yield data[:at]


@pytest.mark.parametrize("has_whole_log", [True, False])
def test_a_snapshot_damaged_at_any_byte_never_gives_other_metadata(has_whole_log: bool) -> None:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/data")
    log = open_log(disk)
    write_topics(log, range(2))
    snapshot = take_snapshot(log, replayed(log))
    write_topics(log, range(2, 4))
    if not has_whole_log:
        log.remove(log.begin_at(snapshot, NOW_MS))
    log.close()
    path = log.snapshots.path(snapshot)
    whole = disk.read_file(path)
    refusals: list[str] = []
    for data in damaged_copies(whole):
        disk.replace_file(path, data)
        try:
            log = open_log(disk)
        except CorruptLog as error:
            refusals.append(str(error))
            continue
        assert replayed(log) == image_of(range(4))
        assert log.last_epoch == 1
        log.close()
        assert disk.exists(path) or has_whole_log
    assert all(path in refusal for refusal in refusals)
    # The epochs in the headers of the three batches are under no checksum, and nobody reads them.
    assert len(refusals) == (0 if has_whole_log else 2 * len(whole) - 3 * 4)


def test_a_log_without_its_beginning_and_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    _, second = with_two_snapshots(tmp_path)
    log = open_log(OsDisk(), str(tmp_path))
    log.remove(log.begin_at(second, NOW_MS))
    Path(log.snapshots.path(second)).unlink()
    log.abandon()
    with pytest.raises(CorruptLog, match=r"the log begins at \d+, and no snapshot covers what was before it"):
        open_log(OsDisk(), str(tmp_path))


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_snapshot_that_is_put_out_of_use_while_a_thread_describes_it_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """The leader's snapshot comes, and older ones go, in the midst of a cleaning."""
    log = open_log(OsDisk(), f"{tmp_path}/log")
    write_topics(log, range(4))
    for snapshot_id in (SnapshotId(4, 1), SnapshotId(8, 1)):
        log.write_snapshot(log.begin_snapshot(snapshot_id.end_offset - 1, NOW_MS), [])
    older, latest = log.snapshots.ids
    read_file, rename = OsDisk.read_file, OsDisk.rename

    def forget() -> None:
        if older in log.snapshots.ids:
            log.snapshots.forget_before(latest)

    def forget_and_read(disk: OsDisk, path: str) -> bytes:
        if is_damaged:
            return read_file(disk, path)[: -1 if path == log.snapshots.path(older) else None]
        forget()
        return read_file(disk, path)

    def forget_and_rename(disk: OsDisk, source: str, target: str) -> None:
        monkeypatch.setattr(OsDisk, "rename", rename)
        forget()
        rename(disk, source, target)

    monkeypatch.setattr(OsDisk, "read_file", forget_and_read)
    if is_damaged:
        monkeypatch.setattr(OsDisk, "rename", forget_and_rename)
    assert [each.id for each in log.snapshots.describe()] == [latest]


def test_nothing_is_kept_of_a_snapshot_that_was_put_out_of_use_while_a_thread_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(OsDisk(), f"{tmp_path}/log")
    write_topics(log, range(4))
    for snapshot_id in (SnapshotId(4, 1), SnapshotId(8, 1)):
        log.write_snapshot(log.begin_snapshot(snapshot_id.end_offset - 1, NOW_MS), [])
    latest = log.snapshots.ids[-1]
    read_file = OsDisk.read_file

    def read_and_forget(disk: OsDisk, path: str) -> bytes:
        data = read_file(disk, path)
        log.snapshots.forget_before(latest)
        return data

    monkeypatch.setattr(OsDisk, "read_file", read_and_forget)
    log.snapshots.describe()
    log.snapshots.forget_before(latest)
    assert census(log.snapshots)["MetadataSnapshots._described"] == len(log.snapshots.ids) == 1


def test_what_was_half_written_or_half_deleted_is_removed(tmp_path: Path) -> None:
    first, second = with_two_snapshots(tmp_path)
    leftovers = [
        tmp_path / "00000000000000000018-0000000003.checkpoint.part",
        tmp_path / "00000000000000000018-0000000003-1234567.checkpoint.part",  # Kafka's name
        tmp_path / "00000000000000000002-0000000001.checkpoint.deleted",
    ]
    for path in leftovers:
        path.write_bytes(b"half")
    log = open_log(OsDisk(), str(tmp_path))
    assert log.snapshots.ids == [first, second]
    assert not any(path.exists() for path in leftovers)
    log.abandon()


def test_voters_of_a_quorum_with_dynamic_ones_stay_in_later_snapshots(tmp_path: Path) -> None:
    """Apache Kafka leaves them in a snapshot that covers no record (KIP-853)."""
    quorum = QuorumRecords()
    quorum.note(Record(encode_control_key(ControlRecordType.KRAFT_VERSION), b"version"))
    quorum.note(Record(encode_control_key(ControlRecordType.KRAFT_VOTERS), b"voters"))
    at_first = tmp_path / "00000000000000000000-0000000000.checkpoint"
    at_first.write_bytes(b"".join(encode_snapshot([], epoch=0, timestamp_ms=0, now_ms=0, quorum=quorum)))
    log = open_log(OsDisk(), str(tmp_path))
    write_topics(log, range(3))
    changed = Record(encode_control_key(ControlRecordType.KRAFT_VOTERS), b"other voters")
    log.append_batch(encode_batch([changed], base_offset=6, partition_leader_epoch=1, is_control=True))
    log.flush()
    log.abandon()
    log = open_log(OsDisk(), str(tmp_path))
    latest = take_snapshot(log, replayed(log))
    quorum.note(changed)
    assert log.snapshots.read(latest).quorum == quorum
    log.abandon()
    damage(str(at_first))
    open_log(OsDisk(), str(tmp_path)).abandon()
    Path(log.snapshots.path(latest)).unlink()
    with pytest.raises(CorruptLog, match=r"0000-0000000000\.checkpoint"):
        open_log(OsDisk(), str(tmp_path))


# The quorum


def test_the_log_of_a_larger_quorum_is_refused(tmp_path: Path) -> None:
    log = open_log(OsDisk(), str(tmp_path))
    log.store_election(ElectionState(3), [1, 2, 3])
    with pytest.raises(InvalidQuorumState, match=r"a metadata quorum of the nodes 1, 2, 3, and .* for one of 1:"):
        log.read_election([1])
    assert log.read_election([3, 2, 1]) == ElectionState(3)
    log.abandon()


def test_the_voters_of_a_dynamic_quorum_are_those_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":1}')
    voters = VotersRecord(voters=[VotersRecordVoter(voter_id=voter_id) for voter_id in (1, 2)])
    quorum = QuorumRecords()
    quorum.note(Record(encode_control_key(ControlRecordType.KRAFT_VOTERS), encode(voters, 0)))
    at_first = tmp_path / "00000000000000000000-0000000000.checkpoint"
    at_first.write_bytes(b"".join(encode_snapshot([], epoch=0, timestamp_ms=0, now_ms=0, quorum=quorum)))
    log = open_log(OsDisk(), str(tmp_path))
    assert log.read_election([1]) == ElectionState(3, leader_id=1)
    ((_, record),) = log.control_records()
    assert isinstance(record, VotersRecord)
    assert [each.voter_id for each in record.voters] == [1, 2]
    log.store_election(ElectionState(4, voted_id=2, voted_directory_id=bytes(range(16))), [1, 2], kraft_version=1)
    assert (tmp_path / "quorum-state").read_text() == (
        '{"leaderId":-1,"leaderEpoch":4,"votedId":2,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}'
    )
    assert log.read_election([]) == ElectionState(4, voted_id=2, voted_directory_id=bytes(range(16)))
    log.abandon()


def test_a_quorum_state_behind_the_log_gives_way_to_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As Apache Kafka does it."""
    log = open_log(OsDisk(), str(tmp_path))
    write_topics(log, range(2), epoch=7)
    log.store_election(ElectionState(5, voted_id=1), [1])
    assert log.read_election([1]) == ElectionState(7)
    assert "is of epoch 5, the log of 7" in caplog.text
    log.abandon()


# Writing


def test_a_full_disk_leaves_no_part_of_a_snapshot_and_the_log_as_it_was() -> None:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/data")
    log = open_log(disk)
    write_topics(log, range(5))
    image = replayed(log)
    disk.free_bytes = 100
    with pytest.raises(NoRoom, match="No space left"):
        take_snapshot(log, image)
    assert not any("checkpoint" in name and "leader" not in name for name in disk.list_directory(DIRECTORY))
    disk.free_bytes = None
    assert take_snapshot(log, image) == SnapshotId(10, 1)


def live(disk: FragileDisk, acknowledged: list[int], until: int) -> None:
    """Topics one after another; a snapshot after every third, whereupon what came before the latest one goes."""
    log = open_log(disk)
    image = replayed(log)
    for number in range(len(image.topics), until):
        write_topics(log, [number])
        acknowledged.append(number)
        for at, record in enumerate(topic_records(number), log.end_offset - 2):
            image.replay(record, at)
        if number % 3 == 2:
            take_snapshot(log, image)
            if len(log.snapshots.ids) > 1:
                log.remove(log.begin_at(log.snapshots.ids[-1], NOW_MS))
    log.close()


def test_a_crash_at_any_operation_of_snapshot_and_cleaning_loses_nothing() -> None:
    cuts = 0
    for seed in range(2):
        operations = 0
        while True:
            disk = FragileDisk(Random(1000 * seed + operations))
            disk.make_directory("/data")
            disk.sync_directory("/")
            disk.operations_left = operations
            acknowledged: list[int] = []
            try:
                live(disk, acknowledged, 12)
            except PowerCut:
                disk.crash()
            else:
                break
            found = replayed(open_log(disk))
            count = len(found.topics)
            assert len(acknowledged) <= count <= len(acknowledged) + 1, f"seed {seed}, operation {operations}"
            assert found == image_of(range(count))
            live(disk, acknowledged, 15)
            assert replayed(open_log(disk)) == image_of(range(15))
            operations += 1
        cuts += operations
    assert cuts > 200


def snapshot_portions() -> list[bytes]:
    return list(encode_snapshot(topic_records(1), epoch=3, timestamp_ms=5, now_ms=6))


def write_own(snapshots: MetadataSnapshots) -> None:
    snapshots.write(SNAPSHOT, snapshot_portions())


def take_from_leader(snapshots: MetadataSnapshots) -> None:
    data = b"".join(snapshot_portions())
    for position in range(0, len(data), 100):
        snapshots.write_chunk(SNAPSHOT, position, data[position : position + 100])
    snapshots.complete(SNAPSHOT)


@pytest.mark.parametrize("store", [write_own, take_from_leader])
def test_a_snapshot_that_has_its_name_is_whole_whenever_the_power_fails_and_stays(
    store: Callable[[MetadataSnapshots], None],
) -> None:
    for seed in range(20):
        operations = 0
        is_stored = False
        while not is_stored:
            disk = FragileDisk(Random(1000 * seed + operations))
            for directory in ("/data", DIRECTORY):
                disk.make_directory(directory)
                disk.sync_directory(posixpath.dirname(directory))
            disk.operations_left = operations
            try:
                store(MetadataSnapshots(disk, DIRECTORY))
                is_stored = True
            except PowerCut:
                pass
            disk.crash()
            found = MetadataSnapshots(disk, DIRECTORY)
            assert found.ids == [SNAPSHOT] or not (found.ids or is_stored)
            for each in found.ids:
                assert list(found.read(each).messages) == topic_records(1)
            operations += 1
