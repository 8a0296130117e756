"""Responses whose records still lie in files, as bytes with the headers of batches; the records may be zeros."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from pykbroker.protocol.framing import SIZE_BYTES
from pykbroker.protocol.records.batch import LOG_OVERHEAD_BYTES, RECORD_BATCH_OVERHEAD_BYTES
from pykbroker.server.network.transport import FileRegion, Part

BLOCK_BYTES: Final = 64 * 1024
_START: Final = struct.Struct(">qi")
_MAGIC_OFFSET: Final = 16
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_OFFSET: Final = 23
_MAGIC_V2: Final = 2


def with_headers(parts: Sequence[Part]) -> memoryview:
    """Return a response without its size. What cannot be read any more stays zeros.

    It reads files: not for the event loop where `size_bytes` is large.
    """
    whole = bytearray(size_bytes(parts))
    position = 0
    for part in parts:
        if isinstance(part, (bytes, bytearray, memoryview)):
            whole[position : position + len(part)] = part
            position += len(part)
        else:
            _read_headers(part, memoryview(whole)[position : position + part.size])
            position += part.size
    return memoryview(whole)[SIZE_BYTES:]


def size_bytes(parts: Sequence[Part]) -> int:
    return sum(len(part) if isinstance(part, (bytes, bytearray, memoryview)) else part.size for part in parts)


def last_batch(records: bytes | memoryview) -> bytes | memoryview:
    """Return the last whole batch, and what comes behind it; nothing where there is none."""
    last = None
    for position, _ in _batches(records):
        last = position
    return b"" if last is None else records[last:]


def end_of_records(records: bytes | memoryview) -> int | None:
    """Return the offset behind the last whole batch; None where there is none."""
    end = None
    for position, base_offset in _batches(records):
        delta = 0
        if records[position + _MAGIC_OFFSET] == _MAGIC_V2 and position + RECORD_BATCH_OVERHEAD_BYTES <= len(records):
            (delta,) = _LAST_OFFSET_DELTA.unpack_from(records, position + _LAST_OFFSET_DELTA_OFFSET)
        end = base_offset + delta + 1
    return end


def _batches(records: bytes | memoryview) -> Iterator[tuple[int, int]]:
    position = 0
    while position + _MAGIC_OFFSET < len(records):
        base_offset, length = _START.unpack_from(records, position)
        size = LOG_OVERHEAD_BYTES + length
        if length <= 0 or position + size > len(records):
            return
        yield position, base_offset
        position += size


def _read_headers(region: FileRegion, target: memoryview) -> None:
    descriptor = region.file.fileno()
    if descriptor is None:
        data = region.read()
        target[: len(data)] = data
        return
    position = 0
    while position < region.size:
        block = os.pread(descriptor, min(BLOCK_BYTES, region.size - position), region.position + position)
        if not block:
            return
        target[position : position + len(block)] = block
        begun = position
        while position + LOG_OVERHEAD_BYTES <= begun + len(block):
            _, length = _START.unpack_from(block, position - begun)
            if length <= 0:
                return
            if position + RECORD_BATCH_OVERHEAD_BYTES > begun + len(block) and position > begun:
                break  # its header is read as a whole with the next block
            position += LOG_OVERHEAD_BYTES + length
        if position == begun:
            return
