"""Captured requests and responses as lines: header and body of each frame, and the batches in their records."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import construct

from pykbroker.protocol.api_keys import ApiKey, api_name, request_type, response_type
from pykbroker.protocol.descriptions.frames import REQUEST_START, request_body, response_body
from pykbroker.protocol.descriptions.messages import fields_by_name
from pykbroker.protocol.descriptions.values import parse
from pykbroker.protocol.schema import StructType

from .batch_listing import DamagedFile, batch_lines
from .listing import INDENT, field_lines, preview

_SIZE = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Api:
    """An API in one version: what a file of responses holds."""

    key: int
    version: int

    @classmethod
    def parse(cls, text: str) -> Api:
        """`Fetch:13` or `1:13`. Raises ValueError."""
        name, _, version = text.partition(":")
        known = {api_name(key).lower(): int(key) for key in ApiKey} | {str(int(key)): int(key) for key in ApiKey}
        if name.lower() not in known:
            raise ValueError(f"there is no API '{name}'")
        key = known[name.lower()]
        versions = response_type(key).__schema__.versions
        if not version.isdecimal() or not versions.includes(int(version)):
            raise ValueError(f"{api_name(key)} has no version '{version}', only {versions}")
        return cls(key, int(version))


@dataclass(frozen=True, slots=True)
class Frame:
    """A request, or a response. client: the header's, of requests alone. garbage: what is behind the message."""

    position: int
    message: str
    version: int
    correlation_id: int
    client: str | None
    is_request: bool
    header_tags: list[int]
    fields: dict[str, Any]
    garbage: bytes

    @property
    def as_json(self) -> dict[str, Any]:
        """The frame as an object, whose bytes are left as bytes."""
        client = {"client_id": self.client} if self.is_request else {}
        return {
            "type": "frame",
            "position": self.position,
            "message": self.message,
            "version": self.version,
            "correlation_id": self.correlation_id,
            **client,
            "header_tags": self.header_tags,
            "fields": self.fields,
            "garbage": self.garbage,
        }


def frames(data: memoryview, response_to: Api | None = None) -> Iterator[Frame]:
    """Return every frame, in order: requests, or responses to one API. Raises DamagedFile where they end early."""
    position = 0
    while position < len(data):
        left = len(data) - position - _SIZE.size
        if left < 0:
            raise DamagedFile(f"at byte {position}: {len(data) - position} bytes, too few for a frame")
        (size,) = _SIZE.unpack_from(data, position)
        if not 0 < size <= left:
            raise DamagedFile(f"at byte {position}: a frame of {size} bytes, {left} are left")
        frame = bytes(data[position + _SIZE.size : position + _SIZE.size + size])
        try:
            yield _response(frame, position, response_to) if response_to else _request(frame, position)
        except construct.ConstructError as error:
            raise DamagedFile(f"at byte {position}: {' '.join(str(error).split())}") from error
        position += _SIZE.size + size


def frame_lines(data: memoryview, response_to: Api | None = None) -> Iterator[str]:
    """Return every frame as lines. Raises DamagedFile where the frames end early."""
    for frame in frames(data, response_to):
        line = f"@{frame.position} {frame.message} v{frame.version}  correlation id {frame.correlation_id}"
        if frame.is_request:
            line += f"  client {'null' if frame.client is None else preview(frame.client.encode())}"
        yield line
        yield from _rest(frame)


def _request(frame: bytes, position: int) -> Frame:
    start = parse(REQUEST_START, frame)
    try:
        cls = request_type(start.api_key)
    except KeyError:
        raise DamagedFile(f"at byte {position}: there is no API key {start.api_key}") from None
    versions = cls.__schema__.versions
    if not versions.includes(start.api_version):
        raise DamagedFile(f"at byte {position}: {cls.__name__} has no version {start.api_version}, only {versions}")
    parsed = parse(request_body(start.api_key, start.api_version), frame)
    return _frame(cls, parsed, position, start.api_version, parsed.client_id, is_request=True)


def _response(frame: bytes, position: int, api: Api) -> Frame:
    cls = response_type(api.key)
    parsed = parse(response_body(api.key, api.version), frame)
    return _frame(cls, parsed, position, api.version, None, is_request=False)


def _frame(cls: StructType, parsed: Any, position: int, version: int, client: str | None, *, is_request: bool) -> Frame:
    return Frame(
        position,
        cls.__name__,
        version,
        parsed.correlation_id,
        client,
        is_request,
        [entry.tag for entry in parsed.header_tags or ()],
        fields_by_name(cls, parsed.body, version),
        bytes(parsed.garbage or b""),
    )


def _rest(frame: Frame) -> Iterator[str]:
    if frame.header_tags:
        yield f"{INDENT}header tags: {frame.header_tags}"
    yield from field_lines(frame.fields, 1)
    for records in _records_in(frame.fields):
        yield f"{INDENT}records of {len(records)} bytes:"
        try:
            for line in batch_lines(memoryview(records), with_records=True):
                yield f"{INDENT * 2}{line}"
        except DamagedFile as damage:
            yield f"{INDENT * 2}{damage}"
    if frame.garbage:
        yield f"{INDENT}{len(frame.garbage)} bytes behind the message: {preview(frame.garbage)}"


def _records_in(value: Any) -> Iterator[bytes]:
    """The record batches of a Produce request or a Fetch response, wherever they are nested."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "records" and isinstance(inner, bytes) and inner:
                yield inner
            else:
                yield from _records_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _records_in(inner)
