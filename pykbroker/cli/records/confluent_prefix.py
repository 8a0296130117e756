"""The five bytes that serializers with a schema registry write before the data: 0, and the id of the schema."""

from __future__ import annotations

import struct

PREFIX_BYTES = 5
MOST_SCHEMA_ID = 2**31 - 1
_PREFIX = struct.Struct(">bi")


def has_prefix(data: bytes) -> bool:
    return len(data) >= PREFIX_BYTES and data[0] == 0


def prefix(schema_id: int) -> bytes:
    return _PREFIX.pack(0, schema_id)
