"""What a seed draws, and how a value of many records is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykbroker.protocol.records.batch import RecordBatch, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression
from pykbroker.sim.determinism import run_deterministic
from tests.history.operations import Value

from .partitions import batch_of, values_of
from .sizes import Sizes

DIMENSIONS: dict[str, Callable[[Sizes], object]] = {
    "values of many records": lambda sizes: sizes.most_records > 100,
    "compression": lambda sizes: sizes.compression is not Compression.NONE,
    "requests in flight": lambda sizes: sizes.in_flight,
    "many partitions": lambda sizes: sizes.wide,
    "fetch sessions": lambda sizes: sizes.has_sessions,
    "long waits": lambda sizes: sizes.blocks_s > 2,
    "segments that roll": lambda sizes: sizes.rolls_bytes,
    "internal segments that roll": lambda sizes: sizes.internal_rolls_bytes,
    "retention": lambda sizes: sizes.keeps,
    "compaction": lambda sizes: sizes.is_compacted,
}


@pytest.mark.parametrize("name", DIMENSIONS)
def test_a_dimension_is_large_in_some_runs_and_small_in_more(name: str) -> None:
    large = sum(bool(DIMENSIONS[name](Sizes.of(seed))) for seed in range(300))
    assert 15 < large < 200


def test_a_run_names_what_is_large_in_it() -> None:
    assert str(Sizes()) == "all is small"
    told = str(Sizes(in_flight=5, keeps={"keeps_bytes": 2_000}))
    assert told == "5 requests in flight; retention keeps bytes 2000"


def batch(*values: Value, records_each: int = 1) -> RecordBatch:
    async def encode() -> bytes:
        return batch_of(values, records_each=records_each, compression=Compression.GZIP)

    [found] = iter_batches(run_deterministic(encode, seed=1))
    return found


def test_a_value_of_many_records_is_told_once() -> None:
    assert list(values_of(batch("v1", "v2", records_each=3))) == [(0, "v1"), (3, "v2")]


@pytest.mark.parametrize("number", range(3))
def test_a_value_that_lacks_a_record_is_told_as_what_nobody_wrote(number: int) -> None:
    records = [record for record in iter_records(batch("v1", "v2", records_each=3)) if record.offset != number]
    [shorter] = iter_batches(encode_batch(records, offset_deltas=[record.offset for record in records]))
    lacking = [(at, f"v1#{at}/3") for at in range(3) if at != number]
    assert list(values_of(shorter)) == [*lacking, (3, "v2")]


def test_parts_of_a_compacted_value_come_back() -> None:
    values = [("k1", "p7", 7), ("k2", None, 8)]
    assert [value for _, value in values_of(batch(*values))] == values
