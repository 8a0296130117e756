"""Walking over the batches of a segment file: headers only, or whole batches.

Both stop at the first bytes that are no batch of format 2, and leave it to the caller to compare where they stopped
with where the file ends: for a reader that is damage, for recovery a torn tail.
"""

import zlib
from collections.abc import Iterator

from pykbroker.protocol.records.batch import (
    LOG_OVERHEAD_BYTES,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD_BYTES,
    RecordBatch,
    RecordBatchHeader,
    decode_batch_header,
)

from .disk import DiskFile
from .errors import CorruptLog

_HEADERS_CHUNK_BYTES = 4096
_BATCHES_CHUNK_BYTES = 1024 * 1024
_MIN_BATCH_LENGTH = RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES
_LEGACY_OVERHEAD_BYTES = 14


def scan_headers(file: DiskFile, position: int, end: int) -> Iterator[tuple[int, RecordBatchHeader]]:
    """(position, header) of each whole batch between `position` and `end`."""
    chunk = b""
    chunk_at = position
    while position + RECORD_BATCH_OVERHEAD_BYTES <= end:
        at = position - chunk_at
        if at + RECORD_BATCH_OVERHEAD_BYTES > len(chunk):
            chunk = file.read_at(position, min(_HEADERS_CHUNK_BYTES, end - position))
            chunk_at, at = position, 0
            if len(chunk) < RECORD_BATCH_OVERHEAD_BYTES:
                return
        header = decode_batch_header(chunk, at)
        if header.magic != MAGIC_VALUE_V2 or header.batch_length < _MIN_BATCH_LENGTH:
            return
        next_position = position + LOG_OVERHEAD_BYTES + header.batch_length
        if next_position > end:
            return
        yield position, header
        position = next_position


def scan_batches(file: DiskFile, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """(position, batch) of each whole batch between `position` and `end`; checksums are the caller's business."""
    chunk = memoryview(b"")
    chunk_at = position
    while position + RECORD_BATCH_OVERHEAD_BYTES <= end:
        at = position - chunk_at
        if at + RECORD_BATCH_OVERHEAD_BYTES > len(chunk):
            chunk, chunk_at, at = _read(file, position, _BATCHES_CHUNK_BYTES, end), position, 0
            if len(chunk) < RECORD_BATCH_OVERHEAD_BYTES:
                return
        header = decode_batch_header(chunk, at)
        if header.magic != MAGIC_VALUE_V2 or header.batch_length < _MIN_BATCH_LENGTH:
            return
        size = header.size_bytes
        if position + size > end:
            return
        if at + size > len(chunk):
            chunk, chunk_at, at = _read(file, position, max(size, _BATCHES_CHUNK_BYTES), end), position, 0
            if len(chunk) < size:
                return
        yield position, RecordBatch(header, chunk[at : at + size])
        position += size


def _read(file: DiskFile, position: int, size: int, end: int) -> memoryview:
    return memoryview(file.read_at(position, min(size, end - position)))


def refuse_legacy_format(file: DiskFile, position: int, end: int) -> None:
    """Raises `CorruptLog` where a sound message of the formats 0 or 1 stands: to cut it off would lose data."""
    head = file.read_at(position, MAGIC_OFFSET + 1)
    if len(head) <= MAGIC_OFFSET or head[MAGIC_OFFSET] not in (0, 1):
        return
    length = int.from_bytes(head[8:12], "big", signed=True)
    if length < _LEGACY_OVERHEAD_BYTES or position + LOG_OVERHEAD_BYTES + length > end:
        return
    message = file.read_at(position + LOG_OVERHEAD_BYTES, length)
    if zlib.crc32(message[4:]) == int.from_bytes(message[:4], "big"):
        raise CorruptLog(f"{file.path} holds messages of the old format {head[MAGIC_OFFSET]}, which is not supported")
