"""Tables of whole numbers, as the tasks of an audit hand them on: packed, beside their kind and their bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyarrow import RecordBatch

Table = NDArray[np.int64]
"""A column of the table in each row of the array. Sums of checksums go around at 2**64."""

SCHEMA = "kind INT, bucket INT, numbers BINARY"
MOST_ROWS = 1 << 18
"""More rows than this are combined, or handed on."""
_MOST_PACKED = MOST_ROWS
_ODD = np.int64(0x5851F42D4C957F2D)


class Kind(IntEnum):
    """Kinds of tables; the columns of each stand in `COLUMNS`."""

    RUNS = 0
    GAPS = 1
    PERIODS = 2
    LARGEST = 3
    KEYS = 4
    UNORDERED = 5
    HEAVIEST_KEYS = 6
    SCATTERED_KEYS = 7
    KEY_TOTALS = 8


COLUMNS = {
    Kind.RUNS: 15,  # those of `runs`
    Kind.GAPS: 3,  # partition, first offset, last offset
    Kind.PERIODS: 5,  # level of `periods`, start in periods of that length, partition, records, bytes
    Kind.LARGEST: 3,  # partition, offset, bytes
    Kind.KEYS: 5,  # hash, partition, records, bytes, last offset
    Kind.UNORDERED: 1,  # partition
    Kind.HEAVIEST_KEYS: 6,  # hash, lowest partition, last offset there, records, bytes, partitions
    Kind.SCATTERED_KEYS: 6,
    Kind.KEY_TOTALS: 2,  # keys, those in several partitions
}


class Packed(NamedTuple):
    """A table on its way to another task."""

    kind: Kind
    bucket: int
    table: Table


def batches_of(tables: Iterable[Packed]) -> Iterator[RecordBatch]:
    """Arrow's batches with the schema `SCHEMA`, a few rows each."""
    import pyarrow

    schema = pyarrow.schema([("kind", pyarrow.int32()), ("bucket", pyarrow.int32()), ("numbers", pyarrow.binary())])
    for kind, bucket, table in tables:
        for start in range(0, table.shape[1], _MOST_PACKED):
            part = np.ascontiguousarray(table[:, start : start + _MOST_PACKED])
            yield pyarrow.RecordBatch.from_pylist(
                [{"kind": int(kind), "bucket": bucket, "numbers": part.tobytes()}], schema=schema
            )


def unpacked(kind: int, numbers: bytes) -> Table:
    return np.frombuffer(numbers, np.int64).reshape(COLUMNS[Kind(kind)], -1)


def tables_in(batches: Iterable[RecordBatch]) -> Iterator[Packed]:
    for batch in batches:
        for kind, bucket, numbers in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Packed(Kind(kind), bucket, unpacked(kind, numbers))


def empty(kind: Kind) -> Table:
    return np.empty((COLUMNS[kind], 0), np.int64)


def starts_of(*columns: NDArray[np.int64]) -> NDArray[np.intp]:
    """The places at which rows that are equal in these columns, and stand together, begin."""
    count = len(columns[0])
    changed = np.ones(count, bool)
    if count:
        changed[1:] = False
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def combined(table: Table, keys: int, largest: int = 0) -> Table:
    """One row for each value of the first columns, sorted by these; the last columns tell the largest, all others the
    sum.
    """
    table = _added_up(table, keys, largest)  # equal rows mostly stand together already
    order = np.lexsort(tuple(table[place] for place in range(keys - 1, -1, -1)))
    return _added_up(np.take(table, order, axis=1), keys, largest)


def nearly_combined(table: Table, keys: int, largest: int = 0) -> Table:
    """The same in no order, faster, of tables whose first column is a hash. A key may keep several rows."""
    mixed = table[0].copy()
    for column in table[1:keys]:
        mixed ^= column * _ODD
    return _added_up(np.take(table, np.argsort(mixed), axis=1), keys, largest)


def _added_up(table: Table, keys: int, largest: int) -> Table:
    """The rows that stand together."""
    starts = starts_of(*table[:keys])
    if len(starts) == table.shape[1]:
        return table
    sums_end = len(table) - largest
    found = np.empty((len(table), len(starts)), np.int64)
    found[:keys] = table[:keys, starts]
    np.add.reduceat(table[keys:sums_end], starts, axis=1, out=found[keys:sums_end])
    if largest:
        np.maximum.reduceat(table[sums_end:], starts, axis=1, out=found[sums_end:])
    return found


class Sums:
    """Rows that are added up by their first columns, in as little room as they need."""

    def __init__(self, kind: Kind, keys: int, largest: int = 0) -> None:
        """Rows with the same key become one; of KEYS, nearly all of them do."""
        self._combined = nearly_combined if kind is Kind.KEYS else combined
        self._keys, self._largest = keys, largest
        self._parts = [empty(kind)]
        self._rows = self._limit = 0

    @property
    def rows(self) -> int:
        return self._rows

    def add(self, table: Table) -> None:
        self._parts.append(self._combined(table, self._keys, self._largest))
        self._rows += self._parts[-1].shape[1]
        if self._rows > max(MOST_ROWS, self._limit):
            self.combine()

    def combine(self) -> Table:
        """All of it, which stays here."""
        self._parts = [self._combined(np.concatenate(self._parts, axis=1), self._keys, self._largest)]
        self._rows = self._parts[0].shape[1]
        self._limit = 2 * self._rows  # so that each row is sorted a few times, however many there are
        return self._parts[0]

    def take(self) -> Table:
        """All of it; nothing is left."""
        found = self.combine()
        self._parts = [found[:, :0]]
        self._rows = self._limit = 0
        return found


class Top:
    """The rows that come first by an order, as many as are listed."""

    def __init__(self, kind: Kind, listed: int) -> None:
        self._kind, self._listed = kind, listed
        self._table = empty(kind)

    @property
    def table(self) -> Table:
        """The rows, in their order."""
        return self._table

    def add(self, table: Table) -> None:
        if self._kind is Kind.LARGEST and self._table.shape[1] == self._listed:
            partition, offset, size = self._table[:, -1]
            table = table[
                :,
                (table[2] > size)
                | ((table[2] == size) & ((table[0] < partition) | ((table[0] == partition) & (table[1] < offset)))),
            ]
        if table.shape[1]:
            both = np.concatenate([self._table, table], axis=1)
            self._table = both[:, np.lexsort(_order(self._kind, both))[: self._listed]]


def _order(kind: Kind, table: Table) -> tuple[NDArray[np.int64], ...]:
    """The columns of an order, the first of them last: NumPy wants them so."""
    match kind:
        case Kind.LARGEST:
            partition, offset, size = table
            return offset, partition, -size
        case Kind.GAPS:
            partition, first, last = table
            return first, partition, first - last
        case Kind.HEAVIEST_KEYS | Kind.SCATTERED_KEYS:
            return table[0], -table[3]
        case _:
            raise AssertionError(kind)
