"""Between a coordinator's records and the log of its partition: batches to append, and what a log holds, read back.

A record that cannot be understood, or that makes no sense, is told and passed over: one bad record of somebody must not
keep a partition's groups or transactions from being served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
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

from .coordinated_shard import CoordinatedShard, LoggedRecord
from .log_lines import printable

_log = logging.getLogger(__name__)

_RECORD_OVERHEAD_BYTES = 32
"""More than a record's own lengths and deltas take."""
_BATCH_OVERHEAD_BYTES = 128
_SKIPPED_SHOWN = 10
"""Lines that one load writes about what it skips; the rest is counted."""


def record_room_bytes(max_batch_bytes: int) -> int:
    """What the key and the value of one record may take together."""
    return max_batch_bytes - _BATCH_OVERHEAD_BYTES - _RECORD_OVERHEAD_BYTES


def encode_batches(
    steps: Sequence[Sequence[LoggedRecord]], timestamp_ms: int, max_bytes: int, producer: tuple[int, int] | None = None
) -> list[bytes]:
    """The records of a step are in one batch, so that they are there together or not at all; in more only where one
    would be too large. Steps share a batch while it has room.

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


def _parts(steps: Sequence[Sequence[LoggedRecord]], timestamp_ms: int, room_bytes: int) -> Iterator[list[Record]]:
    part: list[Record] = []
    left = room_bytes
    for step in steps:
        encoded = [record.encode() for record in step]
        sizes = [len(key) + len(value or b"") + _RECORD_OVERHEAD_BYTES for key, value in encoded]
        if part and sum(sizes) > left:
            yield part
            part, left = [], room_bytes
        for (key, value), size in zip(encoded, sizes, strict=True):
            if part and size > left:
                yield part
                part, left = [], room_bytes
            part.append(Record(key=key, value=value, timestamp=timestamp_ms))
            left -= size
    yield part


class Replayer:
    """Feeds what was read from a partition's log into a shard: records, those of open transactions, and their ends.

    decode_record: a record from its key and value; raises BadRecord.
    """

    def __init__(
        self,
        shard: CoordinatedShard[Any, Any],
        decode_record: Callable[[bytes | None, bytes | None], LoggedRecord],
        partition_name: str,
    ) -> None:
        self._shard = shard
        self._decode_record = decode_record
        self._partition_name = partition_name
        self.replayed = 0
        self.skipped = 0

    def replay(self, data: bytes | memoryview, offset: int) -> int:
        """Where to read on: behind the last whole batch of `data`, which was read at `offset`."""
        try:
            for batch in iter_batches(data, allow_partial=True):
                self._replay_batch(batch)
                offset = batch.header.next_offset
        except InvalidRecords as error:
            self._skip(f"what follows offset {offset}: {error}")
        return offset

    def _replay_batch(self, batch: RecordBatch) -> None:
        header = batch.header
        try:
            records = list(iter_records(batch))
            if header.is_control:
                self._end_transaction(header.producer_id, records)
            else:
                self._replay_records(records, header.producer_id if header.is_transactional else None)
        except InvalidRecords as error:
            self._skip(f"the batch at offset {header.base_offset}: {error}")

    def _end_transaction(self, producer_id: int, markers: list[Record]) -> None:
        for marker in markers:
            kind = decode_control_key(marker.key)
            if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                self._shard.end_transaction(producer_id, kind is ControlRecordType.COMMIT)

    def _replay_records(self, records: list[Record], producer_id: int | None) -> None:
        for record in records:
            try:
                decoded = self._decode_record(record.key, record.value)
                if producer_id is None:
                    self._shard.replay(decoded.key, decoded.value)
                else:
                    self._shard.replay_pending(producer_id, decoded.key, decoded.value)
                self.replayed += 1
            except BadRecord as error:
                self._skip(f"offset {record.offset}: {error}")

    def _skip(self, what: str) -> None:
        self.skipped += 1
        if self.skipped <= _SKIPPED_SHOWN:
            _log.warning("%s: skipped %s", self._partition_name, printable(what))
