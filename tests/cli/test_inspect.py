"""`pykbroker inspect` on files as the broker and Kafka write them, and on files that are damaged."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pykbroker.cli.main import main
from pykbroker.protocol.compile import encode
from pykbroker.protocol.framing import encode_request, encode_response
from pykbroker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.messages.groups import HeartbeatRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.metadata_records import TopicRecord
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker, encode_end_transaction_batch

SEGMENT = "00000000000000000100.log"


def inspect(*arguments: str | Path, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(main, ["inspect", *map(str, arguments)], input=stdin)


def write(directory: Path, name: str, data: bytes) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(data)
    return path


def two_batches() -> tuple[bytes, bytes]:
    first = [Record(b"k1", b"hello", [("h", b"1")], 1_700_000_000_000), Record(None, None, (), 1_700_000_000_001)]
    second = [Record(b"\x00\xff", b"x" * 100, (), 1_700_000_000_002)]
    return (
        encode_batch(first, base_offset=100, compression=Compression.ZSTD),
        encode_batch(second, base_offset=102, producer_id=7, producer_epoch=1, base_sequence=5),
    )


def test_a_segment_shows_its_batches(tmp_path: Path) -> None:
    first, second = two_batches()
    result = inspect(write(tmp_path / "t-0", SEGMENT, first + second))
    assert result.exit_code == 0
    one, two = result.output.splitlines()
    assert one.startswith("@0 offsets 100-101  2 records")
    assert "zstd  crc ok" in one
    assert "create_time 2023-11-14T22:13:20.001Z" in one
    assert two.startswith(f"@{len(first)} offsets 102-102  1 records")
    assert "producer 7 epoch 1 sequence 5" in two


def test_records_are_shown_when_asked_for_and_bytes_that_are_no_text_in_hexadecimal(tmp_path: Path) -> None:
    result = inspect("--records", write(tmp_path / "t-0", SEGMENT, b"".join(two_batches())))
    assert '  100  2023-11-14T22:13:20.000Z  key "k1"  value "hello"  headers "h"="1"' in result.output
    assert "  101  2023-11-14T22:13:20.001Z  key null  value null\n" in result.output
    assert f'key 00ff  value "{"x" * 48}"… 52 more bytes' in result.output


def test_a_wrong_checksum_is_shown_and_a_torn_tail_is_an_error_after_what_is_whole(tmp_path: Path) -> None:
    first, second = two_batches()
    damaged = bytearray(first + second[:-5])
    damaged[17] ^= 0xFF
    result = inspect(write(tmp_path / "t-0", SEGMENT, bytes(damaged)))
    assert result.exit_code == 1
    assert "crc WRONG" in result.output
    assert f"at byte {len(first)}: a batch of {len(second)} bytes, {len(second) - 5} are left" in result.output


def test_records_of_the_metadata_log_are_shown_as_what_they_mean(tmp_path: Path) -> None:
    record = b"\x01\x02\x00" + encode(TopicRecord(name="orders", topic_id=bytes(range(16))), 0)
    unknown = b"\x01\x7f\x00"
    batch = encode_batch([Record(None, record, (), 0), Record(None, unknown, (), 0)])
    result = inspect(write(tmp_path / "__cluster_metadata-0", SEGMENT, batch))
    assert "TopicRecord v0\n    name: orders\n    topic_id: AAECAwQFBgcICQoLDA0ODw\n" in result.output
    assert "not understood" in result.output


def test_records_of_the_group_coordinator_are_shown_as_what_they_mean(tmp_path: Path) -> None:
    key = b"\x00\x01" + encode(OffsetCommitKey(group="g", topic="t", partition=3), 0)
    value = b"\x00\x03" + encode(OffsetCommitValue(offset=42, metadata="m"), 3)
    batch = encode_batch([Record(key, value, (), 0), Record(key, None, (), 0)])
    result = inspect(write(tmp_path / "__consumer_offsets-7", SEGMENT, batch))
    assert "OffsetCommit v3\n    group: g\n    topic: t\n    partition: 3\n    offset: 42\n" in result.output
    assert "OffsetCommit tombstone" in result.output


def test_control_records_are_named(tmp_path: Path) -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, coordinator_epoch=9)
    batch = encode_end_transaction_batch(marker, producer_id=1, producer_epoch=0, timestamp=5)
    result = inspect(write(tmp_path / "t-0", SEGMENT, batch))
    assert "transactional  control\n" in result.output
    assert "  commit\n    version: 0\n    coordinator_epoch: 9\n" in result.output


def test_indexes_show_absolute_offsets_and_stop_where_kafka_has_filled_up(tmp_path: Path) -> None:
    offsets = struct.pack(">iiii", 5, 4096, 9, 8192) + bytes(800)
    result = inspect(write(tmp_path, "00000000000000000100.index", offsets))
    assert result.output == "@0 offset 105  position 4096\n@8 offset 109  position 8192\n"
    times = struct.pack(">qi", 1_700_000_000_000, 3) + bytes(120)
    result = inspect(write(tmp_path, "00000000000000000100.timeindex", times))
    assert result.output == "@0 timestamp 1700000000000 (2023-11-14T22:13:20.000Z)  offset 103\n"
    aborted = struct.pack(">hqqqq", 0, 7, 100, 110, 111)
    result = inspect(write(tmp_path, "00000000000000000100.txnindex", aborted))
    assert result.output == "@0 producer 7  offsets 100-110  last stable offset 111\n"


@pytest.mark.parametrize("as_hex", [False, True])
def test_requests_are_shown_from_binary_and_from_hexadecimal(as_hex: bool) -> None:
    data = encode_request(HeartbeatRequest(group_id="g\x1b[31m", generation_id=3), 4, 17, "me")
    data += encode_request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12, 18, None)
    result = inspect("-", stdin=data.hex(" ").encode() if as_hex else data)
    assert result.exit_code == 0
    assert result.output.startswith('@0 HeartbeatRequest v4  correlation id 17  client "me"\n  group_id: g\\x1b[31m\n')
    assert "MetadataRequest v12  correlation id 18  client null\n" in result.output
    assert "  topics:\n    - topic_id: AAAAAAAAAAAAAAAAAAAAAA\n      name: t\n" in result.output


def test_responses_are_shown_with_the_batches_in_them(tmp_path: Path) -> None:
    partition = PartitionData(partition_index=4, error_code=3, records=two_batches()[1])
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[partition])])
    data = b"".join(part for part in encode_response(5, response, 16) if isinstance(part, bytes))
    result = inspect("--response", "fetch:16", write(tmp_path, "captured", data + b"\x00"))
    assert "@0 FetchResponse v16  correlation id 5\n" in result.output
    assert "error_code: 3 UNKNOWN_TOPIC_OR_PARTITION\n" in result.output
    assert "offsets 102-102  1 records" in result.output
    assert result.exit_code == 1
    assert f"at byte {len(data)}: 1 bytes, too few for a frame" in result.output


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_has_a_frame_a_line(tmp_path: Path) -> None:
    heartbeat = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = encode_request(heartbeat, 4, 7, "c")
    [shown] = objects(inspect("--json", "-", stdin=frame))
    assert (shown["message"], shown["version"], shown["correlation_id"]) == ("HeartbeatRequest", 4, 7)
    assert (shown["client_id"], shown["file"], shown["garbage"]) == ("c", "-", "")
    assert (shown["fields"]["group_id"], shown["fields"]["generation_id"]) == ("g", 3)
    assert objects(inspect("--json", "-", stdin=frame.hex().encode())) == [shown]
    batches = b"".join(two_batches())
    partition = PartitionData(partition_index=0, high_watermark=1, records=batches)
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[partition])])
    data = b"".join(part for part in encode_response(9, response, 16) if isinstance(part, bytes))
    [shown] = objects(inspect("--json", "--response", "Fetch:16", write(tmp_path, "frames", data)))
    assert shown["correlation_id"] == 9
    assert "client_id" not in shown
    assert b64decode(shown["fields"]["responses"][0]["partitions"][0]["records"]["base64"]) == batches


def test_json_of_a_file_of_a_log_directory_is_that_of_dump(tmp_path: Path) -> None:
    segment = write(tmp_path / "t-0", SEGMENT, b"".join(two_batches()))
    result = inspect("--json", "--records", segment)
    assert [each["type"] for each in objects(result)] == ["batch", "record", "record", "batch", "record"]
    segment.write_bytes(segment.read_bytes()[:-3])
    torn = inspect("--json", segment)
    assert torn.exit_code == 1
    assert [each["type"] for each in objects(torn)] == ["batch", "finding"]
    assert torn.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "stdin", "complaint"),
    [
        (["--response", "Fetch:99", "-"], b"", "Fetch has no version '99', only 4-18"),
        (["--response", "Nothing:1", "-"], b"", "there is no API 'Nothing'"),
        (["/does/not/exist"], b"", "No such file or directory"),
        ([], b"", "Missing argument"),
        (["-"], struct.pack(">ihhi", 8, 999, 0, 1), "there is no API key 999"),
        (["-"], struct.pack(">ihhi", 8, 1, 99, 1), "FetchRequest has no version 99, only 4-18"),
        (["-"], struct.pack(">ihhi", 8, 1, 4, 1), "at byte 0"),
        (["-"], b"abc", "hexadecimal digits that do not come in pairs"),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_exit_code_1(arguments: list[str], stdin: bytes, complaint: str) -> None:
    result = inspect(*arguments, stdin=stdin)
    assert result.exit_code == 1
    assert complaint in result.output
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
