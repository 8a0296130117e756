"""The sparse logs of the benchmarks are what brokers are told that they are: whole, with true indexes, and small."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.sparse_logs import BLOCK_BYTES, SparseLog, write_recovery_points
from pykbroker.protocol.records.batch import RecordBatchHeader, decode_batch_header, iter_batches, iter_records
from pykbroker.storage.checks.partition_check import PartitionCheck, PartitionFacts
from pykbroker.storage.files.disk import OsDisk

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def log() -> SparseLog:
    return SparseLog(segments=3, first_ms=FIRST_MS, segment_blocks=4)


def test_a_check_of_every_record_and_index_entry_finds_nothing(log: SparseLog, tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    log.write(tmp_path)
    facts = PartitionFacts(was_clean_shutdown=True, recovery_point=log.end_offset, high_watermark=log.end_offset)
    check = PartitionCheck(OsDisk(), str(tmp_path), facts, deep=True)
    assert list(check.run()) == []
    assert (check.report.log_end_offset, check.report.segments) == (log.end_offset, 3)
    assert check.report.batches == check.report.records == 2 * log.blocks


def test_small_records_are_where_the_log_says_and_the_others_are_older(log: SparseLog, tmp_path: Path) -> None:
    log.write(tmp_path)
    found = []
    for path in sorted(tmp_path.glob("*.log")):
        for small, filler in _pairs(path.read_bytes()):
            found.append((small.base_offset, small.max_timestamp))
            assert (filler.base_offset, filler.max_timestamp) == (small.base_offset + 1, FIRST_MS)
    assert found == [log.small_record(block) for block in range(log.blocks)]


def _pairs(data: bytes) -> Iterable[tuple[RecordBatchHeader, RecordBatchHeader]]:
    headers = [batch.header for batch in iter_batches(data)]
    return zip(headers[::2], headers[1::2], strict=True)


def test_the_large_records_are_holes(log: SparseLog, tmp_path: Path) -> None:
    log.write(tmp_path)
    path = min(tmp_path.glob("*.log"))
    assert path.stat().st_size == 4 * BLOCK_BYTES
    assert path.stat().st_blocks * 512 <= 4 * 16_384
    _, filler, *_ = iter_batches(path.read_bytes())
    (record,) = iter_records(filler)
    assert record.value is not None
    assert not any(record.value)


def test_what_an_empty_log_had_is_replaced(log: SparseLog, tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"what was there")
    (tmp_path / "00000000000000000000.snapshot").write_bytes(b"")
    log.write(tmp_path)
    assert [path.name for path in tmp_path.glob("*.snapshot")] == [f"{log.end_offset:020}.snapshot"]
    assert decode_batch_header((tmp_path / "00000000000000000000.log").read_bytes()).base_offset == 0


def test_recovery_points_of_other_partitions_stay(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_text("0\n2\nother 3 17\nsparse 0 0\n")
    write_recovery_points(tmp_path, [("sparse", 12_000)])
    assert path.read_text() == "0\n2\nother 3 17\nsparse 0 12000\n"
