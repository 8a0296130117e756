"""A coordinator's records as batches of its partition's log, and back.

Reading never fails on content: a batch or a record that cannot be understood is skipped with a line in the log, so
that one bad record (`__consumer_offsets` can be produced to) does not keep a partition's groups from being served.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from pykbroker.groups.records import BadRecord, CoordinatorRecord, decode_record
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.records.batch import Record, RecordBatch, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key
from pykbroker.protocol.records.errors import InvalidRecords

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


def encode_batches(records: Sequence[CoordinatorRecord], timestamp_ms: int, max_bytes: int) -> list[bytes]:
    """One batch, so that the records are there together or not at all; more only where one would be too large."""
    return [encode_batch(part) for part in _parts(records, timestamp_ms, max_bytes)]


def _parts(records: Sequence[CoordinatorRecord], timestamp_ms: int, max_bytes: int) -> Iterator[list[Record]]:
    part: list[Record] = []
    room = max_bytes - _BATCH_OVERHEAD_BYTES
    for record in records:
        key, value = record.encode()
        size = len(key) + len(value or b"") + _RECORD_OVERHEAD_BYTES
        if part and size > room:
            yield part
            part, room = [], max_bytes - _BATCH_OVERHEAD_BYTES
        part.append(Record(key=key, value=value, timestamp=timestamp_ms))
        room -= size
    yield part


class Replayer:
    """Feeds what was read from a partition's log into a shard.

    Records of a transaction are kept back until its marker says that they count (KIP-98).
    """

    def __init__(self, shard: GroupShard, partition_name: str) -> None:
        self._shard = shard
        self._partition_name = partition_name
        self._undecided: dict[int, list[Record]] = {}
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
                self._decide(header.producer_id, records)
            elif header.is_transactional:
                self._undecided.setdefault(header.producer_id, []).extend(records)
            else:
                self._replay_records(records)
        except InvalidRecords as error:
            self._skip(f"the batch at offset {header.base_offset}: {error}")

    def _decide(self, producer_id: int, markers: list[Record]) -> None:
        for marker in markers:
            records = self._undecided.pop(producer_id, [])
            if decode_control_key(marker.key) is ControlRecordType.COMMIT:
                self._replay_records(records)

    def _replay_records(self, records: list[Record]) -> None:
        for record in records:
            try:
                decoded = decode_record(record.key, record.value)
                self._shard.replay(decoded.key, decoded.value)
                self.replayed += 1
            except BadRecord as error:
                self._skip(f"offset {record.offset}: {error}")

    def _skip(self, what: str) -> None:
        self.skipped += 1
        if self.skipped <= _SKIPPED_SHOWN:
            _log.warning("%s: skipped %s", self._partition_name, printable(what))
