"""Which transactions of a log were aborted, and what cleaning may drop of them (`CleanedTransactionMetadata`).

The records of an aborted transaction go at once. The marker that ended a transaction goes after its records, since
without it they would belong to a transaction that is still open.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader
from pykbroker.protocol.records.control import ControlRecordType

from .batch_scan import scan_headers
from .segment import LogSegment
from .transaction_markers import find_marker


class AbortedTransaction(NamedTuple):
    """last_offset: that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int


def find_aborted_transactions(
    segments: Sequence[LogSegment], end_offset: int, progress: Callable[[int], None]
) -> list[AbortedTransaction]:
    """Those that began before `end_offset`, in the order of their beginnings.

    They are read from the log itself, which needs no transaction index; a marker may stand far behind `end_offset`.
    """
    begun: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    for segment in segments:
        if segment.base_offset >= end_offset and not begun:
            break
        for position, header in scan_headers(segment.file, 0, segment.size):
            if not header.has_producer_id:
                continue
            if header.is_control:
                first_offset = begun.pop(header.producer_id, None)
                marker = find_marker(segment.file.read_at(position, header.size_bytes))
                if first_offset is not None and marker and marker.control_type is ControlRecordType.ABORT:
                    aborted.append(AbortedTransaction(header.producer_id, first_offset, header.last_offset))
            elif header.is_transactional and header.base_offset < end_offset:
                begun.setdefault(header.producer_id, header.base_offset)
        progress(0)
    return sorted(aborted, key=lambda transaction: transaction.first_offset)


class TransactionFilter:
    """Told of every batch in order, it says whether the batch may go because of what became of its transaction."""

    def __init__(self, aborted: Iterable[AbortedTransaction], start_offset: int = 0) -> None:
        """start_offset: where the first batch is."""
        self._coming = deque(transaction for transaction in aborted if transaction.last_offset >= start_offset)
        self._aborted: dict[int, bool] = {}
        """By producer, whether something of the transaction was seen."""
        self._committed: set[int] = set()
        """Producers of whose transaction something was seen."""

    def may_drop_data(self, header: RecordBatchHeader) -> bool:
        self._begin_until(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._aborted[header.producer_id] = True
            return True
        self._committed.add(header.producer_id)
        return False

    def may_drop_control(self, batch: RecordBatch) -> bool:
        """Whether nothing is left of what it ended. Control records of other kinds stay."""
        header = batch.header
        self._begin_until(header.last_offset)
        if not header.records_count:
            return True
        marker = find_marker(batch.data)
        if marker is None:
            return False
        if marker.control_type is ControlRecordType.ABORT:
            return not self._aborted.pop(header.producer_id, False)
        if header.producer_id in self._committed:
            self._committed.remove(header.producer_id)
            return False
        return True

    def _begin_until(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            self._aborted.setdefault(self._coming.popleft().producer_id, False)
