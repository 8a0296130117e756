"""Frames: a size of four bytes, then a header, then a message.

A request's header says which message follows, so its own version can only be known by looking at its first bytes:
version 2, which adds tagged fields, goes with the flexible versions of an API. The header of a response follows its
request; ApiVersions alone always answers with the old one, for clients that do not know the broker yet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from . import compile
from .api_keys import ApiKey, request_type, response_type
from .errors import MalformedMessage
from .messages import headers
from .primitives import MAX_TAGS, read_tag, read_uvarint
from .schema import Message, RecordsRegion

SIZE_BYTES: Final = 4
_SIZE: Final = struct.Struct(">i")
_REQUEST_START: Final = struct.Struct(">hhih")
"""API key, version, correlation id, and the size of the client id, which every version has."""
_RESPONSE_START: Final = struct.Struct(">ii")
"""Size and correlation id."""
_KNOWN_VERSIONS: Final = 1024
"""More than all APIs have together. What is remembered stays bounded, since peers may name any version."""


class RequestHeader(NamedTuple):
    """The fields of a request's header; what stands in its tagged section is not kept."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


@lru_cache(_KNOWN_VERSIONS)
def request_header_version(api_key: int, api_version: int) -> int:
    """Return 2 for flexible versions, and else 1. Raises KeyError for an API key that Kafka does not have."""
    return 2 if request_type(api_key).__schema__.flexible.includes(api_version) else 1


@lru_cache(_KNOWN_VERSIONS)
def response_header_version(api_key: int, api_version: int) -> int:
    """Return 1 for flexible versions, but for ApiVersions, and else 0. Raises KeyError for an unknown API key."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if response_type(api_key).__schema__.flexible.includes(api_version) else 0


def decode_request_header(frame: bytes | bytearray | memoryview) -> tuple[RequestHeader, int]:
    """Return the header of a frame, which is given without its size, and where the body begins (in bytes).

    Raises MalformedMessage.

    The version need not be one that the API has: a client may ask for ApiVersions in a version yet to come, and its
    header can still be read.
    """
    data = memoryview(frame)
    if len(data) < _REQUEST_START.size:
        raise MalformedMessage(f"a request of {len(data)} bytes")
    api_key, api_version, correlation_id, size = _REQUEST_START.unpack_from(data)
    try:
        header_version = request_header_version(api_key, api_version)
        client_id, position = None, _REQUEST_START.size
        if size != -1:
            left = len(data) - position
            if size < 0 or size > left:
                raise MalformedMessage(f"a client id of {size} bytes, {left} are left")
            client_id = str(data[position : position + size], "utf-8", "kafka-replace")
            position += size
        if header_version == 2:
            position = _skip_tags(data, position) if data[position] else position + 1
    except KeyError as error:
        raise MalformedMessage(f"there is no API key {api_key}") from error
    except (struct.error, IndexError) as error:
        raise MalformedMessage("the request header is cut short") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def _skip_tags(data: memoryview, position: int) -> int:
    """No tagged field of a request header is known; what a peer puts there is not kept."""
    count, position = read_uvarint(data, position)
    if count > MAX_TAGS:
        raise MalformedMessage(f"{count} tagged fields in a request header")
    last = -1
    for _ in range(count):
        last, _, position = read_tag(data, position, last)
    return position


def decode_response_header(frame: bytes | bytearray | memoryview, api_key: int, api_version: int) -> tuple[int, int]:
    """Return the correlation id of a response's frame, given without its size, and where the body begins (in bytes).

    Raises MalformedMessage.
    """
    header, body = compile.decode(headers.ResponseHeader, response_header_version(api_key, api_version), frame)
    return header.correlation_id, body


def encode_request(request: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return a whole frame, its size included. Raises ValueError for a value that the version has no room for."""
    api_key = request.__schema__.api_key
    assert api_key is not None, f"{type(request).__name__} is not a request"
    header = headers.RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    frame = compile.encode(header, request_header_version(api_key, version)) + compile.encode(request, version)
    return _SIZE.pack(len(frame)) + frame


def encode_response(correlation_id: int, response: Message, version: int) -> list[bytes | RecordsRegion]:
    """Return the parts of a whole frame, its size included; a RecordsRegion is left to the transport."""
    api_key = response.__schema__.api_key
    assert api_key is not None, f"{type(response).__name__} is not a response"
    no_tags = b"\0" if response_header_version(api_key, version) else b""
    parts = compile.encode_parts(response, version)
    size = _SIZE.size + len(no_tags)
    for part in parts:
        size += len(part) if isinstance(part, bytes) else part.size
    prefix = _RESPONSE_START.pack(size, correlation_id) + no_tags
    if parts and isinstance(parts[0], bytes):
        parts[0] = prefix + parts[0]
    else:
        parts.insert(0, prefix)
    return parts


class FrameSplitter:
    """A splitter of a stream of bytes, in whatever pieces it comes, into frames without their sizes.

    It keeps what has arrived, and nothing for what was announced. For tools and tests; the server receives into a
    buffer of its own.
    """

    def __init__(self, largest_frame_bytes: int) -> None:
        self._largest = largest_frame_bytes
        self._received = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Return how much of an unfinished frame has arrived, its size included."""
        return len(self._received)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Yield the frames that these bytes complete. Raises MalformedMessage for a size no frame may have."""
        self._received += data
        start = 0
        try:
            while (end := self._end_of_frame(start)) is not None:
                yield bytes(memoryview(self._received)[start + SIZE_BYTES : end])
                start = end
        finally:
            del self._received[:start]

    def _end_of_frame(self, start: int) -> int | None:
        if len(self._received) - start < SIZE_BYTES:
            return None
        (size,) = _SIZE.unpack_from(self._received, start)
        if not 0 < size <= self._largest:
            raise MalformedMessage(f"a frame of {size} bytes, at most {self._largest} are allowed")
        end: int = start + SIZE_BYTES + size
        return end if end <= len(self._received) else None
