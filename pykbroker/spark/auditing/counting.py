"""The tasks of an audit: some count the records that they read, and others merge what these have found.

The first kind of task gets fixed numbers of each record (`COLUMNS`), and gives tables: of runs, gaps, periods, the
largest records, and keys. The second kind gets the keys of a bucket, or all the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..python_tasks import keep_archive_lists
from ..records import CONTENT_HASH, RECORD_HASH, SIZE
from .periods import Periods
from .runs import NULL_KEY, PARTITION, in_order, joined, runs_of_records
from .tables import (
    MOST_ROWS,
    Kind,
    Packed,
    Sums,
    Table,
    Top,
    batches_of,
    combined,
    empty,
    starts_of,
    tables_in,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

COLUMNS = {
    "partition": "COALESCE(CAST(partition AS BIGINT), -1L)",
    "offset": "COALESCE(offset, -1L)",
    "time": "COALESCE(unix_micros(timestamp), -1L)",
    "size": f"CAST({SIZE} AS BIGINT)",
    "nulls": "CAST(INT(key IS NULL) + 2 * INT(value IS NULL) AS BIGINT)",
    "checksum": RECORD_HASH,
    "content_checksum": CONTENT_HASH,
}
KEY_COLUMN = {"key": "xxhash64(key)"}
"""Columns by name; a file that somebody has changed may have nulls anywhere."""

MOST_RUNS = 50_000
"""Of a task that reads in the order of offsets there are as many as it reads partitions of files."""
MOST_RUNS_TOGETHER = 2_000_000
_NO_BUCKET = -1
_BITS = 20


@dataclass(frozen=True, slots=True)
class Counting:
    """The order for the tasks. buckets: into which keys are spread; 0 for none, keys are not counted then."""

    listed: int
    buckets: int


def count_batches(job: Counting, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Tables of the records of a task."""
    keep_archive_lists()
    return batches_of(_counted(job, batches))


def merge_batches(job: Counting, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Results from the tables of all tasks, as far as they have come to this one."""
    keep_archive_lists()
    return batches_of(merged(job, tables_in(batches)))


def _counted(job: Counting, batches: Iterable[RecordBatch]) -> Iterator[Packed]:
    counts = Counts(job)
    for batch in batches:
        yield from counts.add({name: batch.column(name).to_numpy() for name in batch.schema.names})
    yield from counts.rest()


class Counts:
    """The tables of a task."""

    def __init__(self, job: Counting) -> None:
        self._job = job
        self._open = empty(Kind.RUNS)
        self._runs: list[Table] = []
        self._run_count = 0
        self._unordered: set[int] = set()
        self._gaps = _Gaps(job.listed)
        self._periods = Periods()
        self._largest = Top(Kind.LARGEST, job.listed)
        self._keys = Sums(Kind.KEYS, 2, 1)

    def add(self, columns: dict[str, NDArray[Any]]) -> Iterator[Packed]:
        """Take records, with the values of `COLUMNS`; gives tables that are too large to be kept."""
        partition, offset, time, size, nulls, checksum, content_checksum = (columns[name] for name in COLUMNS)
        if not len(offset):
            return
        self._join(runs_of_records(partition, offset, time, size, nulls, checksum, content_checksum, behind=self._open))
        self._periods.add_records(partition, time, size)
        self._largest.add(np.stack([partition, offset, size]))
        if self._job.buckets:
            key = columns["key"]
            keys = np.stack([key, partition, np.ones_like(key), size, offset])
            has_key = nulls & NULL_KEY == 0
            self._keys.add(keys if has_key.all() else np.compress(has_key, keys, axis=1))
            if self._keys.rows > MOST_ROWS // 2:
                yield from self._spread(self._keys.take())

    def rest(self) -> Iterator[Packed]:
        self._keep_runs(self._open)
        if self._unordered:
            yield Packed(Kind.UNORDERED, _NO_BUCKET, np.array([sorted(self._unordered)], np.int64))
        yield Packed(Kind.RUNS, _NO_BUCKET, np.concatenate([empty(Kind.RUNS), *self._runs], axis=1))
        yield Packed(Kind.GAPS, _NO_BUCKET, self._gaps.table)
        yield Packed(Kind.PERIODS, _NO_BUCKET, self._periods.table)
        yield Packed(Kind.LARGEST, _NO_BUCKET, self._largest.table)
        yield from self._spread(self._keys.take())

    def _join(self, runs: Table) -> None:
        found, gaps = joined(runs)
        self._open = found[:, -1:]
        self._keep_runs(found[:, :-1])
        self._gaps.add(gaps)

    def _keep_runs(self, runs: Table) -> None:
        self._run_count += runs.shape[1]
        self._runs.append(runs)
        if self._run_count > MOST_RUNS:
            # They overlap, or it is an archive of files that are as small as that: grouped by offsets then.
            self._unordered |= set(np.unique(np.concatenate([run[PARTITION] for run in self._runs])).tolist())
            self._runs, self._run_count = [], 0

    def _spread(self, keys: Table) -> Iterator[Packed]:
        """The keys by the highest bits of their hashes."""
        highest = (keys[0].view(np.uint64) >> np.uint64(64 - _BITS)).astype(np.int64)
        bucket = highest * self._job.buckets >> _BITS
        order = np.argsort(bucket, kind="stable")
        bounds = np.searchsorted(bucket[order], np.arange(self._job.buckets + 1))
        for number, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            if start < end:
                yield Packed(Kind.KEYS, number, keys[:, order[start:end]])


class _Gaps:
    """The longest gaps of each partition: which partitions count shows at the end."""

    def __init__(self, listed: int) -> None:
        self._listed = listed
        self._parts = [empty(Kind.GAPS)]
        self._rows, self._limit = 0, MOST_ROWS

    @property
    def table(self) -> Table:
        table = np.concatenate(self._parts, axis=1)
        partition, first, last = table
        table = table[:, np.lexsort((first, first - last, partition))]
        starts = starts_of(table[0])
        places = np.arange(table.shape[1])
        rank = places - np.repeat(starts, np.diff(np.append(starts, table.shape[1])))
        self._parts = [table[:, rank < self._listed]]
        self._rows = self._parts[0].shape[1]
        self._limit = max(MOST_ROWS, 2 * self._rows)
        return self._parts[0]

    def add(self, table: Table) -> None:
        if table.shape[1]:
            self._parts.append(table)
            self._rows += table.shape[1]
            if self._rows > self._limit:
                _ = self.table


# ---- of all tasks


def merged(job: Counting, tables: Iterable[Packed]) -> Iterator[Packed]:
    """Results of the same kinds; partitions whose runs overlap are in UNORDERED, and not in RUNS and GAPS."""
    runs = [empty(Kind.RUNS)]
    unordered: set[int] = set()
    run_count = 0
    gaps, periods, largest = _Gaps(job.listed), Periods(), Top(Kind.LARGEST, job.listed)
    keys = Sums(Kind.KEYS, 2, 1)
    for kind, _, table in tables:
        match kind:
            case Kind.RUNS:
                run_count += table.shape[1]
                runs.append(table)
                if run_count > MOST_RUNS_TOGETHER:
                    unordered |= _partitions_in(runs)
                    runs, run_count = [empty(Kind.RUNS)], 0
            case Kind.UNORDERED:
                unordered |= set(table[0].tolist())
            case Kind.GAPS:
                gaps.add(table)
            case Kind.PERIODS:
                periods.add_table(table)
            case Kind.LARGEST:
                largest.add(table)
            case Kind.KEYS:
                keys.add(table)
            case _:
                raise AssertionError(kind)
    yield from _merged_runs(np.concatenate(runs, axis=1), unordered, gaps, job.listed)
    yield Packed(Kind.PERIODS, _NO_BUCKET, periods.table)
    yield Packed(Kind.LARGEST, _NO_BUCKET, largest.table)
    yield from _merged_keys(keys.combine(), job.listed)


def _partitions_in(runs: list[Table]) -> set[int]:
    return set(np.unique(np.concatenate([each[PARTITION] for each in runs])).tolist())


def _merged_runs(runs: Table, unordered: set[int], gaps: _Gaps, listed: int) -> Iterator[Packed]:
    found, between = joined(in_order(runs))
    twice = found[PARTITION, 1:][found[PARTITION, 1:] == found[PARTITION, :-1]]
    unordered = unordered | set(twice.tolist())
    gaps.add(between)
    left_out = np.array(sorted(unordered), np.int64)
    yield Packed(Kind.UNORDERED, _NO_BUCKET, left_out[np.newaxis])
    yield Packed(Kind.RUNS, _NO_BUCKET, found[:, ~np.isin(found[PARTITION], left_out)])
    longest = Top(Kind.GAPS, listed)
    longest.add(gaps.table[:, ~np.isin(gaps.table[0], left_out)])
    yield Packed(Kind.GAPS, _NO_BUCKET, longest.table)


def _merged_keys(keys: Table, listed: int) -> Iterator[Packed]:
    keys = combined(keys, 2, 1)
    if not keys.shape[1]:
        return
    starts = starts_of(keys[0])
    hashes, partition, _, _, offset = keys[:, starts]
    records, size = np.add.reduceat(keys[2:4], starts, axis=1)
    partitions = np.diff(np.append(starts, keys.shape[1]))
    whole = np.stack([hashes, partition, offset, records, size, partitions])
    scattered = whole[:, partitions > 1]
    yield Packed(Kind.KEY_TOTALS, _NO_BUCKET, np.array([[whole.shape[1]], [scattered.shape[1]]], np.int64))
    for kind, table in ((Kind.HEAVIEST_KEYS, whole), (Kind.SCATTERED_KEYS, scattered)):
        top = Top(kind, listed)
        top.add(table)
        yield Packed(kind, _NO_BUCKET, top.table)
