"""The aborted transactions of a log, and what cleaning may drop of them (`CleanedTransactionMetadata`).

The records of an aborted transaction go at once. The marker that ended a transaction goes after its records, since
without it they would belong to a transaction that is still open.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader
from pykbroker.protocol.records.control import ControlRecordType

from ..segments.batch_scan import scan_headers
from ..segments.segment import LogSegment
from ..segments.transaction_index import AbortedTransaction, TransactionIndex
from ..segments.transaction_markers import find_marker


def find_aborted_transactions(
    segments: Sequence[LogSegment], end_offset: int, progress: Callable[[int], None]
) -> list[AbortedTransaction]:
    """Those that began before `end_offset`, in the order of their beginnings.

    They are read from the log itself, because what an index does not tell of would stay for ever; a marker may stand
    far behind `end_offset`. Where there are index entries, these are what is returned: an earlier cleaning may have
    taken the first of a transaction's batches.
    """
    begun: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    for segment in segments:
        is_behind = segment.base_offset >= end_offset
        if is_behind and not any(first_offset < end_offset for first_offset in begun.values()):
            break
        # What is not to be cleaned may be truncated meanwhile.
        indexed = {} if is_behind else {each.last_offset: each for each in segment.transaction_index.entries()}
        for position, header in scan_headers(segment.file, 0, segment.size):
            if not header.has_producer_id:
                continue
            if header.is_control:
                first_offset = begun.pop(header.producer_id, None)
                marker = find_marker(segment.file.read_at(position, header.size_bytes))
                if first_offset is None or marker is None or marker.control_type is not ControlRecordType.ABORT:
                    continue
                if first_offset < end_offset:
                    stable_offset = min(begun.values(), default=header.next_offset)
                    found = AbortedTransaction(header.producer_id, first_offset, header.last_offset, stable_offset)
                    aborted.append(indexed.get(header.last_offset, found))
            elif header.is_transactional:
                begun.setdefault(header.producer_id, header.base_offset)
        progress(0)
    return sorted(aborted, key=lambda transaction: transaction.first_offset)


@dataclass(slots=True)
class _Aborted:
    """An aborted transaction. is_seen: whether some of its batches are still there."""

    transaction: AbortedTransaction
    is_seen: bool = False


class CleanedTransactionMetadata:
    """Told of every batch in order, it says whether the batch may go because of what became of its transaction."""

    def __init__(self, aborted: Iterable[AbortedTransaction], start_offset: int = 0) -> None:
        """Begin at the first batch. start_offset: of that batch."""
        self._coming = deque(transaction for transaction in aborted if transaction.last_offset >= start_offset)
        self._aborted: dict[int, _Aborted] = {}
        """By producer."""
        self._committed: set[int] = set()
        """Producers of whose transaction something was seen."""
        self.index: TransactionIndex | None = None
        """That of the segment that is written: told of the aborted transactions of which something was seen."""

    def may_drop_data(self, header: RecordBatchHeader) -> bool:
        self._begin_until(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is not None:
            aborted.is_seen = True
            return True
        self._committed.add(header.producer_id)
        return False

    def may_drop_control(self, batch: RecordBatch) -> bool:
        """Tell whether nothing is left of what it ended. Control records of other kinds stay."""
        header = batch.header
        self._begin_until(header.last_offset)
        if not header.records_count:
            return True
        marker = find_marker(batch.data)
        if marker is None:
            return False
        if marker.control_type is ControlRecordType.ABORT:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is None or not aborted.is_seen:
                return True
            if self.index is not None:
                self.index.append(aborted.transaction)
            return False
        if header.producer_id in self._committed:
            self._committed.remove(header.producer_id)
            return False
        return True

    def _begin_until(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            transaction = self._coming.popleft()
            self._aborted.setdefault(transaction.producer_id, _Aborted(transaction))
