"""The index of a segment's aborted transactions: `.txnindex`, in Kafka's format (`TransactionIndex`, KIP-98).

An entry is written for each abort marker that ends a transaction with records, so entries ascend by the marker's
offset. The file appears with the first of them: most segments have none. How an index is checked against the log and
built anew is in `transaction_index_recovery`.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ..files.disk import Disk, DiskFile
from ..files.errors import CorruptLog, NoRoom

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_CHUNK_BYTES = 128 * _ENTRY.size


class AbortedTransaction(NamedTuple):
    """Named as in Kafka's `AbortedTxn`.

    first_offset: of the transaction's first record. last_offset: of the marker. last_stable_offset: where the earliest
    transaction began that was open behind the marker, or the next offset where none was.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """One segment's. How many entries there are, and the last one's offset, are in memory; the entries are not."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._count = 0
        self._last_offset = -1
        self._unwritten: list[AbortedTransaction] = []
        """Of markers that the log took with its last room."""

    @property
    def is_empty(self) -> bool:
        return not self._count and not self._unwritten

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten)

    def is_there(self) -> bool:
        return self._disk.exists(self.path)

    # Writing

    def load(self) -> None:
        """Take over a file that is there. Raises `CorruptLog` where it does not end with a whole entry."""
        self._count, self._last_offset = 0, -1
        with self._opened() as file:
            count, rest = divmod(file.size(), _ENTRY.size)
            if rest:
                raise CorruptLog(f"{self.path} has {rest} bytes behind its last entry")
            if count:
                self._last_offset = self._read_entry(file, count - 1).last_offset
            self._count = count

    def append(self, transaction: AbortedTransaction) -> None:
        """The marker is in the log already: where there is no room the entry waits in memory for `write_unwritten`."""
        assert transaction.last_offset > self._last_offset, "markers come in the order of the log"
        self._last_offset = transaction.last_offset
        self._unwritten.append(transaction)
        with suppress(NoRoom):
            self.write_unwritten()

    def write_unwritten(self) -> None:
        """Write entries that are pending, before anything else is appended to the log. Raises `FileError`."""
        if self._unwritten:
            with self._opened(create=True) as file:
                file.append([_ENTRY.pack(_VERSION, *transaction) for transaction in self._unwritten])
            self._count += len(self._unwritten)
            self._unwritten = []

    def truncate_to(self, offset: int) -> None:
        """Forget transactions that ended at `offset` or behind."""
        if self._last_offset < offset:
            return
        self._unwritten = [each for each in self._unwritten if each.last_offset < offset]
        if self._unwritten or not self._count:
            self._last_offset = self._unwritten[-1].last_offset if self._unwritten else -1
            return
        with self._opened() as file:
            count = self._first_from(file, offset)
            if count:
                file.truncate(count * _ENTRY.size)
                self._last_offset = self._read_entry(file, count - 1).last_offset
                self._count = count
        if not count:
            self.reset()

    def reset(self) -> None:
        """Start anew, whatever there is."""
        self._count, self._last_offset, self._unwritten = 0, -1, []
        self._disk.remove(self.path)

    def check_written(self) -> None:
        """Raises `NoRoom` where an entry is not written."""
        if self._unwritten:
            raise NoRoom("write", self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def sync(self) -> None:
        """Sync the file. May run in a thread. Raises `NoRoom` where an entry is not written."""
        self.check_written()
        if self._count:
            with self._opened() as file:
                file.sync()

    # Reading

    def entries(self) -> Iterator[AbortedTransaction]:
        """Raises `CorruptLog` for an entry of an unknown version."""
        yield from self._entries_from(0)

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Return what hides records between the two offsets, and whether later segments can hold no more of it."""
        found: list[AbortedTransaction] = []
        if self._last_offset < fetch_offset:
            return found, False
        for transaction in self._entries_from(fetch_offset):
            if transaction.first_offset < upper_bound_offset:
                found.append(transaction)
            if transaction.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def encode_before(self, offset: int) -> bytes:
        """Return the file of the segment as it was when the log ended there. For a thread beside appends."""
        found = [each for each in self.entries() if each.last_offset < offset]
        return b"".join(_ENTRY.pack(_VERSION, *each) for each in found)

    def _entries_from(self, offset: int) -> Iterator[AbortedTransaction]:
        if self._count:
            with self._opened() as file:
                yield from self._read_from(file, self._first_from(file, offset))
        yield from self._unwritten

    def _first_from(self, file: DiskFile, offset: int) -> int:
        """The number of the first transaction that ended at `offset` or behind."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._read_entry(file, middle).last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read_entry(self, file: DiskFile, number: int) -> AbortedTransaction:
        return self._decode(file.read_at(number * _ENTRY.size, _ENTRY.size))[0]

    def _read_from(self, file: DiskFile, number: int) -> Iterator[AbortedTransaction]:
        end = self._count * _ENTRY.size
        for position in range(number * _ENTRY.size, end, _CHUNK_BYTES):
            yield from self._decode(file.read_at(position, min(_CHUNK_BYTES, end - position)))

    def _decode(self, data: bytes) -> list[AbortedTransaction]:
        found = []
        if not data or len(data) % _ENTRY.size:
            raise CorruptLog(f"{self.path} is shorter than it was")
        for version, *values in _ENTRY.iter_unpack(data):
            if version != _VERSION:
                raise CorruptLog(f"{self.path} has an entry of the unknown version {version}")
            found.append(AbortedTransaction._make(values))
        return found

    @contextmanager
    def _opened(self, *, create: bool = False) -> Iterator[DiskFile]:
        """Open the file while it is used: a broker has one per segment."""
        file = self._disk.open(self.path, create=create)
        try:
            yield file
        finally:
            file.close()
