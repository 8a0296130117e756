"""The codecs of record batches, and the one place that decompresses.

Every decompression is bounded: output beyond `limit_bytes` is never produced, so that a small batch cannot take the
memory of the process, and neither are more gzip members or snappy blocks read than a writer has a reason for. Large
output is for threads (`decompress_large`): it goes into pages that nobody has touched before, in pieces that each hold
the interpreter's lock for a moment.

Snappy is read raw and in the block framing of `xerial/snappy-java`, which Java clients write; LZ4 is the frame format
with independent blocks, the only one that Java clients read.

The library of these codecs is a megabyte and a half of machine code. Each function that needs it imports it, so that a
broker has it in memory from the first batch on that is compressed with one of them.
"""

import mmap as mmap_module
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import NamedTuple, TypeAlias

from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords

_LEAST_LIMIT_BYTES = 64 * 1024 * 1024
_MOST_LIMIT_BYTES = 1024 * 1024 * 1024
_LIMIT_FACTOR = 32

MAX_PARTS = 1 << 14
"""Of a client's batch. Kafka's clients write one gzip member, and a snappy block for each 32 KiB."""

Buffer: TypeAlias = bytes | bytearray | memoryview


class Compression(IntEnum):
    """Bits 0–2 of a batch's attributes; the names in lower case are those of `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_attributes(cls, attributes: int) -> "Compression":
        """Raises `InvalidRecords` (UNSUPPORTED_COMPRESSION_TYPE) for the ids 5–7, which mean nothing."""
        codec = _BY_ID.get(attributes & 7)
        if codec is None:
            raise InvalidRecords(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression id {attributes & 7}")
        return codec


_BY_ID = {int(codec): codec for codec in Compression}

_LZ4_INPUT_BYTES = 1024 * 1024

DEFAULT_LEVELS = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}


def limit_of(compressed_bytes: int) -> int:
    """Return how much a batch may decompress to: 64 MiB, and more where the topic takes batches of more than 2 MiB."""
    return min(max(_LEAST_LIMIT_BYTES, _LIMIT_FACTOR * compressed_bytes), _MOST_LIMIT_BYTES)


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """`level` is that of `compression.gzip.level`, `compression.lz4.level`, `compression.zstd.level`."""
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            compressor = zlib.compressobj(level, zlib.DEFLATED, wbits=31)
            return compressor.compress(data) + compressor.flush()
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            import cramjam

            lz4 = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
            for start in range(0, len(data), _LZ4_INPUT_BYTES):
                lz4.compress(bytes(data[start : start + _LZ4_INPUT_BYTES]))
            return bytes(lz4.finish())
        case Compression.ZSTD:
            import cramjam

            return bytes(cramjam.zstd.compress(data, level=level))


def decompress(
    codec: Compression, data: Buffer, limit_bytes: int | None = None, *, max_parts: int = sys.maxsize
) -> bytes | bytearray:
    """Raises `InvalidRecords`: CORRUPT_MESSAGE for damaged data, MESSAGE_TOO_LARGE beyond a limit.

    limit_bytes: `limit_of` the data, where it is not given. max_parts: gzip members or snappy blocks.
    """
    if limit_bytes is None:
        limit_bytes = limit_of(len(data))
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return b"".join(_gunzip(memoryview(data), limit_bytes, max_parts))
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), limit_bytes, max_parts)
        case Compression.LZ4:
            import cramjam

            return _decompress_growing("lz4", cramjam.lz4.decompress_into, data, limit_bytes)
        case Compression.ZSTD:
            import cramjam

            return _decompress_growing("zstd", cramjam.zstd.decompress_into, data, limit_bytes)


class LargePayload(NamedTuple):
    """The first `size` bytes of `data`."""

    data: bytes | mmap
    size: int


_COPIED_BYTES = 8 * 1024 * 1024
"""To look at bytes takes half the time of looking at a mapping."""


def decompress_large(codec: Compression, data: Buffer, limit_bytes: int, *, max_parts: int = MAX_PARTS) -> LargePayload:
    """Decompress as `decompress` does, in a thread beside the event loop, which hardly notices it.

    To clear 64 MiB for a `bytearray` takes 40 ms under the interpreter's lock; pages of a mapping come one by one,
    while the codec writes without the lock.
    """
    output = mmap(-1, max(limit_bytes, 1), flags=MAP_PRIVATE | MAP_ANONYMOUS)
    if limit_bytes > _COPIED_BYTES:
        _wish_for_huge_pages(output)
    size: int | None
    match codec:
        case Compression.GZIP:
            size = _gunzip_into(output, memoryview(data), limit_bytes, max_parts)
        case Compression.SNAPPY:
            size = _decompress_snappy_into(output, memoryview(data), limit_bytes, max_parts)
        case Compression.LZ4:
            import cramjam

            size = _decompress_into("lz4", cramjam.lz4.decompress_into, data, output)
        case Compression.ZSTD:
            import cramjam

            size = _decompress_into("zstd", cramjam.zstd.decompress_into, data, output)
        case Compression.NONE:
            raise AssertionError("there is nothing to decompress")
    if size is None:
        raise too_large(limit_bytes)
    return LargePayload(output[:size] if size <= _COPIED_BYTES else output, size)


def _wish_for_huge_pages(output: mmap) -> None:
    """64 MiB in small pages cost 30 ms of faults, and 6 ms on the event loop when they are given back."""
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without them
            output.madvise(mmap_module.MADV_HUGEPAGE)


def too_large(limit_bytes: int) -> InvalidRecords:
    return InvalidRecords(ErrorCode.MESSAGE_TOO_LARGE, f"the batch decompresses to more than {limit_bytes} bytes")


def _too_many_parts(max_parts: int) -> InvalidRecords:
    return InvalidRecords(ErrorCode.MESSAGE_TOO_LARGE, f"the batch is compressed in more than {max_parts} parts")


def _corrupt(codec: str, cause: object) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is damaged: {cause}")


_LEAST_INPUT_BYTES = 1024
_MOST_INPUT_BYTES = 256 * 1024
_OUTPUT_BYTES = 256 * 1024


def _gunzip(data: memoryview, limit_bytes: int, max_parts: int) -> Iterator[bytes]:
    """One or more gzip members, as `GZIPInputStream` reads them; anything else behind them is damage.

    Each member gets its input in pieces that begin small, because what it leaves over is copied.
    """
    room = limit_bytes
    position = 0
    for _ in range(max_parts):
        member = zlib.decompressobj(wbits=31)
        input_bytes = _LEAST_INPUT_BYTES
        tail = b""
        while not member.eof:
            piece: Buffer = tail
            if not piece:
                piece = data[position : position + input_bytes]
                position += len(piece)
                input_bytes = min(2 * input_bytes, _MOST_INPUT_BYTES)
            try:
                part = member.decompress(piece, min(room + 1, _OUTPUT_BYTES))
            except zlib.error as error:
                raise _corrupt("gzip", error) from error
            tail = member.unconsumed_tail
            if len(part) > room:
                raise too_large(limit_bytes)
            room -= len(part)
            if part:
                yield part
            elif not piece and not member.eof:
                raise _corrupt("gzip", "it ends too early")
        position -= len(member.unused_data)
        if position == len(data):
            return
    raise _too_many_parts(max_parts)


def _gunzip_into(output: mmap, data: memoryview, limit_bytes: int, max_parts: int) -> int:
    position = 0
    for part in _gunzip(data, limit_bytes, max_parts):
        output[position : position + len(part)] = part
        position += len(part)
    return position


_OUTPUT_FULL = "failed to write whole buffer"
DecompressInto: TypeAlias = Callable[[Buffer, bytearray | mmap], int]


def _decompress_into(codec: str, decompress_into: DecompressInto, data: Buffer, output: bytearray | mmap) -> int | None:
    """Return how much was written; None where the output is too small."""
    import cramjam

    try:
        return decompress_into(data, output)
    except cramjam.DecompressionError as error:
        if _OUTPUT_FULL in str(error):
            return None
        raise _corrupt(codec, error) from error


def _decompress_growing(codec: str, decompress_into: DecompressInto, data: Buffer, limit_bytes: int) -> bytearray:
    """Decompress into a buffer of a likely size, then into larger ones up to the limit.

    Neither Java's LZ4 nor its zstd writes the content size, and a buffer of the limit for every batch would cost
    more than the second try that a very compressible batch needs.
    """
    size = min(limit_bytes, max(1 << 16, 8 * len(data)))
    while True:
        output = bytearray(size)
        written = _decompress_into(codec, decompress_into, data, output)
        if written is not None:
            del output[written:]
            return output
        if size >= limit_bytes:
            raise too_large(limit_bytes)
        size = min(limit_bytes, 8 * size)


_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024


def _compress_xerial(data: memoryview) -> bytes:
    import cramjam

    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit_bytes: int, max_parts: int) -> bytes:
    import cramjam

    parts: list[bytes] = []
    try:
        for block, _ in _snappy_blocks(data, limit_bytes, max_parts):
            parts.append(bytes(cramjam.snappy.decompress_raw(block)))
    except cramjam.DecompressionError as error:
        raise _corrupt("snappy", error) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_snappy_into(output: mmap, data: memoryview, limit_bytes: int, max_parts: int) -> int:
    import cramjam

    position = 0
    with memoryview(output) as view:
        try:
            for block, size in _snappy_blocks(data, limit_bytes, max_parts):
                with view[position : position + size] as room:
                    cramjam.snappy.decompress_raw_into(block, room)
                position += size
        except cramjam.DecompressionError as error:
            raise _corrupt("snappy", error) from error
    return position


def _snappy_blocks(data: memoryview, limit_bytes: int, max_parts: int) -> Iterator[tuple[memoryview, int]]:
    """Each with the size that it says it has. Headers may stand between them, where streams were put together."""
    import cramjam

    room = limit_bytes
    for number, block in enumerate(_framed_blocks(data)):
        if number >= max_parts:
            raise _too_many_parts(max_parts)
        size = cramjam.snappy.decompress_raw_len(block)
        if size > room:
            raise too_large(limit_bytes)
        room -= size
        yield block, size


def _framed_blocks(data: memoryview) -> Iterator[memoryview]:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield data
        return
    position = 0
    while position < len(data):
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            if position > len(data):
                raise _corrupt("snappy", "its header is cut off")
            continue
        block_start = position + 4
        position = block_start + int.from_bytes(data[position:block_start], "big")
        if block_start > len(data) or position > len(data):
            raise _corrupt("snappy", "a block ends beyond the data")
        yield data[block_start:position]
