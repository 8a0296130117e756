"""A run is a row for records of a partition that follow each other, exact in whatever depends on their order.

A record is a run of its own; `joined` makes one of several that stand in the order of their offsets. So a task joins
the records that it reads, and the runs of all tasks are joined in the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..records import checksum_text
from .report import PartitionReport
from .tables import COLUMNS, Kind, Table, empty

(
    PARTITION, FIRST_OFFSET, LAST_OFFSET, FIRST_TIME, LAST_TIME, EARLIEST, LATEST, LARGEST_STEP,
    RECORDS, SIZE, NULL_KEYS, NULL_VALUES, BACKWARDS, CHECKSUM, CONTENT_CHECKSUM,
) = range(COLUMNS[Kind.RUNS])  # fmt: skip
"""Columns. Times are in microseconds; FIRST_TIME and LAST_TIME are those of the first and the last record."""

NULL_KEY, NULL_VALUE = 1, 2
"""Flags of a record."""


def runs_of_records(
    partition: NDArray[np.int64],
    offset: NDArray[np.int64],
    time: NDArray[np.int64],
    size: NDArray[np.int64],
    nulls: NDArray[np.int64],
    checksum: NDArray[np.int64],
    content_checksum: NDArray[np.int64],
    *,
    behind: Table,
) -> Table:
    """A run for each record, behind other runs."""
    before = behind.shape[1]
    table = np.empty((COLUMNS[Kind.RUNS], before + len(offset)), np.int64)
    table[:, :before] = behind
    runs = table[:, before:]
    runs[PARTITION] = partition
    runs[FIRST_OFFSET] = runs[LAST_OFFSET] = offset
    runs[FIRST_TIME] = runs[LAST_TIME] = runs[EARLIEST] = runs[LATEST] = time
    runs[LARGEST_STEP] = runs[BACKWARDS] = 0
    runs[RECORDS] = 1
    runs[SIZE] = size
    runs[NULL_KEYS] = nulls & NULL_KEY != 0
    runs[NULL_VALUES] = nulls & NULL_VALUE != 0
    runs[CHECKSUM], runs[CONTENT_CHECKSUM] = checksum, content_checksum
    return table


def joined(runs: Table) -> tuple[Table, Table]:
    """The runs, where one begins behind the end of the one in front of it as one; and the gaps in them.

    runs: is written to.
    """
    if not runs.shape[1]:
        return runs, empty(Kind.GAPS)
    partition, first, last = runs[PARTITION], runs[FIRST_OFFSET], runs[LAST_OFFSET]
    follows = (partition[1:] == partition[:-1]) & (first[1:] > last[:-1])
    step = np.where(follows, runs[LAST_TIME, :-1] - runs[FIRST_TIME, 1:], 0)
    runs[BACKWARDS, 1:] += step > 0
    np.maximum(runs[LARGEST_STEP, 1:], step, out=runs[LARGEST_STEP, 1:])
    open_at = np.flatnonzero(follows & (first[1:] > last[:-1] + 1))
    gaps = np.stack([partition[1:][open_at], last[:-1][open_at] + 1, first[1:][open_at] - 1])
    starts = np.flatnonzero(np.concatenate([[True], ~follows]))
    ends = np.append(starts[1:], runs.shape[1]) - 1
    found = np.empty((COLUMNS[Kind.RUNS], len(starts)), np.int64)
    for column, places in (
        (PARTITION, starts), (FIRST_OFFSET, starts), (FIRST_TIME, starts), (LAST_OFFSET, ends), (LAST_TIME, ends),
    ):  # fmt: skip
        found[column] = runs[column, places]
    found[EARLIEST] = np.minimum.reduceat(runs[EARLIEST], starts)
    found[LATEST : LARGEST_STEP + 1] = np.maximum.reduceat(runs[LATEST : LARGEST_STEP + 1], starts, axis=1)
    found[RECORDS:] = np.add.reduceat(runs[RECORDS:], starts, axis=1)
    return found, gaps


def in_order(runs: Table) -> Table:
    return runs[:, np.lexsort((runs[FIRST_OFFSET], runs[PARTITION]))]


def reports(runs: Table) -> list[PartitionReport]:
    """The reports of partitions that are one run each."""
    return [
        PartitionReport(
            partition=row[PARTITION],
            records=row[RECORDS],
            size_bytes=row[SIZE],
            first_offset=row[FIRST_OFFSET],
            last_offset=row[LAST_OFFSET],
            missing_offsets=row[LAST_OFFSET] - row[FIRST_OFFSET] + 1 - row[RECORDS],
            duplicate_offsets=0,
            null_keys=row[NULL_KEYS],
            null_values=row[NULL_VALUES],
            first_timestamp_ms=row[EARLIEST] // 1000,
            last_timestamp_ms=row[LATEST] // 1000,
            backwards=row[BACKWARDS],
            largest_step_back_ms=row[LARGEST_STEP] // 1000,
            checksum=checksum_text(row[CHECKSUM]),
            content_checksum=checksum_text(row[CONTENT_CHECKSUM]),
        )
        for row in runs.T.tolist()
    ]
