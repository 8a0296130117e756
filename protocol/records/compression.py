"""The codecs of record batches, and the one place that decompresses.

Every decompression is bounded: output beyond `limit_bytes` is never produced, so that a small batch cannot take the
memory of the process. Snappy is read raw and in the block framing of `xerial/snappy-java`, which Java clients write;
LZ4 is the frame format with independent blocks, the only one that Java clients read.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

import cramjam
from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024

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

DEFAULT_LEVELS = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}


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
            lz4 = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
            lz4.compress(bytes(data))
            return bytes(lz4.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(bytes(data), level=level))


def decompress(codec: Compression, data: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes | bytearray:
    """Raises `InvalidRecords`: CORRUPT_MESSAGE for damaged data, MESSAGE_TOO_LARGE beyond `limit_bytes`."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return _gunzip(bytes(data), limit_bytes)
        case Compression.SNAPPY:
            return _decompress_snappy(bytes(data), limit_bytes)
        case Compression.LZ4:
            return _decompress_growing("lz4", cramjam.lz4.decompress_into, bytes(data), limit_bytes)
        case Compression.ZSTD:
            return _decompress_growing("zstd", cramjam.zstd.decompress_into, bytes(data), limit_bytes)


def _too_large(limit_bytes: int) -> InvalidRecords:
    return InvalidRecords(ErrorCode.MESSAGE_TOO_LARGE, f"the batch decompresses to more than {limit_bytes} bytes")


def _corrupt(codec: str, cause: object) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is damaged: {cause}")


def _gunzip(data: bytes, limit_bytes: int) -> bytes:
    """One or more gzip members, as `GZIPInputStream` reads them; anything else behind them is damage."""
    parts: list[bytes] = []
    room = limit_bytes
    while True:
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(data, room + 1)
        except zlib.error as error:
            raise _corrupt("gzip", error) from error
        if len(part) > room:
            raise _too_large(limit_bytes)
        if not member.eof:
            raise _corrupt("gzip", "it ends too early")
        parts.append(part)
        room -= len(part)
        data = member.unused_data
        if not data:
            return parts[0] if len(parts) == 1 else b"".join(parts)


_OUTPUT_FULL = "failed to write whole buffer"


def _decompress_growing(
    codec: str, decompress_into: Callable[[bytes, bytearray], int], data: bytes, limit_bytes: int
) -> bytes | bytearray:
    """Into a buffer of a likely size, then into larger ones up to the limit.

    Neither Java's LZ4 nor its zstd writes the content size, and a buffer of the limit for every batch would cost
    more than the second try that a very compressible batch needs.
    """
    size = min(limit_bytes, max(1 << 16, 8 * len(data)))
    while True:
        output = bytearray(size)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL not in str(error):
                raise _corrupt(codec, error) from error
            if size >= limit_bytes:
                raise _too_large(limit_bytes) from error
            size = min(limit_bytes, 8 * size)
            continue
        del output[written:]
        return output


_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(bytes(data[start : start + _XERIAL_BLOCK_BYTES])))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit_bytes: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit_bytes, limit_bytes)
    parts: list[bytes] = []
    room = limit_bytes
    position = 0
    while position < len(data):
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            if position > len(data):
                raise _corrupt("snappy", "its header is cut off")
            continue
        block_start = position + 4
        position = block_start + int.from_bytes(data[position:block_start], "big")
        if block_start > len(data) or position > len(data):
            raise _corrupt("snappy", "a block ends beyond the data")
        part = _decompress_snappy_block(data[block_start:position], room, limit_bytes)
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _decompress_snappy_block(block: bytes, room: int, limit_bytes: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > room:
            raise _too_large(limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _corrupt("snappy", error) from error
