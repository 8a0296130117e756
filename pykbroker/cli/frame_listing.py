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


def frame_lines(data: memoryview, response_to: Api | None = None) -> Iterator[str]:
    """Every frame, in order: requests, or responses to one API. Raises DamagedFile where the frames end early."""
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
            yield from _response(frame, position, response_to) if response_to else _request(frame, position)
        except construct.ConstructError as error:
            raise DamagedFile(f"at byte {position}: {' '.join(str(error).split())}") from error
        position += _SIZE.size + size


def _request(frame: bytes, position: int) -> Iterator[str]:
    start = parse(REQUEST_START, frame)
    try:
        cls = request_type(start.api_key)
    except KeyError:
        raise DamagedFile(f"at byte {position}: there is no API key {start.api_key}") from None
    versions = cls.__schema__.versions
    if not versions.includes(start.api_version):
        raise DamagedFile(f"at byte {position}: {cls.__name__} has no version {start.api_version}, only {versions}")
    parsed = parse(request_body(start.api_key, start.api_version), frame)
    client = "null" if parsed.client_id is None else preview(parsed.client_id.encode())
    yield f"@{position} {cls.__name__} v{start.api_version}  correlation id {parsed.correlation_id}  client {client}"
    yield from _rest(cls, parsed, start.api_version)


def _response(frame: bytes, position: int, api: Api) -> Iterator[str]:
    cls = response_type(api.key)
    parsed = parse(response_body(api.key, api.version), frame)
    yield f"@{position} {cls.__name__} v{api.version}  correlation id {parsed.correlation_id}"
    yield from _rest(cls, parsed, api.version)


def _rest(cls: StructType, parsed: Any, version: int) -> Iterator[str]:
    if parsed.header_tags:
        yield f"{INDENT}header tags: {[entry.tag for entry in parsed.header_tags]}"
    fields = fields_by_name(cls, parsed.body, version)
    yield from field_lines(fields, 1)
    for records in _records_in(fields):
        yield f"{INDENT}records of {len(records)} bytes:"
        try:
            for line in batch_lines(memoryview(records), with_records=True):
                yield f"{INDENT * 2}{line}"
        except DamagedFile as damage:
            yield f"{INDENT * 2}{damage}"
    if parsed.garbage:
        yield f"{INDENT}{len(parsed.garbage)} bytes behind the message: {preview(parsed.garbage)}"


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
