"""What a log remembers of each producer: the last five batches, epochs, open transactions (`ProducerStateManager`).

It answers whether a batch of an idempotent producer is new, a duplicate or out of order (KIP-98), and writes Kafka's
`.snapshot` files, so that a restart does not read the whole log. Sequences run from 0 to 2^31-1 and start again.
"""

import posixpath
import struct
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import NO_PRODUCER_EPOCH, RecordBatchHeader
from pykbroker.protocol.records.control import ControlRecordType, EndTransactionMarker

from .disk import Disk
from .errors import CorruptLog
from .rejection import RecordsRejected

SNAPSHOT_SUFFIX = ".snapshot"
BATCHES_TO_RETAIN = 5
NO_SEQUENCE = -1
MAX_SEQUENCE = 2**31 - 1

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hI")
_SNAPSHOT_COUNT = struct.Struct(">i")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


class BatchMetadata(NamedTuple):
    """A batch that was appended. `timestamp` is what its answer told: the batch's largest timestamp."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_transaction_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)
        self.coordinator_epoch = -1
        self.current_transaction_first_offset: int | None = None
        self.last_timestamp = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def find_duplicate(self, header: RecordBatchHeader) -> BatchMetadata | None:
        if header.producer_epoch != self.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def set_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


class ProducerStateManager:
    """One log's producers. `end_offset` is up to where the state holds what the log has."""

    def __init__(self, disk: Disk, directory: str, *, expiration_ms: int) -> None:
        self._disk = disk
        self._directory = directory
        self._expiration_ms = expiration_ms
        self._producers: dict[int, ProducerEntry] = {}
        self._open_transactions: dict[int, int] = {}
        self.end_offset = 0
        self.last_snapshot_offset = 0
        """That of the latest snapshot on disk, or where the log starts."""

    @property
    def producers(self) -> dict[int, ProducerEntry]:
        return self._producers

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the earliest transaction that is still open began."""
        return min(self._open_transactions.values()) if self._open_transactions else None

    # Appending

    def check_client_batch(self, header: RecordBatchHeader) -> BatchMetadata | None:
        """For a batch with a producer id: the earlier append that it repeats, or None where it is the next one.

        Raises `RecordsRejected` (INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER).
        """
        entry = self._producers.get(header.producer_id)
        if entry is None:
            # Nothing is known of this producer: too old, or deleted with its records. Any sequence is its first.
            return None
        duplicate = entry.find_duplicate(header)
        if duplicate is not None:
            return duplicate
        self._check_epoch(entry, header.producer_epoch)
        first, last = header.base_sequence, entry.last_sequence
        if entry.producer_epoch == NO_PRODUCER_EPOCH:
            return None
        if header.producer_epoch != entry.producer_epoch:
            in_order = first == 0
        else:
            in_order = first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
        if not in_order:
            raise RecordsRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"out of order sequence number for producer {header.producer_id}: "
                f"{first} (incoming), {last} (current end)",
            )
        return None

    def _check_epoch(self, entry: ProducerEntry, producer_epoch: int) -> None:
        if producer_epoch < entry.producer_epoch:
            raise RecordsRejected(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch of producer {entry.producer_id} is {producer_epoch}, "
                f"which is smaller than the last seen epoch {entry.producer_epoch}",
            )

    def update(self, header: RecordBatchHeader, base_offset: int, max_timestamp: int) -> None:
        """A data batch of a producer was appended at `base_offset`."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            entry = self._producers[header.producer_id] = ProducerEntry(header.producer_id)
        if header.producer_epoch != entry.producer_epoch:
            entry.set_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        entry.batches.append(BatchMetadata(header.last_sequence, base_offset + delta, delta, max_timestamp))
        entry.last_timestamp = max_timestamp
        if header.is_transactional and entry.current_transaction_first_offset is None:
            entry.current_transaction_first_offset = base_offset
            self._open_transactions[header.producer_id] = base_offset

    def check_marker(self, header: RecordBatchHeader, marker: EndTransactionMarker) -> None:
        """Raises `RecordsRejected` for a marker of an old producer or of an old coordinator."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            return
        self._check_epoch(entry, header.producer_epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise RecordsRejected(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} for producer {header.producer_id} "
                f"is smaller than {entry.coordinator_epoch}",
            )

    def update_marker(self, header: RecordBatchHeader, marker: EndTransactionMarker) -> None:
        """A transaction was ended by a marker."""
        assert marker.control_type in (ControlRecordType.COMMIT, ControlRecordType.ABORT)
        entry = self._producers.setdefault(header.producer_id, ProducerEntry(header.producer_id))
        entry.set_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.current_transaction_first_offset = None
        self._open_transactions.pop(header.producer_id, None)

    def remove_expired(self, now_ms: int) -> None:
        """`producer.id.expiration.ms` after the last append; never in the middle of a transaction."""
        expired = [entry.producer_id for entry in self._producers.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self._producers[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        if entry.current_transaction_first_offset is not None:
            return False
        return now_ms - entry.last_timestamp >= self._expiration_ms

    # Snapshots

    def take_snapshot(self, *, sync: bool) -> None:
        """Of the state at `end_offset`, in the file of that name."""
        self._disk.replace_file(self.snapshot_path(self.end_offset), self._encode_snapshot(), sync=sync)
        self.last_snapshot_offset = self.end_offset

    def _encode_snapshot(self) -> bytes:
        entries = [self._producers[producer_id] for producer_id in sorted(self._producers)]
        body = _SNAPSHOT_COUNT.pack(len(entries)) + b"".join(map(_encode_entry, entries))
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body

    def snapshot_offsets(self) -> list[int]:
        """Ascending."""
        names = self._disk.list_directory(self._directory)
        stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def snapshot_path(self, offset: int) -> str:
        return posixpath.join(self._directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")

    def remove_snapshot(self, offset: int) -> None:
        self._disk.remove(self.snapshot_path(offset))

    def load_latest_snapshot(self, log_start_offset: int, end_offset: int, now_ms: int) -> None:
        """Start from the latest sound snapshot up to `end_offset`, or from nothing at `log_start_offset`.

        Later snapshots, and damaged ones, are removed: they tell of batches that are not there, or of nothing.
        """
        self.clear(log_start_offset)
        for offset in reversed(self.snapshot_offsets()):
            if offset > end_offset:
                self.remove_snapshot(offset)
            elif offset >= log_start_offset:
                path = self.snapshot_path(offset)
                try:
                    entries = list(decode_snapshot(self._disk.read_file(path), path))
                except CorruptLog:
                    self.remove_snapshot(offset)
                    continue
                self._take_over(entries, now_ms)
                self.end_offset = self.last_snapshot_offset = offset
                return

    def _take_over(self, entries: list[ProducerEntry], now_ms: int) -> None:
        for entry in entries:
            if self._is_expired(entry, now_ms):
                continue
            self._producers[entry.producer_id] = entry
            if entry.current_transaction_first_offset is not None:
                self._open_transactions[entry.producer_id] = entry.current_transaction_first_offset

    def clear(self, end_offset: int) -> None:
        self._producers.clear()
        self._open_transactions.clear()
        self.end_offset = self.last_snapshot_offset = end_offset


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else BatchMetadata(NO_SEQUENCE, -1, 0, entry.last_timestamp)
    first_offset = entry.current_transaction_first_offset
    return _SNAPSHOT_ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        -1 if first_offset is None else first_offset,
    )


def decode_snapshot(data: bytes, path: str) -> Iterator[ProducerEntry]:
    """The producers of a snapshot file. Raises `CorruptLog` where its checksum or size is wrong."""
    body = data[_SNAPSHOT_HEAD.size :]
    if len(body) < _SNAPSHOT_COUNT.size:
        raise CorruptLog(f"{path} is too short for a producer snapshot")
    version, crc = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptLog(f"{path} is a producer snapshot of the unknown version {version}")
    (count,) = _SNAPSHOT_COUNT.unpack_from(body)
    if crc32c(body) != crc or len(body) != _SNAPSHOT_COUNT.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptLog(f"{path} is a damaged producer snapshot")
    for values in _SNAPSHOT_ENTRY.iter_unpack(body[_SNAPSHOT_COUNT.size :]):
        yield _decode_entry(*values)


def _decode_entry(
    producer_id: int,
    producer_epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id)
    entry.producer_epoch = producer_epoch
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.current_transaction_first_offset = first_offset if first_offset >= 0 else None
    if last_offset >= 0:
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
    return entry
