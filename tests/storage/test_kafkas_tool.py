"""Apache Kafka's DumpLogSegments reads what we write, and finds nothing wrong with it."""

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from compat_tests.apache_kafka.tools import Tool, run_tool
from pykbroker.cli.main import main
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.log.log import Log
from tests.storage.batches import NOW_MS, config, open_log
from tests.storage.cleaning import batches, clean
from tests.storage.transactions import Transactions

pytestmark = pytest.mark.java


def dump_log_segments(*arguments: str) -> str:
    """What it says, and on standard error what it complains about."""
    output = run_tool(Tool.DUMP_LOG_SEGMENTS, *arguments)
    return output.stdout + output.stderr


def write(path: Path) -> Log:
    """Every codec, an idempotent producer, several segments with index entries."""
    log = open_log(OsDisk(), str(path), config(segment_bytes=6000, index_interval_bytes=500))
    sequence = 0
    for number in range(60):
        codec = list(Compression)[number % 5]
        records = [
            Record(b"key %d" % index, b"value " * 20, (("h", b"x"),), NOW_MS + 10 * number + index)
            for index in range(10)
        ]
        data = encode_batch(records, compression=codec, producer_id=9, producer_epoch=1, base_sequence=sequence)
        log.append_as_leader(data, number // 20, NOW_MS)
        sequence += 10
    log.close()
    return log


def files(path: Path, suffix: str) -> str:
    found = sorted(str(file) for file in path.glob(f"*{suffix}") if file.stat().st_size)
    assert found
    return ",".join(found)


def test_segments_indexes_and_snapshots_are_sound(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = write(path)
    assert len(log.segments) > 3

    segments = dump_log_segments("--deep-iteration", "--print-data-log", "--files", files(path, ".log"))
    assert segments.count("isvalid: true") == 60
    assert "isvalid: false" not in segments
    assert segments.count("| offset: ") == 600
    assert "| offset: 599 " in segments
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec}" in segments
    assert "payload: value value" in segments

    indexes = files(path, ".index") + "," + files(path, ".timeindex")
    checked = dump_log_segments("--index-sanity-check", "--files", indexes)
    assert checked.count("passed sanity check") == len(indexes.split(","))
    compared = dump_log_segments("--verify-index-only", "--files", indexes)
    for complaint in ("Mismatches in", "Found timestamp mismatch", "Found out of order", "Index timestamp"):
        assert complaint not in compared

    snapshots = dump_log_segments("--files", files(path, ".snapshot"))
    assert "producerId: 9 producerEpoch: 1 coordinatorEpoch: -1" in snapshots
    assert "lastSequence: 599 lastOffset: 599 offsetDelta: 9" in snapshots


def test_its_batches_and_records_are_those_that_our_dump_shows(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    write(path)
    segments = files(path, ".log")
    theirs = dump_log_segments("--deep-iteration", "--print-data-log", "--files", segments)
    ours = CliRunner().invoke(main, ["dump", "--json", "--records", "--files", segments])
    assert ours.exit_code == 0
    shown = [json.loads(line) for line in ours.stdout.splitlines()]
    batches = [
        f"baseOffset: {each['base_offset']} lastOffset: {each['last_offset']} count: {each['records_count']} "
        f"baseSequence: {each['base_sequence']} lastSequence: {each['last_sequence']} "
        f"producerId: {each['producer_id']} producerEpoch: {each['producer_epoch']} "
        f"partitionLeaderEpoch: {each['leader_epoch']} isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: {each['position']} CreateTime: {each['max_timestamp']} "
        f"size: {each['size']} magic: 2 compresscodec: {each['compression']} crc: {each['crc']} isvalid: true"
        for each in shown
        if each["type"] == "batch"
    ]
    assert len(batches) == 60
    assert [line for line in theirs.splitlines() if line.startswith("baseOffset: ")] == batches
    records = [
        f"| offset: {each['offset']} CreateTime: {each['timestamp']} keySize: {len(each['key'])} "
        f"valueSize: {len(each['value'])} sequence: {each['sequence']} headerKeys: [h] "
        f"key: {each['key']} payload: {each['value']}"
        for each in shown
        if each["type"] == "record"
    ]
    assert len(records) == 600
    assert [line for line in theirs.splitlines() if line.startswith("| offset: ")] == records


def test_kafka_finds_the_damage_that_we_find(tmp_path: Path) -> None:
    """The test above would be worth nothing if the tool never complained."""
    path = tmp_path / "t-0"
    write(path)
    index = sorted(path.glob("*.index"))[0]
    data = bytearray(index.read_bytes())
    data[3] ^= 1  # the relative offset of the first entry
    index.write_bytes(data)
    assert "Mismatches in" in dump_log_segments("--verify-index-only", "--files", str(index))


def test_transaction_indexes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = open_log(OsDisk(), str(path), config(cleanup_policy="compact", index_interval_bytes=300))
    transactions = Transactions(log)
    transactions.go_on_at_random(Random(1), 100)
    log.roll(NOW_MS)
    clean(OsDisk(), log, stable=transactions.stable_offset)
    expected = [each for segment in log.segments for each in segment.transaction_index.entries()]
    assert len(expected) > 3
    log.close()
    shown = dump_log_segments("--files", files(path, ".txnindex"))
    for each in expected:
        assert (
            f"version: 0 producerId: {each.producer_id} firstOffset: {each.first_offset} "
            f"lastOffset: {each.last_offset} lastStableOffset: {each.last_stable_offset}" in shown
        )
    assert shown.count("version: ") == len(expected)


def test_cleaned_segments_are_sound(tmp_path: Path) -> None:
    """Rewritten batches of every codec, delete horizons, empty batches, and indexes of several segments in one."""
    path = tmp_path / "t-0"
    settings = config(cleanup_policy="compact", segment_bytes=6000, index_interval_bytes=500)
    log = open_log(OsDisk(), str(path), settings)
    for number in range(120):
        codec = list(Compression)[number % 5]
        records = [
            Record(b"key %d" % ((number + index * index) % 50), None if index == 4 else b"value " * 20, (), NOW_MS)
            for index in range(5)
        ]
        data = encode_batch(
            records, compression=codec, producer_id=number % 7, producer_epoch=1, base_sequence=number // 7 * 5
        )
        log.append_as_leader(data, 0, NOW_MS)
    size_before = log.size_bytes
    clean(OsDisk(), log)
    assert log.size_bytes < size_before // 2
    cleaned = [bool(batch.header.has_delete_horizon) for batch in batches(log)]
    assert True in cleaned
    assert any(not batch.header.records_count for batch in batches(log))
    log.close()

    segments = dump_log_segments("--deep-iteration", "--print-data-log", "--files", files(path, ".log"))
    assert segments.count("isvalid: true") == len(cleaned)
    assert "isvalid: false" not in segments
    assert segments.count("| offset: ") == sum(batch.header.records_count for batch in batches(log))
    assert segments.count(f"deleteHorizonMs: OptionalLong[{NOW_MS + log.config.delete_retention_ms}]") == sum(cleaned)
    indexes = files(path, ".index") + "," + files(path, ".timeindex")
    compared = dump_log_segments("--verify-index-only", "--files", indexes)
    for complaint in ("Mismatches in", "Found timestamp mismatch", "Found out of order", "Index timestamp"):
        assert complaint not in compared
