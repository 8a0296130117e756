"""`pykbroker verify`: its words, its exit codes, and its refusal of directories that are in use."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from pykbroker.cli.main import main
from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.records import encode_record
from pykbroker.protocol.messages.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.schema import Message
from pykbroker.server.quorum.metadata_log import METADATA_TOPIC_ID, MetadataLog
from pykbroker.storage.directories.log_dirs import LOCK_FILE, LogDirectory, format_directory
from pykbroker.storage.directories.partition_metadata import write_topic_id
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.segments.log_config import LogConfig
from tests.storage.batches import NOW_MS, batch, config, open_log

TOPIC_ID = bytes(range(16))


def verify(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


METADATA: list[Message] = [
    TopicRecord(name="t", topic_id=TOPIC_ID),
    PartitionRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[1], isr=[1], leader=1),
]


def append_metadata(path: Path, *messages: Message) -> None:
    log = open_log(OsDisk(), str(path / "__cluster_metadata-0"), LogConfig())
    for message in messages:
        log.append_as_leader(encode_batch([Record(None, encode_record(message), (), NOW_MS)]), 1, NOW_MS)
    log.close()
    write_topic_id(OsDisk(), log.directory, METADATA_TOPIC_ID, sync=True)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    format_directory(OsDisk(), str(path), cluster_id="cluster", node_id=1, rng=Random(1))
    opened = LogDirectory.open(OsDisk(), str(path), rng=Random(1))
    log = opened.open_log("t", 0, TOPIC_ID, config(segment_bytes=1500, index_interval_bytes=300), now_ms=NOW_MS)
    for _ in range(40):
        log.append_as_leader(batch(2), 0, NOW_MS)
    append_metadata(path, *METADATA)
    opened.close()
    return path


def damage(path: Path, position: int = 200) -> Path:
    segment = path / "t-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[position] ^= 1
    segment.write_bytes(data)
    return segment


def test_a_sound_directory_is_called_sound(directory: Path) -> None:
    result = verify(directory)
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    assert line.startswith("2 partitions, ")
    assert line.endswith("bytes: sound")
    assert "82 records" in line


def test_damage_is_one_line_with_file_position_and_offset(directory: Path) -> None:
    segment = damage(directory)
    result = verify(directory)
    assert result.exit_code == 1
    first, last = result.stdout.splitlines()
    assert first.startswith(f"! {segment}: at byte ")
    assert "(offset 4): the checksum is" in first
    assert "sound" not in last
    assert result.stderr == f"Error: 1 finding in {segment.parent}\n"


def test_scripts_get_objects(directory: Path) -> None:
    segment = damage(directory)
    *findings, summary = [json.loads(line) for line in verify("--json", directory).stdout.splitlines()]
    assert [(each["file"], each["kind"], each["offset"]) for each in findings] == [(str(segment), "batch", 4)]
    assert summary["type"] == "summary"
    assert (summary["partitions"], summary["findings"], summary["damaged"]) == (2, 1, 1)


def test_what_is_repaired_is_told_step_by_step_and_is_sound_then(directory: Path) -> None:
    index = directory / "t-0" / "00000000000000000000.index"
    index.write_bytes(b"garbage!" * 3)
    checkpoint = directory / "replication-offset-checkpoint"
    checkpoint.write_bytes(b"junk")
    result = verify("--repair", directory)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert sum(line.startswith("! ") for line in lines) >= 2
    assert f"+ {index.with_suffix('')}.*index: made anew from the log" in lines
    assert f"+ {checkpoint}: written anew with 0 entries" in lines
    assert lines[-1].endswith(": sound")
    assert verify(directory).stdout.splitlines() == lines[-1:]


def test_damaged_batches_are_taken_out_by_salvage_alone(directory: Path) -> None:
    segment = damage(directory)
    before = segment.read_bytes()
    result = verify("--repair", directory)
    assert result.exit_code == 1
    assert result.stdout.count(f"! {segment}: at byte ") == 2
    assert segment.read_bytes() == before
    result = verify("--salvage", "--json", directory)
    assert result.exit_code == 0, result.output
    steps = [each["what"] for each in map(json.loads, result.stdout.splitlines()) if each["type"] == "step"]
    assert f"{segment}: an empty batch stands for the offsets 4-5" in steps
    (kept,) = segment.parent.glob("*.damaged")
    assert kept.read_bytes() in before
    assert verify(directory).exit_code == 0


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, bytes(100), b"0\n-1\n", b"\x02" * 500])
def test_no_file_however_it_is_damaged_ends_in_a_traceback(directory: Path, tmp_path: Path, content: bytes) -> None:
    (directory / "__cluster_metadata-0" / "quorum-state").write_bytes(b"{}")
    (directory / "__cluster_metadata-0" / "odd.checkpoint").write_bytes(b"")
    (directory / "__cluster_metadata-0" / "odd.log").write_bytes(b"")
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        copy = tmp_path / "copy"
        shutil.copytree(directory, copy)
        (copy / path.relative_to(directory)).write_bytes(content)
        for options in ([], ["--salvage"]):
            result = verify(*options, copy)
            assert result.exit_code in (0, 1)
            assert result.exception is None or isinstance(result.exception, SystemExit), (path, result.exception)
        shutil.rmtree(copy)


def test_nothing_is_written(directory: Path) -> None:
    damage(directory)
    (directory / "t-0" / "leader-epoch-checkpoint").write_bytes(b"junk")

    def state() -> dict[str, tuple[float, bytes]]:
        return {str(path): (path.stat().st_mtime, path.read_bytes()) for path in directory.rglob("*") if path.is_file()}

    before = state()
    assert verify("--deep", directory).exit_code == 1
    assert state() == before


def test_topics_are_compared_with_the_metadata(directory: Path) -> None:
    (directory / "t-0" / "partition.metadata").write_bytes(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
    result = verify(directory)
    assert "the topic id is AAAAAAAAAAAAAAAAAAAAAA, in the metadata it is AAECAwQFBgcICQoLDA0ODw" in result.stdout


def test_a_hole_is_right_where_a_topic_is_compacted(directory: Path) -> None:
    segment = directory / "t-0" / "00000000000000000000.log"
    size = len(batch(2))
    segment.write_bytes(segment.read_bytes()[:size] + segment.read_bytes()[2 * size :])
    segment.with_suffix(".index").write_bytes(b"")
    assert "the offsets 2-3 are not there, and the topic is not compacted" in verify(directory).stdout
    append_metadata(directory, ConfigRecord(resource_type=2, resource_name="t", name="cleanup.policy", value="compact"))
    result = verify(directory)
    assert result.exit_code == 0, result.output
    assert "no metadata log" not in result.stdout


def test_the_metadata_log_may_begin_with_a_snapshot_within_a_segment(directory: Path) -> None:
    append_metadata(directory, *(ConfigRecord(resource_type=4, name="a", value=str(each)) for each in range(20)))
    path = str(directory / "__cluster_metadata-0")
    small = LogConfig(segment_bytes=200, retention_ms=-1)
    log = MetadataLog.open(OsDisk(), path, small, clean_shutdown=True, now_ms=NOW_MS)
    image = MetadataImage()
    for offset, message in log.read():
        image.replay(message, offset)
    for number in range(3):
        log.append_records([ConfigRecord(resource_type=4, name="b", value=str(number))], 2, NOW_MS)
    head = log.begin_snapshot(log.end_offset - 3, NOW_MS)
    log.write_snapshot(head, image.records())
    log.prepare_cleaning()
    log.remove(log.begin_at(head.id, NOW_MS))
    log.close()
    first = min(int(segment.stem) for segment in Path(path).glob("*.log"))
    assert 0 < first < head.id.end_offset
    result = verify(directory)
    assert result.exit_code == 0, result.output
    assert "no metadata log" not in result.stdout


def test_without_metadata_less_is_compared_and_that_is_said(directory: Path) -> None:
    (directory / "__cluster_metadata-0").rename(directory.parent / "elsewhere")
    result = verify(directory)
    assert result.exit_code == 0, result.output
    assert "no metadata log that can be read" in result.stdout


def test_what_is_worth_knowing_can_be_left_out(directory: Path) -> None:
    (directory / "notes.txt").write_text("")
    assert f"- {directory}/notes.txt: nothing is known of it" in verify(directory).stdout
    assert "notes.txt" not in verify("--quiet", directory).stdout


def test_a_directory_in_use_is_refused(directory: Path) -> None:
    lock = OsDisk().lock(str(directory / LOCK_FILE))
    result = verify(directory)
    lock.release()
    assert result.exit_code == 1
    assert result.output == (
        f"Error: the log directory {directory} is in use by another process, which is not visible from here: "
        "stop the broker first\n"
    )
    assert verify(directory).exit_code == 0
    (directory / LOCK_FILE).unlink()
    assert verify(directory).exit_code == 0
    assert not (directory / LOCK_FILE).exists()


def test_what_is_no_log_directory_is_one_line(directory: Path, tmp_path: Path) -> None:
    for path, complaint in (
        (tmp_path / "nothing", "No such file or directory"),
        (directory / "meta.properties", "not a directory"),
        (directory / "t-0", "is a partition's directory"),
        (Path(__file__).parent, "is not a log directory"),
    ):
        result = verify(path)
        assert result.exit_code == 1
        assert complaint in result.output
        assert result.output.count("\n") == 1


def test_control_characters_do_not_reach_the_terminal(directory: Path) -> None:
    os.mkdir(directory / "\x1b[31m")
    (directory / "meta.properties").write_bytes(b"version=\x1b\nnode.id=\x1b\ncluster.id=c\n")
    for options in ([], ["--json"]):
        assert "\x1b" not in verify(directory, *options).stdout
