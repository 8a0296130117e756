"""Walking over a file of batches that may be damaged anywhere: what is a batch, what is not, and where it goes on.

Where a length lies, the next batch is looked for byte by byte: it must have a sound checksum and offsets that may
stand there. Memory is bounded: a batch above `LARGEST_BATCH_BYTES` is checked in pieces and comes without its bytes.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from crc32c import crc32c
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    LOG_OVERHEAD_BYTES,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD_BYTES,
    RecordBatchHeader,
    decode_batch_header,
)
from pykbroker.protocol.records.legacy import (
    MIN_MESSAGE_BYTES,
    OFFSET_AND_SIZE_BYTES,
    decode_message_header,
    is_checksum_right,
)

from ..files.disk import DiskFile
from ..segments.indexes import MAX_RELATIVE_OFFSET

LARGEST_BATCH_BYTES = 64 * 1024 * 1024

_CHUNK_BYTES = 1024 * 1024
_MIN_BATCH_LENGTH = RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES
_MIN_LEGACY_LENGTH = MIN_MESSAGE_BYTES - OFFSET_AND_SIZE_BYTES
_MAGIC = bytes((MAGIC_VALUE_V2,))


class FoundBatch(NamedTuple):
    """A batch by its shape. `data` is None where it is too large to be held."""

    position: int
    header: RecordBatchHeader
    data: memoryview | None
    computed_crc: int

    @property
    def is_crc_valid(self) -> bool:
        return self.computed_crc == self.header.crc

    @property
    def end(self) -> int:
        return self.position + self.header.size_bytes


class FoundLegacyMessage(NamedTuple):
    """A message of the formats 0 and 1, by its shape; perhaps a wrapper of several. `offset` is its last."""

    position: int
    offset: int
    size: int
    magic: int
    data: memoryview
    is_crc_valid: bool

    @property
    def end(self) -> int:
        return self.position + self.size


class Unreadable(NamedTuple):
    """Bytes up to the next batch, or to the file's end, in which none can be made out."""

    position: int
    end: int
    why: str
    is_zero: bool

    @property
    def size(self) -> int:
        return self.end - self.position


Found: TypeAlias = FoundBatch | FoundLegacyMessage | Unreadable


class BatchWalk:
    """A walk over the bytes from `position` to `end`.

    base_offset, end_offset: between them are the offsets of the file; what lies outside is not taken for a batch when
    the next one is looked for.
    """

    def __init__(
        self, file: DiskFile, position: int, end: int, *, base_offset: int = 0, end_offset: int | None = None
    ) -> None:
        self._file = file
        self._position = position
        self._end = end
        self._next_offset = base_offset
        limit = base_offset + MAX_RELATIVE_OFFSET + 1
        self._end_offset = limit if end_offset is None else min(end_offset, limit)
        self._window = memoryview(b"")
        self._window_at = 0

    def __iter__(self) -> Iterator[Found]:
        position = self._position
        while position < self._end:
            found = self._at(position)
            if isinstance(found, FoundBatch) and found.is_crc_valid:
                self._next_offset = max(self._next_offset, self._plausible_end(found.header))
            yield found
            position = found.end

    def _plausible_end(self, header: RecordBatchHeader) -> int:
        """A checksum does not cover the base offset."""
        is_plausible = header.last_offset_delta >= 0 and header.next_offset <= self._end_offset
        return header.next_offset if is_plausible else self._next_offset

    def _at(self, position: int) -> Found:
        legacy = self._legacy_at(position)
        if legacy is not None:
            return legacy
        header = self._header_at(position)
        why = self._why_no_batch(position, header)
        if why is None:
            assert header is not None
            batch = self._batch_at(position, header)
            if batch.is_crc_valid or self._may_go_on_at(batch.end):
                return batch
            why = f"the checksum is wrong, and no batch follows after its {header.size_bytes} bytes"
        end = self._find_next(position + 1)
        is_zero = self._is_zero(position, end)
        return Unreadable(position, end, f"{end - position} zero bytes" if is_zero else why, is_zero)

    def _header_at(self, position: int) -> RecordBatchHeader | None:
        if position + RECORD_BATCH_OVERHEAD_BYTES > self._end:
            return None
        head = self._read(position, RECORD_BATCH_OVERHEAD_BYTES)
        return decode_batch_header(head) if len(head) == RECORD_BATCH_OVERHEAD_BYTES else None

    def _why_no_batch(self, position: int, header: RecordBatchHeader | None) -> str | None:
        left = self._end - position
        if header is None:
            return f"{left} bytes, too few for a batch"
        if header.magic != MAGIC_VALUE_V2:
            return f"no batch: its format would be {header.magic}"
        if header.batch_length < _MIN_BATCH_LENGTH:
            return f"no batch: its length would be {header.batch_length}"
        if header.size_bytes > left:
            return f"a batch of {header.size_bytes} bytes, of which {left} are there"
        return None

    def _batch_at(self, position: int, header: RecordBatchHeader) -> FoundBatch:
        size = header.size_bytes
        if size > LARGEST_BATCH_BYTES:
            return FoundBatch(position, header, None, self._crc(position + ATTRIBUTES_OFFSET, position + size))
        data = self._read(position, size)
        return FoundBatch(position, header, data, crc32c(data[ATTRIBUTES_OFFSET:]))

    def _crc(self, start: int, end: int) -> int:
        crc = 0
        for at in range(start, end, _CHUNK_BYTES):
            crc = crc32c(self._file.read_at(at, min(_CHUNK_BYTES, end - at)), crc)
        return crc

    def _may_go_on_at(self, position: int) -> bool:
        """Tell whether the file ends there, or something follows that has the shape of a batch."""
        if position == self._end:
            return True
        header = self._header_at(position)
        if header is None or self._why_no_batch(position, header) is not None:
            return False
        return self._next_offset <= header.base_offset < self._end_offset

    def _legacy_at(self, position: int) -> FoundLegacyMessage | None:
        head = self._read(position, MAGIC_OFFSET + 1)
        if len(head) <= MAGIC_OFFSET or head[MAGIC_OFFSET] not in (0, 1):
            return None
        length = int.from_bytes(head[8:12], "big", signed=True)
        size = LOG_OVERHEAD_BYTES + length
        if length < _MIN_LEGACY_LENGTH or position + size > self._end or size > LARGEST_BATCH_BYTES:
            return None
        data = self._read(position, size)
        if decode_message_header(data) is None:
            return None
        offset, magic = int.from_bytes(head[:8], "big", signed=True), head[MAGIC_OFFSET]
        return FoundLegacyMessage(position, offset, size, magic, data, is_checksum_right(data))

    # Looking for the next batch

    def _find_next(self, position: int) -> int:
        """The next sound batch whose offsets may stand here, or the end."""
        while position + RECORD_BATCH_OVERHEAD_BYTES <= self._end:
            chunk = self._file.read_at(position, min(_CHUNK_BYTES, self._end - position))
            at = chunk.find(_MAGIC, MAGIC_OFFSET)
            while at >= 0:
                if self._is_sound_batch_at(position + at - MAGIC_OFFSET):
                    return position + at - MAGIC_OFFSET
                at = chunk.find(_MAGIC, at + 1)
            if len(chunk) <= MAGIC_OFFSET:
                break
            position += len(chunk) - MAGIC_OFFSET
        return self._end

    def _is_sound_batch_at(self, position: int) -> bool:
        if position + RECORD_BATCH_OVERHEAD_BYTES > self._end:
            return False
        header = decode_batch_header(self._file.read_at(position, RECORD_BATCH_OVERHEAD_BYTES))
        if not self._next_offset <= header.base_offset <= header.last_offset < self._end_offset:
            return False
        if self._why_no_batch(position, header) is not None:
            return False
        return self._crc(position + ATTRIBUTES_OFFSET, position + header.size_bytes) == header.crc

    def _is_zero(self, position: int, end: int) -> bool:
        for at in range(position, end, _CHUNK_BYTES):
            chunk = self._file.read_at(at, min(_CHUNK_BYTES, end - at))
            if chunk != bytes(len(chunk)):
                return False
        return True

    # Reading

    def _read(self, position: int, size: int) -> memoryview:
        at = position - self._window_at
        if not 0 <= at <= at + size <= len(self._window):
            wanted = min(max(size, _CHUNK_BYTES), self._end - position)
            self._window, self._window_at, at = memoryview(self._file.read_at(position, wanted)), position, 0
        return self._window[at : at + size]
