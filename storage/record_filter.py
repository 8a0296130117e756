"""What cleaning keeps of a batch (`Cleaner.cleanInto`, `MemoryRecords.filterTo`).

A batch keeps its first and last offset whatever goes from between, and is copied as it is where nothing goes. A batch
that holds tombstones, or a marker of a transaction whose records are all gone, is given the time from when on it may
go as well: the delete horizon in its header (KIP-534).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pykbroker.protocol.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_MASK,
    Record,
    RecordBatch,
    RecordBatchHeader,
    TimestampType,
    assemble_batch,
    iter_records,
)
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.record import NO_TIMESTAMP, encode_record

from .cleaned_transactions import TransactionFilter
from .disk import Buffer
from .key_offsets import KeyOffsetMap
from .producer_state import ProducerEntry


class LastRecord(NamedTuple):
    """Where an active producer's last data is; None where its last batch was a marker."""

    data_offset: int | None
    producer_epoch: int


def last_records(producers: Mapping[int, ProducerEntry]) -> dict[int, LastRecord]:
    return {
        producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.producer_epoch)
        for producer_id, entry in producers.items()
    }


class RecordFilter:
    """Must see every batch of the log in order, from its first segment on."""

    def __init__(
        self,
        keys: KeyOffsetMap,
        transactions: TransactionFilter,
        producers: Mapping[int, LastRecord],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._keys = keys
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def clean(self, batch: RecordBatch) -> Buffer | None:
        """The bytes that stay; None where the batch goes. Raises `InvalidRecords`."""
        header = batch.header
        if header.is_control:
            is_marker_of_nothing = self._transactions.may_drop_control(batch)
            records = [] if is_marker_of_nothing and self._is_past_horizon(header) else list(iter_records(batch))
            needs_horizon = is_marker_of_nothing
        else:
            is_aborted = self._transactions.may_drop_data(header)
            records = [] if is_aborted else self._live_records(batch)
            needs_horizon = any(record.value is None for record in records)
        if not records:
            return empty_batch(header) if self._is_last_of_producer(header) else None
        needs_horizon = needs_horizon and not header.has_delete_horizon
        if len(records) == header.records_count and not needs_horizon:
            return batch.data
        return _rewrite(header, records, self._now_ms + self._delete_retention_ms if needs_horizon else None)

    def _live_records(self, batch: RecordBatch) -> list[Record]:
        """The latest record of each key, tombstones up to their horizon, and what the keys do not reach to.
        Records without a key cannot be on a compacted topic, and go where they are.
        """
        latest = self._keys.latest_offset
        get = self._keys.get
        drop_tombstones = self._is_past_horizon(batch.header)
        return [
            record
            for record in iter_records(batch)
            if record.offset > latest
            or (
                record.key is not None
                and record.offset >= get(record.key)
                and not (drop_tombstones and record.value is None)
            )
        ]

    def _is_past_horizon(self, header: RecordBatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._now_ms

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        """It holds the last sequence, or the last epoch, of a producer that may still go on."""
        last = self._producers.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.data_offset is not None:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def empty_batch(header: RecordBatchHeader) -> bytes:
    """Nothing but the header: the offsets and sequences of what was there."""
    return assemble_batch(
        b"",
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_MASK),
        last_offset_delta=header.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=0,
    )


def _rewrite(header: RecordBatchHeader, records: Sequence[Record], horizon_ms: int | None) -> bytes:
    """The batch with these records of it; timestamps count from the horizon where there is one."""
    attributes = header.attributes
    base_timestamp = records[0].timestamp
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON_MASK
        base_timestamp = horizon_ms
    elif header.has_delete_horizon:
        base_timestamp = header.base_timestamp
    payload = b"".join(
        encode_record(record, record.offset - header.base_offset, record.timestamp - base_timestamp)
        for record in records
    )
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return assemble_batch(
        payload if header.compression is Compression.NONE else compress(header.compression, payload),
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if is_append_time else max(record.timestamp for record in records),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=len(records),
    )
