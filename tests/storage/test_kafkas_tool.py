"""Apache Kafka's DumpLogSegments reads what we write, and finds nothing wrong with it."""

from pathlib import Path

import pytest

from compat_tests.apache_kafka.tools import Tool, run_tool
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.storage.disk import OsDisk
from pykbroker.storage.log import Log
from tests.storage.batches import NOW_MS, config, open_log
from tests.storage.cleaning import batches, clean

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


def test_kafka_finds_the_damage_that_we_find(tmp_path: Path) -> None:
    """The test above would be worth nothing if the tool never complained."""
    path = tmp_path / "t-0"
    write(path)
    index = sorted(path.glob("*.index"))[0]
    data = bytearray(index.read_bytes())
    data[3] ^= 1  # the relative offset of the first entry
    index.write_bytes(data)
    assert "Mismatches in" in dump_log_segments("--verify-index-only", "--files", str(index))


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
