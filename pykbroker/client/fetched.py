"""The records of a fetched partition for a reader, without markers and without aborted transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pykbroker.protocol.records.batch import Header, RecordBatch, TimestampType, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key
from pykbroker.protocol.topic_partition import TopicPartition


class ConsumedRecord(NamedTuple):
    """A record. delivery_count: how often a share group has delivered it, this time included; None elsewhere."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    delivery_count: int | None = None


class AbortedTransactions:
    """Tell whose batches to leave out under read_committed.

    The broker lists each aborted transaction with the first offset of its; it lasts until the producer's abort marker.
    """

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Pairs of first offset and producer id."""
        self._coming = sorted(transactions, reverse=True)
        self._open: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        header = batch.header
        while self._coming and self._coming[-1][0] <= header.last_offset:
            self._open.add(self._coming.pop()[1])
        if header.is_control:
            first = next(iter(iter_records(batch)), None)
            if first is not None and decode_control_key(first.key) is ControlRecordType.ABORT:
                self._open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._open


def read_batches(data: bytes | memoryview, aborted: AbortedTransactions) -> Iterator[tuple[RecordBatch, bool]]:
    """Every whole batch with whether it is hidden. Raises InvalidRecords."""
    for batch in iter_batches(data, allow_partial=True):
        batch.ensure_valid()
        yield batch, aborted.hides(batch)


def records_of(of: TopicPartition, batch: RecordBatch, first_offset: int) -> Iterator[ConsumedRecord]:
    """A fetch in the middle of a batch gives the whole batch; what stands before `first_offset` is left out."""
    header = batch.header
    for record in iter_records(batch):
        if record.offset >= first_offset:
            yield ConsumedRecord(
                of.topic,
                of.partition,
                record.offset,
                header.partition_leader_epoch,
                record.timestamp,
                header.timestamp_type,
                record.key,
                record.value,
                tuple(record.headers),
            )
