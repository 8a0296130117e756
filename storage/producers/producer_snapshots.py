"""Kafka's `.snapshot` files: what a log remembers of its producers, so that a start does not read the whole log."""

import struct
from collections.abc import Iterator, Mapping

from crc32c import crc32c

from ..files.errors import CorruptLog
from .producer_entry import NO_SEQUENCE, BatchMetadata, ProducerEntry

SNAPSHOT_SUFFIX = ".snapshot"

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hI")
_SNAPSHOT_COUNT = struct.Struct(">i")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(producers: Mapping[int, ProducerEntry]) -> bytes:
    """Encode the producers in order of their ids."""
    entries = [producers[producer_id] for producer_id in sorted(producers)]
    body = _SNAPSHOT_COUNT.pack(len(entries)) + b"".join(map(_encode_entry, entries))
    return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body


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
