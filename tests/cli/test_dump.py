"""`pykbroker dump` on every kind of file, sound and damaged in every way; `DumpLogSegments` is compared elsewhere."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from crc32c import crc32c

from pykbroker.cli import dump as dump_command
from pykbroker.cli.main import main
from pykbroker.metadata.records import encode_record
from pykbroker.protocol.compile import encode
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.messages.metadata_records import ConfigRecord, TopicRecord, UserScramCredentialRecord
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch
from pykbroker.server.quorum.bootstrap_checkpoint import write_bootstrap_checkpoint
from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from pykbroker.storage.log.log import Log
from tests.legacy_messages import wrapper
from tests.storage.batches import NOW_MS, config, idempotent, open_log

SEGMENT = "00000000000000000100.log"


def dump(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["dump", *map(str, arguments)])


def write(directory: Path, name: str, data: bytes) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(data)
    return path


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def findings(result: Result) -> list[str]:
    return [line.strip().removeprefix("! ") for line in result.stdout.splitlines() if line.startswith("  ! ")]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Several segments with index entries and a snapshot, stopped cleanly."""
    log = open_log(OsDisk(), str(tmp_path / "t-0"), config(segment_bytes=2000, index_interval_bytes=300))
    for number in range(40):
        log.append_as_leader(idempotent(number * 2, 2, timestamp=NOW_MS + number), number // 20, NOW_MS)
    log.close()
    return log


def test_nothing_is_wrong_with_a_log_as_it_is_written(log: Log) -> None:
    result = dump(log.directory, "--deep-iteration")
    assert result.exit_code == 0, result.output
    assert findings(result) == []
    for line in (
        "00000000000000000000.index: offset index",
        "00000000000000000000.timeindex: time index",
        "00000000000000000080.snapshot: producer snapshot",
        "leader-epoch-checkpoint: leader epoch checkpoint",
        "epoch 1  start_offset 40",
    ):
        assert line in result.stdout


def test_a_segment_shows_batches_and_records(tmp_path: Path) -> None:
    records = [Record(b"k1", b"hello", [("h", b"1")], 1_700_000_000_000), Record(b"\x00\xff", None, (), 1)]
    data = encode_batch(records, base_offset=100, compression=Compression.ZSTD, producer_id=7, base_sequence=2**31 - 1)
    path = write(tmp_path / "t-0", SEGMENT, data)
    (line,) = dump(path).stdout.splitlines()
    assert line.startswith("@0 offsets 100-101  2 records")
    assert "zstd  crc ok  leader epoch -1  create_time 2023-11-14T22:13:20.000Z  producer 7" in line
    shown = dump(path, "--print-data-log").stdout
    assert '  100  2023-11-14T22:13:20.000Z  key "k1"  value "hello"  headers "h"="1"\n' in shown
    assert "key 00ff  value null\n" in shown
    assert '  key "k1"  value "hello"  headers "h"="1"\n' in dump(path, "--records", "--skip-record-metadata").stdout
    _, batch, first, second = objects(dump(path, "--records", "--json"))
    assert (batch["type"], batch["base_offset"], batch["last_sequence"], batch["crc"]) == (
        "batch",
        100,
        0,
        int.from_bytes(data[17:21], "big"),
    )
    assert (first["key"], first["headers"], first["sequence"]) == ("k1", [["h", "1"]], 2**31 - 1)
    assert (second["key"], second["value"], second["sequence"]) == ({"base64": "AP8="}, None, 0)


def test_long_values_are_cut_unless_they_are_wanted(tmp_path: Path) -> None:
    path = write(tmp_path / "t-0", SEGMENT, encode_batch([Record(None, b"x" * 100)], base_offset=100))
    assert f'value "{"x" * 48}"… 52 more bytes' in dump(path, "--records").stdout
    assert f'value "{"x" * 100}"\n' in dump(path, "--records", "--full").stdout


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    batch = encode_batch([Record(b"\x1b[31m", b"\x07", [("\x1b", b"\x1b")])], base_offset=100)
    write(tmp_path / "t-0", SEGMENT, batch)
    write(tmp_path / "t-0", "leader-epoch-checkpoint", b"0\n1\n\x1b[31m 1\n")
    write(tmp_path / "t-0", "quorum-state", b"\x1b[31m")
    for options in ([], ["--json"]):
        assert "\x1b" not in dump(tmp_path, "--records", *options).output


def test_records_of_kafkas_own_topics_are_shown_as_what_they_mean(tmp_path: Path) -> None:
    topic = b"\x01\x02\x00" + encode(TopicRecord(name="orders", topic_id=bytes(range(16))), 0)
    batch = encode_batch([Record(None, topic), Record(None, b"\x01\x7f\x00")], base_offset=100)
    path = write(tmp_path / "__cluster_metadata-0", SEGMENT, batch)
    result = dump(path)
    assert "TopicRecord v0\n    name: orders\n    topic_id: AAECAwQFBgcICQoLDA0ODw\n" in result.stdout
    assert "not understood" in result.stdout

    key = b"\x00\x01" + encode(OffsetCommitKey(group="g", topic="t", partition=3), 0)
    value = b"\x00\x03" + encode(OffsetCommitValue(offset=42, metadata="m"), 3)
    batch = encode_batch([Record(key, value), Record(key, None)], base_offset=100)
    path = write(tmp_path / "__consumer_offsets-7", SEGMENT, batch)
    assert "OffsetCommit v3\n    group: g\n    topic: t\n    partition: 3\n    offset: 42\n" in dump(path).stdout
    assert "OffsetCommit tombstone" in dump(path).stdout
    elsewhere = write(tmp_path / "copied", SEGMENT, batch)
    assert "OffsetCommit" not in dump(elsewhere, "--records").stdout
    _, _, first, _ = objects(dump(elsewhere, "--offsets-decoder", "--json"))
    assert first["content_of_key"] == {"group": "g", "topic": "t", "partition": 3}
    assert first["content"]["offset"] == 42


def test_messages_of_old_formats_show_their_records(tmp_path: Path) -> None:
    records = [Record(b"key", b"value %d" % number, (), NOW_MS, 100 + number) for number in range(3)]
    path = write(tmp_path / "t-0", SEGMENT, wrapper(records, 1, Compression.GZIP))
    result = dump(path, "--records")
    assert result.exit_code == 0, result.output
    head, *shown = result.stdout.splitlines()
    assert head.startswith("@0 offset 102  ")
    assert head.endswith("crc ok  format 1")
    assert [line.split()[0] for line in shown] == ["100", "101", "102"]
    assert len(objects(dump(path, "--json", "--records"))) == 5


def test_control_records_are_named(tmp_path: Path) -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, coordinator_epoch=9)
    batch = encode_end_transaction_batch(marker, producer_id=1, producer_epoch=0, timestamp=5)
    result = dump(write(tmp_path / "t-0", "00000000000000000000.log", batch))
    assert "transactional  control\n" in result.stdout
    assert "commit v0\n    coordinator_epoch: 9\n" in result.stdout


def test_every_flipped_byte_of_every_file_is_survived_and_most_are_found(log: Log) -> None:
    """Whatever the bytes: no traceback. What no checksum, no neighbour and no second file tells is left."""
    unseen: dict[str, int] = {}
    for path in sorted(Path(log.directory).iterdir())[:5] + sorted(Path(log.directory).iterdir())[-2:]:
        data = path.read_bytes()
        for position in range(0, len(data), 23 if path.suffix == ".log" else 5):
            path.write_bytes(data[:position] + bytes((data[position] ^ 0x55,)) + data[position + 1 :])
            result = dump(path, "--json", "--deep-iteration")
            assert result.exit_code in (0, 1)
            assert result.exception is None or isinstance(result.exception, SystemExit), (path, position)
            unseen[path.suffix] = unseen.get(path.suffix, 0) + (result.exit_code == 0)
        path.write_bytes(data)
    # Only the leader epoch of a segment's last batch has neither.
    assert unseen[".log"] <= 2
    assert unseen[".index"] == unseen[".timeindex"] == unseen[".snapshot"] == 0


def test_offset_and_limit_start_in_the_middle(log: Log) -> None:
    path = Path(log.directory, "00000000000000000000.log")
    batches = [each["base_offset"] for each in objects(dump(path, "--json"))[1:]]
    assert batches[:3] == [0, 2, 4]
    for offset in (0, 1, 7, 15):
        found = objects(dump(path, "--json", "--offset", str(offset), "--limit", "2"))[1:]
        assert [each["base_offset"] for each in found] == [offset // 2 * 2, offset // 2 * 2 + 2]
    path.with_suffix(".index").write_bytes(b"\x00\x00\x00\x03\x00\x00\x00\x05" * 3)
    found = objects(dump(path, "--json", "--offset", "7", "--limit", "1"))[1:]
    assert [each["base_offset"] for each in found] == [6]
    size = objects(dump(path, "--json"))[1]["size"]
    assert len(objects(dump(path, "--json", "--max-bytes", str(3 * size)))) == 4
    index = objects(dump(path.with_suffix(".timeindex"), "--json", "--offset", "5", "--limit", "1"))[1:]
    assert len(index) == 1
    assert index[0]["offset"] >= 5


def damage_index(data: bytes) -> bytes:
    return data[:3] + bytes((data[3] ^ 1,)) + data[4:]


def snapshot(*entries: bytes, version: int = 1) -> bytes:
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", version, crc32c(body)) + body


ENTRY = struct.pack(">qhiqiqiq", 7, 0, 3, 103, 3, NOW_MS, -1, -1)

DAMAGES: list[tuple[str, bytes, str]] = [
    ("00000000000000000100.index", struct.pack(">ii", 5, 4096) + b"\x01", "at byte 8: 1 bytes behind the last entry"),
    ("00000000000000000100.index", struct.pack(">iiii", 5, 4096, 5, 8192), "at byte 8: the offset 105 follows 105"),
    ("00000000000000000100.index", struct.pack(">iiii", 5, 4096, 6, 96), "at byte 8: the position 96 follows 4096"),
    ("00000000000000000100.index", struct.pack(">ii", -5, 4096), "an entry for offset 95 at position 4096"),
    ("index.index", b"", "an index is named after"),
    ("00000000000000000100.timeindex", struct.pack(">qiqi", 9, 1, 8, 2), "at byte 12: the timestamp 8 follows 9"),
    ("00000000000000000100.timeindex", struct.pack(">qiqi", 9, 2, 10, 1), "at byte 12: the offset 101 follows 102"),
    ("00000000000000000100.txnindex", struct.pack(">hqqqq", 1, 7, 100, 110, 111), "the unknown version 1"),
    ("00000000000000000100.txnindex", struct.pack(">hqqqq", 0, 7, 110, 100, 111), "a transaction from 110 to 100"),
    ("00000000000000000100.snapshot", b"", "0 bytes, too few for a snapshot"),
    ("00000000000000000100.snapshot", snapshot(ENTRY)[:-1], "1 entries are announced, which take 56 bytes"),
    ("00000000000000000100.snapshot", snapshot(ENTRY, version=2), "the version is 2, not 1"),
    ("00000000000000000100.snapshot", snapshot(ENTRY, ENTRY), "a second entry for producer 7"),
    ("recovery-point-offset-checkpoint", b"0\n2\nt 0 5\n", "line 2: '2' entries are announced, 1 are there"),
    ("replication-offset-checkpoint", b"1\n1\nt 0 5\n", "line 1: the version is '1', not 0"),
    ("log-start-offset-checkpoint", b"0\n1\nt 5\n", "line 3: 't 5' is not a topic, a partition and an offset"),
    ("cleaner-offset-checkpoint", b"0\n2\nt 0 5\nt 0 6\n", "line 4: a second entry for t-0"),
    ("cleaner-offset-checkpoint", b"0\n1\nt 0 5", "the last line is cut off"),
    ("recovery-point-offset-checkpoint", b"\xff\xfe", "at byte 0: not text in UTF-8"),
    ("leader-epoch-checkpoint", b"0\n2\n3 10\n2 20\n", "line 4: epoch 2 from 20 on follows epoch 3 from 10 on"),
    ("leader-epoch-checkpoint", b"0\n1\nx 10\n", "line 3: 'x 10' is not an epoch and the offset where it begins"),
    ("partition.metadata", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "line 1: 'version: 1' instead of"),
    ("partition.metadata", b"version: 0\ntopic_id: no", "line 2: 'topic_id: no' instead of topic_id and an id"),
    ("meta.properties", b"version=1\nnode.id=x\ncluster.id=c\n", "node.id is 'x', not the number of a node"),
    ("meta.properties", b"version=1\nnode.id=1\n", "there is no cluster.id"),
    ("quorum-state", b"{", "quorum-state is not JSON"),
    ("quorum-state", b'{"leaderEpoch":-1,"data_version":0}', "negative leaderEpoch"),
    ("bootstrap.checkpoint", encode_batch([Record(None, b"")]), "the snapshot has no footer"),
    ("00000000000000000005-0000000003.checkpoint", b"garbage", "too few for a batch"),
]


@pytest.mark.parametrize(("name", "data", "complaint"), DAMAGES, ids=range(len(DAMAGES)))
def test_what_is_wrong_is_said(tmp_path: Path, name: str, data: bytes, complaint: str) -> None:
    result = dump(write(tmp_path / "t-0", name, data))
    assert result.exit_code == 1
    assert any(complaint in finding for finding in findings(result)), result.output
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: ")


SOUND: list[tuple[str, bytes, str]] = [
    ("00000000000000000100.index", struct.pack(">ii", 5, 4096) + bytes(795), "@0 offset 105  position 4096\n"),
    (
        "00000000000000000100.timeindex.deleted",
        struct.pack(">qi", 1_700_000_000_000, 3) + bytes(120),
        "@0 timestamp 1700000000000 (2023-11-14T22:13:20.000Z)  offset 103\n",
    ),
    (
        "00000000000000000100.txnindex",
        struct.pack(">hqqqq", 0, 7, 100, 110, 111),
        "@0 producer 7  offsets 100-110  last stable offset 111\n",
    ),
    ("00000000000000000104.snapshot", snapshot(ENTRY), "@10 producer 7  epoch 0  last sequence 3  last offset 103"),
    ("recovery-point-offset-checkpoint", b"0\n1\nt 0 5\n", "topic t  partition 0  offset 5\n"),
    ("replication-offset-checkpoint", b"", ""),
    (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":4}', "brokerEpoch 4\n"),
    (".kafka_cleanshutdown", b"", ""),
    ("meta.properties", b"#\nversion=1\nnode.id=1\ncluster.id=c\n", "cluster.id c"),
]


@pytest.mark.parametrize(("name", "data", "shown"), SOUND, ids=range(len(SOUND)))
def test_what_is_sound_is_shown(tmp_path: Path, name: str, data: bytes, shown: str) -> None:
    result = dump(write(tmp_path / "t-0", name, data))
    assert result.exit_code == 0, result.output
    assert shown in result.stdout
    as_json = dump(tmp_path / "t-0" / name, "--json")
    assert as_json.exit_code == 0
    assert all(each["file"].endswith(name) for each in objects(as_json))


def test_a_snapshot_of_the_metadata_log_is_whole_with_its_footer(tmp_path: Path) -> None:
    write_bootstrap_checkpoint(OsDisk(), str(tmp_path), [TopicRecord(name="orders")], NOW_MS)
    result = dump(tmp_path / "bootstrap.checkpoint")
    assert result.exit_code == 0, result.output
    for shown in ("snapshot_header v0", "TopicRecord v0", "snapshot_footer v0"):
        assert shown in result.stdout


def test_an_index_is_compared_with_the_log_beside_it(log: Log) -> None:
    index = Path(log.directory, "00000000000000000000.index")
    index.write_bytes(damage_index(index.read_bytes()))
    result = dump(index, "--index-sanity-check")
    assert result.exit_code == 1
    assert all(line.startswith("  ! at byte 0") for line in result.stdout.splitlines())
    times = index.with_suffix(".timeindex")
    data = bytearray(times.read_bytes())
    data[7] -= 1
    times.write_bytes(data)
    (finding,) = findings(dump(times))
    assert f"the youngest record up to there has {data[7] + 1 + (NOW_MS >> 8 << 8)}" in finding


def test_only_one_file_of_many_is_damaged(log: Log) -> None:
    damaged = Path(log.directory, "leader-epoch-checkpoint")
    damaged.write_bytes(b"0\n7\n")
    result = dump(log.directory, "--only-findings")
    assert result.exit_code == 1
    assert result.stderr == f"Error: 1 finding in {damaged}\n"


def test_where_nothing_is_wrong_one_line_says_so(log: Log) -> None:
    result = dump(log.directory, "--only-findings")
    files = len(list(Path(log.directory).iterdir()))
    assert (result.exit_code, result.stdout) == (0, f"Nothing is wrong in {files} files\n")
    result = dump(log.directory, "--only-findings", "--json")
    assert (result.exit_code, result.stdout) == (0, "")


def test_of_files_without_a_finding_not_even_the_name_is_shown(log: Log) -> None:
    damaged = Path(log.directory, "leader-epoch-checkpoint")
    damaged.write_bytes(b"0\n7\n")
    result = dump(log.directory, "--only-findings")
    first, *rest = result.stdout.splitlines()
    assert first == f"{damaged}: leader epoch checkpoint"
    assert [line.startswith("  ! ") for line in rest] == [True]
    [finding] = objects(dump(log.directory, "--only-findings", "--json"))[1:]
    assert (finding["type"], finding["file"]) == ("finding", str(damaged))


def test_an_empty_file_says_that_it_is_empty(tmp_path: Path) -> None:
    segment = write(tmp_path / "t-0", SEGMENT, b"")
    assert dump(segment).stdout == "  (empty)\n"
    assert dump(segment, "--limit", "3").stdout == ""
    assert objects(dump(segment, "--json")) == [{"type": "file", "file": str(segment), "kind": "segment"}]


def test_of_a_directory_one_topic_is_shown_in_the_order_of_its_partitions(tmp_path: Path) -> None:
    for name in ("t-10", "t-9", "t-9-0", "other-0", "__cluster_metadata-0"):
        write(tmp_path / name, "leader-epoch-checkpoint", b"0\n0\n")
    shown = [each["file"] for each in objects(dump(tmp_path, "--topic", "t", "--json"))]
    assert shown == [str(tmp_path / name / "leader-epoch-checkpoint") for name in ("t-9", "t-10")]
    metadata = objects(dump(tmp_path, "--topic", "__cluster_metadata", "--json"))
    assert [Path(each["file"]).parent.name for each in metadata] == ["__cluster_metadata-0"]
    missing = dump(tmp_path, "--topic", "orders")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr == f"Error: There is no partition of 'orders' below {tmp_path}\n"


def test_a_file_that_cannot_be_read_does_not_hide_the_others(log: Log) -> None:
    segment = Path(log.directory, "00000000000000000000.log")
    segment.unlink()
    segment.symlink_to("nowhere")
    result = dump(log.directory)
    assert result.exit_code == 1
    assert "! cannot open it: No such file or directory" in result.stdout
    assert "epoch 1  start_offset 40" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Missing argument"),
        (["/does/not/exist"], "/does/not/exist: No such file or directory"),
        (["--offset", "-1", "x"], "-1"),
        (["--offsets-decoder", "--cluster-metadata-decoder", __file__], "only one decoder can be used"),
        ([__file__], "the name is none of a log directory's files"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments: list[str], complaint: str) -> None:
    result = dump(*arguments)
    assert result.exit_code == 1
    assert complaint in result.stderr
    assert result.output.count("\n") == 1


def test_a_large_file_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No read is larger than a chunk or a batch."""
    batches = [encode_batch([Record(None, bytes(100_000))], base_offset=offset) for offset in range(100)]
    path = write(tmp_path / "t-0", "00000000000000000000.log", b"".join(batches))
    largest = 0
    read_at = OsDiskFile.read_at

    def noting(file: OsDiskFile, position: int, size: int) -> bytes:
        nonlocal largest
        largest = max(largest, size)
        return read_at(file, position, size)

    monkeypatch.setattr(OsDiskFile, "read_at", noting)
    assert dump(path).exit_code == 0
    assert 0 < largest <= 1 << 20


@pytest.mark.parametrize("flags", [(), ("--json",), ("--print-data-log", "--json"), ("--print-data-log",)])
@pytest.mark.parametrize("is_cut", [False, True])
def test_the_keys_of_users_are_not_shown(tmp_path: Path, flags: tuple[str, ...], is_cut: bool) -> None:
    keys = {name: f"{name} in clear".encode() for name in ("salt", "stored_key", "server_key")}
    record = UserScramCredentialRecord(name="alice", mechanism=1, iterations=4096, **keys)
    value = encode_record(record)
    if is_cut:
        value = value[:-1]
    batch = encode_batch([Record(key=None, value=value, timestamp=NOW_MS)])
    directory = tmp_path / "__cluster_metadata-0"
    result = dump(write(directory, "00000000000000000000.log", batch), *flags)
    assert "in clear" not in result.output
    assert "[hidden]" in result.output
    if not is_cut:
        assert "UserScramCredentialRecord" in result.output
        assert "alice" in result.output
        assert "4096" in result.output


@pytest.mark.parametrize("flags", [(), ("--json",), ("--records", "--json", "--full")])
@pytest.mark.parametrize("prefix", ["", "listener.name.x.plain."])
def test_passwords_among_the_configurations_are_not_shown(tmp_path: Path, flags: tuple[str, ...], prefix: str) -> None:
    secret = ConfigRecord(resource_type=4, resource_name="1", name=f"{prefix}sasl.jaas.config", value="in clear")
    other = ConfigRecord(resource_type=4, resource_name="1", name="log.retention.ms", value="12345")
    records = [Record(key=None, value=encode_record(each), timestamp=NOW_MS) for each in (secret, other)]
    directory = tmp_path / "__cluster_metadata-0"
    result = dump(write(directory, "00000000000000000000.log", encode_batch(records)), *flags)
    assert "in clear" not in result.output
    assert "[hidden]" in result.output
    assert "sasl.jaas.config" in result.output
    assert "12345" in result.output


@pytest.mark.parametrize("flags", [[], ["--only-findings"]], ids=["into a file", "findings alone"])
def test_a_terminal_sees_how_much_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    batches = [encode_batch([Record(None, bytes(600_000))], base_offset=offset) for offset in range(5)]
    path = write(tmp_path / "t-0", "00000000000000000000.log", b"".join(batches))
    drawn: list[int] = []

    @contextmanager
    def recorded(what: str, total: int, beside: str) -> Iterator[Callable[[int], None]]:
        drawn.append(-total)
        yield drawn.append

    monkeypatch.setattr(dump_command, "progress", recorded)
    assert not dump(*flags, path).exit_code
    assert not drawn, "a pipe sees nothing"
    monkeypatch.setattr(dump_command, "is_terminal", lambda stream: True)
    assert not dump(*flags, path).exit_code
    assert sum(drawn) == 0
    assert len(drawn) > 2
