"""Messages of the formats 0 and 1, one after the other in a log. By hand, from the description of the format.

A compressed message holds messages in its value, at offsets as they are (format 0) or counted from the first (1)."""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import zlib
from typing import Final

import construct as c

from .values import BYTES

ATTRIBUTES: Final = c.BitStruct(
    "unused" / c.BitsInteger(4),
    "timestamp_type" / c.Enum(c.BitsInteger(1), create_time=0, log_append_time=1),
    "compression" / c.Enum(c.BitsInteger(3), none=0, gzip=1, snappy=2, lz4=3),
)

_CONTENT: Final = c.Struct(
    "magic" / c.Int8sb,
    "attributes" / ATTRIBUTES,
    "timestamp" / c.IfThenElse(c.this.magic == 0, c.Computed(None), c.Int64sb),
    "key" / BYTES,
    "value" / BYTES,
)

MESSAGE: Final = c.Struct(
    "offset" / c.Int64sb,
    "size" / c.Rebuild(c.Int32sb, lambda context: len(_CONTENT.build(context.content)) + 4),
    "crc" / c.Rebuild(c.Int32ub, lambda context: zlib.crc32(_CONTENT.build(context.content))),
    "content" / c.FixedSized(c.this.size - 4, _CONTENT),
)
"""`size` and `crc` are computed where a message is built; `crc` is that of `content`'s bytes."""
