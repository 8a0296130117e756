"""The coordinator log stands between a coordinator's records and the log of its partition: batches to append, and what
a log holds, read back.

A record that cannot be understood, or that makes no sense, is told and passed over: one bad record of somebody must not
keep a partition's groups or transactions from being served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pykbroker.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Record,
    RecordBatch,
    encode_batch,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.state_machine import BadRecord

from ..runtime.log_lines import printable
from .coordinated_shard import CoordinatedShard, EncodableRecord, LoggedRecord

_log = logging.getLogger(__name__)

_RECORD_OVERHEAD_BYTES = 32
"""More than a record's own lengths and deltas take."""
_BATCH_OVERHEAD_BYTES = 128
_SLICE_BYTES = 1 << 15
"""Of records that are applied in one turn of the event loop: some milliseconds."""
_ITEM_BYTES = 64
"""What a record without a key and a value counts for."""
_SKIPPED_SHOWN = 10
"""Lines that one load writes about what it skips; the rest is counted."""


def record_room_bytes(max_batch_bytes: int) -> int:
    """Return what the key and the value of one record may take together."""
    return max_batch_bytes - _BATCH_OVERHEAD_BYTES - _RECORD_OVERHEAD_BYTES


def encode_batches(
    steps: Sequence[Sequence[EncodableRecord]],
    timestamp_ms: int,
    max_bytes: int,
    producer: tuple[int, int] | None = None,
) -> list[bytes]:
    """Encode the records of steps. Those of a step are in one batch, so that they are there together or not at all; in
    more only where one would be too large. Steps share a batch while it has room.

    producer: id and epoch of the one in whose transaction they are.
    """
    producer_id, producer_epoch = producer or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    return [
        encode_batch(
            part,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer is not None,
        )
        for part in _parts(steps, timestamp_ms, max_bytes - _BATCH_OVERHEAD_BYTES)
    ]


def _parts(steps: Sequence[Sequence[EncodableRecord]], timestamp_ms: int, room_bytes: int) -> Iterator[list[Record]]:
    part: list[Record] = []
    left = room_bytes
    for step in steps:
        encoded = [record.encode() for record in step]
        sizes = [len(key) + len(value or b"") + _RECORD_OVERHEAD_BYTES for key, value in encoded]
        size = sum(sizes)
        if part and size > left:
            yield part
            part, left = [], room_bytes
        if size <= left:
            part += [Record(key, value, (), timestamp_ms) for key, value in encoded]
            left -= size
            continue
        for (key, value), size in zip(encoded, sizes, strict=True):
            if part and size > left:
                yield part
                part, left = [], room_bytes
            part.append(Record(key, value, (), timestamp_ms))
            left -= size
    yield part


# What a log holds


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A decoded record is one of the log's. producer_id: of the one in whose transaction it is, which has not ended
    here; None where it is in none.
    """

    offset: int
    size_bytes: int
    record: LoggedRecord
    producer_id: int | None


@dataclass(frozen=True, slots=True)
class EndOfTransaction:
    """The end of a transaction is a marker in the log."""

    producer_id: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of the log is skipped. what: in words for an operator."""

    what: str


@dataclass(slots=True)
class DecodedPiece:
    """A piece of the log is decoded as a whole. items: in the order of the log. next_offset: where to read on, behind
    the last whole batch.
    """

    next_offset: int
    items: list[DecodedRecord | EndOfTransaction | Skipped] = field(default_factory=list)


def decode_piece(
    data: bytes | memoryview, offset: int, decode_record: Callable[[bytes | None, bytes | None], LoggedRecord]
) -> DecodedPiece:
    """Decode what was read at `offset`. It may run in a thread. decode_record: raises BadRecord."""
    piece = DecodedPiece(offset)
    try:
        for batch in iter_batches(data, allow_partial=True):
            piece.items += _decode_batch(batch, decode_record)
            piece.next_offset = batch.header.next_offset
    except InvalidRecords as error:
        piece.items.append(Skipped(f"what follows offset {piece.next_offset}: {error}"))
    return piece


def _decode_batch(
    batch: RecordBatch, decode_record: Callable[[bytes | None, bytes | None], LoggedRecord]
) -> list[DecodedRecord | EndOfTransaction | Skipped]:
    header = batch.header
    try:
        records = list(iter_records(batch))
        if header.is_control:
            return list(_ends_of_transactions(header.producer_id, records))
    except InvalidRecords as error:
        return [Skipped(f"the batch at offset {header.base_offset}: {error}")]
    producer_id = header.producer_id if header.is_transactional else None
    return [_decode(record, producer_id, decode_record) for record in records]


def _ends_of_transactions(producer_id: int, markers: Sequence[Record]) -> Iterator[EndOfTransaction]:
    for marker in markers:
        kind = decode_control_key(marker.key)
        if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
            yield EndOfTransaction(producer_id, kind is ControlRecordType.COMMIT)


def _decode(
    record: Record, producer_id: int | None, decode_record: Callable[[bytes | None, bytes | None], LoggedRecord]
) -> DecodedRecord | Skipped:
    try:
        decoded = decode_record(record.key, record.value)
    except BadRecord as error:
        return Skipped(f"offset {record.offset}: {error}")
    size_bytes = len(record.key or b"") + len(record.value or b"")
    return DecodedRecord(record.offset, size_bytes, decoded, producer_id)


class Replayer:
    """The replayer feeds what was read from a partition's log into a shard: records, those of open transactions, and
    their ends.

    logged: told of each record that was replayed, and of its offset; None where nobody wants to know.
    """

    def __init__(
        self,
        shard: CoordinatedShard[Any, Any],
        partition_name: str,
        logged: Callable[[Any, int], None] | None = None,
    ) -> None:
        self._shard = shard
        self._logged = logged
        self._partition_name = partition_name
        self.replayed = 0
        self.skipped = 0

    def apply(self, piece: DecodedPiece) -> Iterator[None]:
        """Apply the piece in slices: between two of them others may have the event loop."""
        bytes_left = _SLICE_BYTES
        for item in piece.items:
            bytes_left -= _ITEM_BYTES
            match item:
                case DecodedRecord():
                    bytes_left -= item.size_bytes
                    self._replay(item)
                case EndOfTransaction():
                    self._shard.end_transaction(item.producer_id, item.is_commit)
                    while self._shard.tidy_up():
                        yield
                case Skipped():
                    self._skip(item.what)
            if bytes_left <= 0:
                bytes_left = _SLICE_BYTES
                yield

    def _replay(self, item: DecodedRecord) -> None:
        key, value = item.record.key, item.record.value
        try:
            if item.producer_id is None:
                self._shard.replay(key, value)
            else:
                self._shard.replay_pending(item.producer_id, key, value)
            self.replayed += 1
            if self._logged is not None:
                self._logged(item.record, item.offset)
        except BadRecord as error:
            self._skip(f"offset {item.offset}: {error}")

    def _skip(self, what: str) -> None:
        self.skipped += 1
        if self.skipped <= _SKIPPED_SHOWN:
            _log.warning("%s: skipped %s", self._partition_name, printable(what))
