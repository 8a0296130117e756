"""A transaction index that is read from the log anew, beside the file that is there (`RebuiltTransactionIndex`).

A start does not notice that an index lacks an abort: it looks at the entries that are there. So an index never holds a
part of what it is to hold: another file is filled, made durable and put in its place. Where it holds the same already,
as after most kills, nothing is written or synced.
"""

import posixpath
from collections.abc import Iterator
from itertools import islice

from ..files.disk import Disk
from ..files.errors import CorruptLog
from .transaction_index import AbortedTransaction, TransactionIndex

_ASIDE_SUFFIX = ".tmp"
"""A start removes what has it."""


class RebuiltTransactionIndex:
    """An index in the making, of the transactions that the log of one segment tells of, in their order.

    Until `finish` the file is as it was, and so it stays where nobody calls that. Raises `FileError`.
    """

    def __init__(self, disk: Disk, index: TransactionIndex) -> None:
        self._disk = disk
        self._index = index
        self._kept = 0
        """So many entries are right in the old file."""
        self._new: TransactionIndex | None = None
        self._old: Iterator[AbortedTransaction] = iter(())
        self._is_damaged = False
        if index.is_there():
            try:
                index.load()
            except CorruptLog:
                self._is_damaged = True
            self._old = index.entries()

    def append(self, transaction: AbortedTransaction) -> None:
        if self._new is None and self._next_of_old() == transaction:
            self._kept += 1
        else:
            self._aside().append(transaction)

    def finish(self) -> None:
        """Make durable what was appended, as the segment's index. Raises `NoRoom` where an entry found none."""
        if self._new is None and self._next_of_old() is None and not self._is_damaged:
            if not self._kept:
                self._index.reset()
            return
        new = self._aside()
        if new.is_empty:
            self._index.reset()
            return
        new.sync()
        self._disk.rename(new.path, self._index.path)
        self._disk.sync_directory(posixpath.dirname(self._index.path))
        self._index.load()

    def _next_of_old(self) -> AbortedTransaction | None:
        try:
            return next(self._old, None)
        except CorruptLog:
            self._is_damaged = True
            return None

    def _aside(self) -> TransactionIndex:
        """The other file, which begins with the entries that are right in the old one."""
        if self._new is None:
            new = TransactionIndex(self._disk, self._index.path + _ASIDE_SUFFIX)
            new.reset()
            for each in islice(self._index.entries(), self._kept):
                new.append(each)
            self._new, self._old = new, iter(())
        return self._new
