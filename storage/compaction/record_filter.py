"""The filter for what cleaning keeps of a batch (`Cleaner.cleanInto`, `MemoryRecords.filterTo`).

A batch keeps its first and last offset whatever goes from between, and is copied as it is where nothing goes. A batch
that holds tombstones, or a marker of a transaction whose records are all gone, is given the time from when on it may
go as well: the delete horizon in its header (KIP-534).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress as select
from typing import NamedTuple

from pykbroker.protocol.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_MASK,
    MAGIC_VALUE_V2,
    Record,
    RecordBatch,
    RecordBatchHeader,
    TimestampType,
    assemble_batch,
    iter_records,
    record_keys,
    records_payload,
)
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.record import NO_TIMESTAMP, encode_record
from pykbroker.protocol.records.record_parts import (
    TOMBSTONE,
    WITH_VALUE,
    WITHOUT_KEY,
    RecordKeys,
    join_records,
    slice_records,
)

from ..files.disk import Buffer
from ..producers.producer_entry import ProducerEntry
from ..segments.transaction_index import TransactionIndex
from .cleaned_transactions import CleanedTransactionMetadata
from .key_offsets import KeyOffsetMap
from .live_offsets import LiveOffsets, count_live, without_tombstones


class LastRecord(NamedTuple):
    """The record says where an active producer's last data is; None where its last batch was a marker."""

    data_offset: int | None
    producer_epoch: int


def last_records(producers: Mapping[int, ProducerEntry]) -> dict[int, LastRecord]:
    return {
        producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.producer_epoch)
        for producer_id, entry in producers.items()
    }


class _Kept(NamedTuple):
    """The part of a batch that stays. has_tombstones: or a marker, which may go later as well."""

    records_count: int
    offset_deltas: Iterable[int]
    has_tombstones: bool


_NOTHING = _Kept(0, (), False)


class RecordFilter:
    """A filter that must see every batch of the log in order, from its first segment on.

    now_ms: from when tombstones that are seen for the first time are kept. horizon_ms: up to when those that were seen
    before have been.
    """

    def __init__(
        self,
        keys: KeyOffsetMap,
        live: LiveOffsets,
        transactions: CleanedTransactionMetadata,
        producers: Mapping[int, LastRecord],
        *,
        now_ms: int,
        horizon_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._keys = keys
        self._live = live
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = horizon_ms
        self._delete_retention_ms = delete_retention_ms

    def begin_segment(self, index: TransactionIndex) -> None:
        """Begin another segment, into which goes what stays; `index` is that segment's."""
        self._transactions.index = index

    def clean(self, batch: RecordBatch) -> Buffer | None:
        """The bytes that stay; None where the batch goes. Raises `InvalidRecords`."""
        header = batch.header
        if header.magic < MAGIC_VALUE_V2:
            return self._clean_legacy(batch)
        if header.is_control:
            kept = self._kept_of_control(batch)
        elif self._transactions.may_drop_data(header):
            kept = _NOTHING
        else:
            kept = self._kept_of_data(batch)
        if not kept.records_count:
            return empty_batch(header) if self._is_last_of_producer(header) else None
        needs_horizon = kept.has_tombstones and not header.has_delete_horizon
        batch.ensure_valid()
        if kept.records_count == header.records_count and not needs_horizon:
            return batch.data
        return _rewrite(batch, kept.offset_deltas, self._now_ms + self._delete_retention_ms if needs_horizon else None)

    def _kept_of_control(self, batch: RecordBatch) -> _Kept:
        batch.ensure_valid()
        is_marker_of_nothing = self._transactions.may_drop_control(batch)
        if is_marker_of_nothing and self._is_past_horizon(batch.header):
            return _NOTHING
        return _Kept(batch.header.records_count, range(batch.header.last_offset_delta + 1), is_marker_of_nothing)

    def _kept_of_data(self, batch: RecordBatch) -> _Kept:
        """Most batches go or stay as a whole, which the first pass tells of those that it has read."""
        header = batch.header
        is_covered = header.last_offset <= self._keys.latest_offset
        kinds = self._live.of_batch(header.base_offset, header.last_offset) if is_covered else None
        deltas: Sequence[int]
        if kinds is None:
            batch.ensure_valid()
            found = record_keys(batch)
            kinds, deltas = self._live_kinds(header, found), found.offset_deltas
        else:
            kinds = without_tombstones(kinds) if self._is_past_horizon(header) else kinds
            deltas = range(len(kinds))
        return _Kept(count_live(kinds), select(deltas, kinds), TOMBSTONE in kinds)

    def _clean_legacy(self, batch: RecordBatch) -> Buffer | None:
        """A message of an old format stays as it is, or what stays of it becomes a batch, as Kafka's cleaner does. One
        with tombstones becomes a batch as well, for the sake of their horizon; Kafka goes by the age of its files.
        """
        header = batch.header
        batch.ensure_valid()
        self._transactions.may_drop_data(header)
        records = list(iter_records(batch))
        kinds = bytes(TOMBSTONE if record.value is None else WITH_VALUE for record in records)
        keys = RecordKeys(
            [record.key for record in records], [record.offset - header.base_offset for record in records], kinds
        )
        live = list(select(records, self._live_kinds(header, keys)))
        if not live:
            return None
        has_tombstones = any(record.value is None for record in live)
        if len(live) == len(records) and not has_tombstones:
            return batch.data
        first_offset = live[0].offset
        placed = header._replace(base_offset=first_offset, last_offset_delta=header.last_offset - first_offset)
        return _encode(placed, live, self._now_ms + self._delete_retention_ms if has_tombstones else None)

    def _live_kinds(self, header: RecordBatchHeader, found: RecordKeys) -> bytes:
        """The latest record of each key, tombstones up to their horizon, and what the keys do not reach to.
        Records without a key cannot be on a compacted topic, and go where they are.
        """
        reach = self._keys.latest_offset - header.base_offset
        latest = self._keys.get(key or b"" for key in found.keys)
        gone = (WITHOUT_KEY, TOMBSTONE) if self._is_past_horizon(header) else (WITHOUT_KEY,)
        base_offset = header.base_offset
        return bytes(
            kind or WITH_VALUE
            if delta > reach
            else WITHOUT_KEY
            if kind in gone or offset > base_offset + delta
            else kind
            for delta, kind, offset in zip(found.offset_deltas, found.kinds, latest, strict=True)
        )

    def _is_past_horizon(self, header: RecordBatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._horizon_ms

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        """Tell whether a batch holds the last sequence or epoch of a producer that may still go on."""
        last = self._producers.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.data_offset is not None:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def empty_batch(header: RecordBatchHeader) -> bytes:
    """Return a batch of nothing but the header: the offsets and sequences of what was there."""
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


def _rewrite(batch: RecordBatch, deltas: Iterable[int], horizon_ms: int | None) -> bytes:
    """The batch with the records of these offset deltas; timestamps count from the horizon where there is one."""
    header = batch.header
    payload = records_payload(header, batch.data)
    kept = slice_records(payload, header.records_count, set(deltas))
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        timestamps = [header.max_timestamp] * len(kept)
    else:
        timestamps = [header.base_timestamp + each.timestamp_delta for each in kept]
    base_timestamp = _base_timestamp(header, timestamps[0], horizon_ms)
    shifted = join_records(payload, zip(kept, (each - base_timestamp for each in timestamps), strict=True))
    return _assemble(header, shifted, timestamps, horizon_ms)


def _encode(header: RecordBatchHeader, records: Sequence[Record], horizon_ms: int | None) -> bytes:
    """Encode messages of the old formats, as `_rewrite` does batches."""
    timestamps = [record.timestamp for record in records]
    base_timestamp = _base_timestamp(header, timestamps[0], horizon_ms)
    payload = b"".join(
        encode_record(record, record.offset - header.base_offset, record.timestamp - base_timestamp)
        for record in records
    )
    return _assemble(header, payload, timestamps, horizon_ms)


def _base_timestamp(header: RecordBatchHeader, first_timestamp: int, horizon_ms: int | None) -> int:
    if horizon_ms is not None:
        return horizon_ms
    return header.base_timestamp if header.has_delete_horizon else first_timestamp


def _assemble(header: RecordBatchHeader, payload: bytes, timestamps: Sequence[int], horizon_ms: int | None) -> bytes:
    """A batch in the place of the one with this header; the timestamps are those of its records."""
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return assemble_batch(
        payload if header.compression is Compression.NONE else compress(header.compression, payload),
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes if horizon_ms is None else header.attributes | DELETE_HORIZON_MASK,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=_base_timestamp(header, timestamps[0], horizon_ms),
        max_timestamp=header.max_timestamp if is_append_time else max(timestamps),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=len(timestamps),
    )
