"""One pass over a table of records, from which an audit has everything but a few keys as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..session import RECORDS_OF_A_PART, tasks_for
from ..small_tables import small_table
from . import periods, runs
from .blocks import blocks_of, kept, longest_gaps, partition_reports
from .counting import COLUMNS, KEY_COLUMN, Counting, count_batches, merge_batches
from .report import Gap, PartitionReport, PeriodReport
from .tables import SCHEMA, Kind, Table, Top, empty, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_BUCKETS = 8
"""Of each task that merges keys: they are spread by a hash, with some luck evenly."""


class KeyRow(NamedTuple):
    """A key, told apart by its hash, with an offset at which it stands in the lowest partition that has it."""

    hash: int
    partition: int
    offset: int
    records: int
    size_bytes: int
    partitions: int


class SizeRow(NamedTuple):
    """The bytes of a record's key and value."""

    partition: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The counts of a table of records; lists have as many rows as were asked for, the first by their order."""

    partitions: list[PartitionReport]
    gaps: list[Gap]
    period_hours: int
    periods: list[PeriodReport]
    largest: list[SizeRow]
    keys: int
    keys_in_several_partitions: int
    heaviest_keys: list[KeyRow]
    scattered_keys: list[KeyRow]


def scan(records: DataFrame, offsets: int, listed: int, *, keys: bool = True) -> Scan:
    """Count the records. offsets: how many there may be. keys: whether keys are counted.

    The records may come in any order; where tasks have those of a partition in pieces that overlap, or an offset is
    there twice, the partition is read once more, and grouped by its offsets.
    """
    session = records.sparkSession
    found = _Results(listed)
    merging = 1 + offsets // (2 * RECORDS_OF_A_PART) if keys else 1
    job = Counting(listed, merging * _BUCKETS if keys else 0)
    names = COLUMNS | (KEY_COLUMN if keys else {})
    numbers = records.selectExpr(*(f"{text} AS {name}" for name, text in names.items()))
    tables = numbers.coalesce(tasks_for(session, offsets)).mapInArrow(partial(count_batches, job), SCHEMA)
    results = tables.repartition(merging, "bucket").mapInArrow(partial(merge_batches, job), SCHEMA)
    for row in results.collect():
        found.add(Kind(row["kind"]), unpacked(row["kind"], row["numbers"]))
    return found.scan(records)


class _Results:
    def __init__(self, listed: int) -> None:
        self._listed = listed
        self._tables = {kind: empty(kind) for kind in (Kind.RUNS, Kind.GAPS, Kind.PERIODS, Kind.LARGEST)}
        self._unordered: list[int] = []
        self._key_totals = np.zeros((2, 1), np.int64)
        self._keys = {kind: Top(kind, listed) for kind in (Kind.HEAVIEST_KEYS, Kind.SCATTERED_KEYS)}

    def add(self, kind: Kind, table: Table) -> None:
        match kind:
            case Kind.KEY_TOTALS:
                self._key_totals += table
            case Kind.HEAVIEST_KEYS | Kind.SCATTERED_KEYS:
                self._keys[kind].add(table)
            case Kind.UNORDERED:
                self._unordered += table[0].tolist()
            case _:
                self._tables[kind] = np.concatenate([self._tables[kind], table], axis=1)

    def scan(self, records: DataFrame) -> Scan:
        partitions = runs.reports(self._tables[Kind.RUNS])
        gaps = [Gap(*row) for row in self._tables[Kind.GAPS].T.tolist()]
        if self._unordered:
            more, more_gaps = _by_blocks(records, self._unordered, self._listed)
            partitions, gaps = partitions + more, gaps + more_gaps
        keys, in_several = self._key_totals[:, 0].tolist()
        by_time = self._tables[Kind.PERIODS]
        return Scan(
            sorted(partitions, key=lambda each: each.partition),
            sorted(gaps, key=lambda gap: (gap.first_offset - gap.last_offset, gap.partition, gap.first_offset))[
                : self._listed
            ],
            periods.HOURS[int(by_time[0, 0])] if by_time.shape[1] else periods.HOURS[0],
            periods.reports(by_time),
            [SizeRow(*row) for row in self._tables[Kind.LARGEST].T.tolist()],
            keys,
            in_several,
            *([KeyRow(*row) for row in self._keys[kind].table.T.tolist()] for kind in self._keys),
        )


def _by_blocks(records: DataFrame, partitions: Sequence[int], listed: int) -> tuple[list[PartitionReport], list[Gap]]:
    from pyspark.sql.functions import broadcast

    session = records.sparkSession
    wanted = small_table(session, ((each,) for each in partitions), "partition BIGINT")
    with kept(blocks_of(records.join(broadcast(wanted), "partition", "left_semi"))) as blocks:
        reports = partition_reports(blocks)
        gaps = longest_gaps(blocks, listed) if any(each.missing_offsets for each in reports) else []
    return reports, gaps
