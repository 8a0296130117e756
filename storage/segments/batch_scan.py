"""Walking over the batches of a segment file: headers only, or whole batches.

Both stop at the first bytes that are no batch, and leave it to the caller to compare where they stopped with where the
file ends: for a reader that is damage, for recovery a torn tail. Messages of the formats 0 and 1 count as batches; the
loops for format 2 come first and know nothing of them.
"""

from collections.abc import Iterator

from crc32c import crc32c
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    LOG_OVERHEAD_BYTES,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD_BYTES,
    LegacyMessage,
    RecordBatch,
    RecordBatchHeader,
    decode_batch_header,
)
from pykbroker.protocol.records.legacy import (
    MAX_HEADER_BYTES,
    MIN_MESSAGE_BYTES,
    decode_header_fields,
    is_checksum_right,
    is_value_length_right,
    value_length_position,
)

from ..files.cached_reads import Readable
from ..files.disk import DiskFile

_HEADERS_CHUNK_BYTES = 4096
_BATCHES_CHUNK_BYTES = 1024 * 1024
_MIN_BATCH_LENGTH = RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES
_SECTOR_BYTES = 512
_MAX_OFFSET_STEP = 2**31
"""Further on than a segment reaches is not the next batch, but chance."""


def scan_headers(file: Readable, position: int, end: int) -> Iterator[tuple[int, RecordBatchHeader]]:
    """(position, header) of each whole batch between `position` and `end`."""
    chunk = b""
    chunk_at = position
    while position + MIN_MESSAGE_BYTES <= end:
        while position + RECORD_BATCH_OVERHEAD_BYTES <= end:
            at = position - chunk_at
            if at + RECORD_BATCH_OVERHEAD_BYTES > len(chunk):
                chunk = file.read_at(position, min(_HEADERS_CHUNK_BYTES, end - position))
                chunk_at, at = position, 0
                if len(chunk) < RECORD_BATCH_OVERHEAD_BYTES:
                    return
            header = decode_batch_header(chunk, at)
            if header.magic != MAGIC_VALUE_V2 or header.batch_length < _MIN_BATCH_LENGTH:
                break
            next_position = position + LOG_OVERHEAD_BYTES + header.batch_length
            if next_position > end:
                return
            yield position, header
            position = next_position
        legacy_from = position
        for position, header in _scan_legacy_headers(file, legacy_from, end):
            yield position, header
            position += header.size_bytes
        if position == legacy_from:
            return


def scan_batches(file: DiskFile, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """(position, batch) of each whole batch between `position` and `end`; checksums are the caller's business."""
    chunk = memoryview(b"")
    chunk_at = position
    while position + MIN_MESSAGE_BYTES <= end:
        while position + RECORD_BATCH_OVERHEAD_BYTES <= end:
            at = position - chunk_at
            if at + RECORD_BATCH_OVERHEAD_BYTES > len(chunk):
                chunk, chunk_at, at = _read(file, position, _BATCHES_CHUNK_BYTES, end), position, 0
                if len(chunk) < RECORD_BATCH_OVERHEAD_BYTES:
                    return
            header = decode_batch_header(chunk, at)
            if header.magic != MAGIC_VALUE_V2 or header.batch_length < _MIN_BATCH_LENGTH:
                break
            size = header.size_bytes
            if position + size > end:
                return
            if at + size > len(chunk):
                chunk, chunk_at, at = _read(file, position, max(size, _BATCHES_CHUNK_BYTES), end), position, 0
                if len(chunk) < size:
                    return
            yield position, RecordBatch(header, chunk[at : at + size])
            position += size
        legacy_from = position
        for position, header in _scan_legacy_headers(file, legacy_from, end, _BATCHES_CHUNK_BYTES):
            at, size = position - chunk_at, header.size_bytes
            if at + size > len(chunk):
                chunk, chunk_at, at = _read(file, position, max(size, _BATCHES_CHUNK_BYTES), end), position, 0
            yield position, LegacyMessage(header, chunk[at : at + size])
            position += size
        if position == legacy_from:
            return


def _scan_legacy_headers(
    file: Readable, position: int, end: int, chunk_bytes: int = _HEADERS_CHUNK_BYTES
) -> Iterator[tuple[int, RecordBatchHeader]]:
    chunk = b""
    chunk_at = position
    while position + MIN_MESSAGE_BYTES <= end:
        at = position - chunk_at
        if at + MAX_HEADER_BYTES > len(chunk):
            chunk = file.read_at(position, min(chunk_bytes, end - position))
            chunk_at, at = position, 0
        fields = decode_header_fields(chunk, at)
        if fields is None:
            return
        header = RecordBatchHeader._make(fields)
        size = header.size_bytes
        if position + size > end:
            return
        value_length_at = value_length_position(chunk, at)
        value_length = chunk[at + value_length_at : at + value_length_at + 4]
        if len(value_length) < 4:
            value_length = file.read_at(position + value_length_at, 4)
        if not is_value_length_right(int.from_bytes(value_length, "big", signed=True), value_length_at, size):
            return
        yield position, header
        position += size


def _read(file: DiskFile, position: int, size: int, end: int) -> memoryview:
    return memoryview(file.read_at(position, min(size, end - position)))


def count_sound_batches(file: DiskFile, position: int, end: int, next_offset: int) -> int:
    """Return how many batches with a right checksum stand anywhere behind `position`, of `next_offset` or later.

    The bytes there make no sense as they are: the next batch is looked for at each of them. Messages of the old formats
    are found where the length of a damaged one leads to them.
    """
    count = 0
    end = min(end, file.end_of_data())
    for at, batch in scan_batches(file, position, end):
        is_sound = batch.is_crc_valid and batch.header.base_offset >= next_offset
        if batch.header.magic == MAGIC_VALUE_V2 or (at > position and not is_sound):
            break
        count += is_sound
        position = at
    while (found := _find_sound_batch(file, position, end, next_offset)) is not None:
        position = found
        for at, batch in scan_batches(file, found, end):
            if not batch.is_crc_valid:
                break
            count += 1
            position, next_offset = at + batch.header.size_bytes, max(next_offset, batch.header.next_offset)
    return count


def _find_sound_batch(file: DiskFile, position: int, end: int, next_offset: int) -> int | None:
    while position + RECORD_BATCH_OVERHEAD_BYTES <= end:
        chunk = file.read_at(position, min(_BATCHES_CHUNK_BYTES, end - position))
        last = len(chunk) - RECORD_BATCH_OVERHEAD_BYTES
        magic_at = chunk.find(MAGIC_VALUE_V2, MAGIC_OFFSET)
        while 0 <= magic_at <= last + MAGIC_OFFSET:
            at = magic_at - MAGIC_OFFSET
            header = decode_batch_header(chunk, at)
            if 0 <= header.base_offset - next_offset <= _MAX_OFFSET_STEP and header.last_offset_delta >= 0:
                batch = next((batch for _, batch in scan_batches(file, position + at, end)), None)
                if batch is not None and batch.is_crc_valid:
                    return position + at
            magic_at = chunk.find(MAGIC_VALUE_V2, magic_at + 1)
        position += max(last + 1, 1)
    return None


def is_zero(file: DiskFile, position: int, end: int) -> bool:
    """Tell whether a file holds nothing but zeros there; those behind the end of data are not read."""
    end = min(end, file.end_of_data())
    while position < end:
        chunk = file.read_at(position, min(_BATCHES_CHUNK_BYTES, end - position))
        if not chunk or chunk != bytes(len(chunk)):
            return False
        position += len(chunk)
    return True


def lacks_bytes(file: DiskFile, position: int, end: int) -> bool:
    """Tell whether a part of the batch that should be there never came to the disk: its end, or a sector, is zeros.

    A flipped bit leaves neither.
    """
    head = file.read_at(position, min(RECORD_BATCH_OVERHEAD_BYTES, end - position))
    size = RECORD_BATCH_OVERHEAD_BYTES
    if len(head) == size and (header := decode_batch_header(head)).magic == MAGIC_VALUE_V2:
        size = max(header.size_bytes, size)
    data = file.read_at(position, min(size, end - position))
    to_sector = -position % _SECTOR_BYTES
    sectors = range(to_sector, len(data) - _SECTOR_BYTES + 1, _SECTOR_BYTES)
    # One zero is the usual end of a record: it has no headers.
    return data.endswith(b"\0\0") or any(not data[at : at + _SECTOR_BYTES].strip(b"\0") for at in sectors)


def is_torn(file: DiskFile, position: int, end: int, *, is_preallocated: bool = False) -> bool:
    """Tell whether a write that a process did not finish leaves the like: nothing but zeros, or the beginning of a
    batch, behind which the file ends or, where it was preallocated, only zeros follow.

    is_preallocated: the file's segment was, so that the zeros need not go on behind the batch to be known for those.
    """
    written_end = _end_of_bytes(file, position, end)
    if written_end == position:
        return True
    return _is_cut_short(file, position, end) or _is_cut_short_in_zeros(
        file, position, written_end, end if is_preallocated else end - 1
    )


def _end_of_bytes(file: DiskFile, position: int, end: int) -> int:
    """Return where the last byte ends that is no zero; what is behind the end of data is not read."""
    end = min(end, file.end_of_data())
    while end > position:
        start = max(position, end - _BATCHES_CHUNK_BYTES)
        size = len(file.read_at(start, end - start).rstrip(b"\0"))
        if size:
            return start + size
        end = start
    return position


def _is_cut_short_in_zeros(file: DiskFile, position: int, written_end: int, latest_end: int) -> bool:
    """Tell whether the zeros that follow begin within the batch, which ends at `latest_end` at the latest.

    One of them is the usual end of its last record, which has no headers.
    """
    if written_end >= latest_end:
        return False
    if written_end - position <= MAGIC_OFFSET:
        return True
    data = file.read_at(position, RECORD_BATCH_OVERHEAD_BYTES)
    if len(data) < RECORD_BATCH_OVERHEAD_BYTES or data[MAGIC_OFFSET] != MAGIC_VALUE_V2:
        return False
    batch_end = position + decode_batch_header(data).size_bytes
    return written_end - position < RECORD_BATCH_OVERHEAD_BYTES or written_end < batch_end - 1 < latest_end


def _is_cut_short(file: DiskFile, position: int, end: int) -> bool:
    """Tell whether a batch begins there and the file ends within it, as when a write was cut short."""
    data = file.read_at(position, RECORD_BATCH_OVERHEAD_BYTES)
    if len(data) < RECORD_BATCH_OVERHEAD_BYTES:
        return True
    header = decode_batch_header(data)
    if header.magic < MAGIC_VALUE_V2:
        fields = decode_header_fields(data)
        if fields is None or RecordBatchHeader._make(fields).size_bytes <= end - position:
            return False
        return not is_checksum_right(file.read_at(position, end - position))
    if header.magic != MAGIC_VALUE_V2 or header.size_bytes <= end - position:
        return False
    # A whole batch with a damaged length would look the same.
    return crc32c(file.read_at(position + ATTRIBUTES_OFFSET, end - position - ATTRIBUTES_OFFSET)) != header.crc
