"""The records in what was fetched. Markers of transactions, and records of aborted ones, are left out.

Bounds: a batch decompresses to `MOST_UNPACKED_BYTES` at most, and has `MOST_RECORDS` at most. One that has more, or is
damaged, is an entry with the problem, and reading goes on behind it. All of this runs in threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput
from pykbroker.client.fetched import AbortedTransactions
from pykbroker.protocol.records.batch import (
    MAGIC_VALUE_V2,
    Record,
    RecordBatch,
    RecordBatchHeader,
    TimestampType,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.compression import limit_of
from pykbroker.protocol.records.errors import InvalidRecords

from .content import Content, content_of
from .fetching import Fetched

MOST_UNPACKED_BYTES: Final = 128 * 1024 * 1024
MOST_RECORDS: Final = 1_000_000
KEY_CHARACTERS: Final = 120
VALUE_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as a list shows it; or, with a problem, a batch of which nothing can be shown."""

    partition: int
    offset: int
    next_offset: int
    timestamp: int
    timestamp_type: str | None
    key: Content | None
    value: Content | None
    headers: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Piece:
    """Records in the order of the log. next_offset: where to read on; size_bytes: of what was fetched;
    looked_at: records that were looked at.
    """

    entries: list[Entry]
    next_offset: int
    size_bytes: int
    looked_at: int


@dataclass(frozen=True, slots=True)
class Whole:
    """One record, and its batch."""

    record: Record
    batch: RecordBatchHeader


@dataclass(frozen=True, slots=True)
class Part:
    """Offsets of a partition, from `start` to the one before `stop`. most: so many of the records are taken."""

    partition: int
    start: int
    stop: int
    most: int


def entries_of(fetched: Fetched, part: Part, key: bytes | None = None) -> Piece:
    """Return the records of a part, with this key where one is given. Raises BadInput where nothing can be read."""
    entries: list[Entry] = []
    position = part.start
    looked_at = 0
    for header, records in _batches(fetched, part.start, part.stop):
        if isinstance(records, str):
            entries.append(_problem(part.partition, max(header.base_offset, position), header, records))
            position = header.next_offset
            continue
        try:
            for record in records:
                if record.offset < position:
                    continue
                if record.offset >= part.stop or len(entries) >= part.most:
                    return Piece(entries, min(record.offset, part.stop), len(fetched.records), looked_at)
                looked_at += 1
                position = record.offset + 1
                if key is None or record.key == key:
                    entries.append(_entry(part.partition, record, header))
        except InvalidRecords as error:
            entries.append(_problem(part.partition, position, header, str(error)))
        position = max(position, header.next_offset)
    if position == part.start < min(part.stop, fetched.end) and len(fetched.records):
        raise BadInput(f"Partition {part.partition} has nothing that can be read at offset {part.start}")
    if not len(fetched.records):
        position = max(position, min(part.stop, fetched.end))
    return Piece(entries, min(position, part.stop), len(fetched.records), looked_at)


def whole_record(fetched: Fetched, offset: int) -> Whole | int | None:
    """Return the record with the offset; the offset of the one behind where there is none; None where none is here.

    Raises BadInput for a batch that cannot be read.
    """
    for header, records in _batches(fetched, offset, 2**63):
        if isinstance(records, str):
            raise BadInput(f"the batch of offset {header.base_offset} cannot be shown: {records}")
        try:
            for record in records:
                if record.offset == offset:
                    return Whole(record, header)
                if record.offset > offset:
                    return record.offset
        except InvalidRecords as error:
            raise BadInput(f"the batch of offset {header.base_offset} cannot be shown: {error}") from None
    return None


def _batches(fetched: Fetched, start: int, stop: int) -> Iterator[tuple[RecordBatchHeader, Iterator[Record] | str]]:
    """Every batch that may have records of the part, with these or the reason why they cannot be read."""
    aborted = AbortedTransactions(fetched.aborted)
    try:
        for batch in iter_batches(fetched.records, allow_partial=True):
            if batch.header.magic >= MAGIC_VALUE_V2 and batch.header.base_offset >= stop:
                return
            found = _records(batch, aborted)
            if batch.header.last_offset >= start:
                yield batch.header, found
    except InvalidRecords as error:
        raise BadInput(f"what stands behind offset {start} cannot be read: {error}") from None


def _records(batch: RecordBatch, aborted: AbortedTransactions) -> Iterator[Record] | str:
    try:
        batch.ensure_valid()
        if aborted.hides(batch):
            return iter(())
        if batch.header.magic >= MAGIC_VALUE_V2 and batch.header.records_count > MOST_RECORDS:
            return f"more than {MOST_RECORDS} records in one batch"
        limit_bytes = min(limit_of(batch.header.size_bytes), MOST_UNPACKED_BYTES)
        return iter_records(batch, limit_bytes=limit_bytes)
    except InvalidRecords as error:
        return str(error)


def _entry(partition: int, record: Record, header: RecordBatchHeader) -> Entry:
    return Entry(
        partition=partition,
        offset=record.offset,
        next_offset=record.offset + 1,
        timestamp=record.timestamp,
        timestamp_type=timestamp_type_of(header),
        key=content_of(record.key, KEY_CHARACTERS, lays_out=False),
        value=content_of(record.value, VALUE_CHARACTERS, lays_out=False),
        headers=len(record.headers),
        problem=None,
    )


def timestamp_type_of(header: RecordBatchHeader) -> str:
    is_of_log = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return "LogAppendTime" if is_of_log else "CreateTime"


def _problem(partition: int, offset: int, header: RecordBatchHeader, problem: str) -> Entry:
    return Entry(partition, offset, header.next_offset, header.max_timestamp, None, None, None, 0, problem)
