"""Records of the internal topics: their type and version stand in front of the declared message."""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Final, NamedTuple

import construct as c

from ..messages import (
    consumer_group_records,
    group_records,
    metadata_records,
    share_group_records,
    share_state_records,
    streams_group_records,
    transaction_records,
)
from ..schema import Message, StructType
from .messages import describe

METADATA_FRAME: Final = c.Struct("frame_version" / c.VarInt, "type" / c.VarInt, "version" / c.VarInt)
COORDINATOR_KEY_START: Final = c.Struct("type" / c.Int16sb)
COORDINATOR_VALUE_START: Final = c.Struct("version" / c.Int16sb)

TOPICS: Final[dict[str, tuple[ModuleType, ...]]] = {
    "__consumer_offsets": (group_records, consumer_group_records, share_group_records, streams_group_records),
    "__transaction_state": (transaction_records,),
    "__share_group_state": (share_state_records,),
}
METADATA_TOPIC: Final = "__cluster_metadata"


class DescribedRecord(NamedTuple):
    """The record says what a record's key or value is, and what `construct` found in it."""

    cls: type[Message]
    version: int
    fields: Any


def parse_metadata_record(value: bytes) -> DescribedRecord:
    """A record of the metadata log. Raises KeyError for an unknown type."""
    frame = METADATA_FRAME.parse(value)
    cls = _types((metadata_records,), "")[frame.type]
    parsed = c.Struct("frame" / METADATA_FRAME, "record" / describe(cls, frame.version)).parse(value)
    return DescribedRecord(cls, frame.version, parsed.record)


def parse_coordinator_record(
    topic: str, key: bytes, value: bytes | None
) -> tuple[DescribedRecord, DescribedRecord | None]:
    """A coordinator's record: its key, and its value if it is no tombstone. Raises KeyError for an unknown type."""
    kind = COORDINATOR_KEY_START.parse(key).type
    key_type = _types(TOPICS[topic], "Key")[kind]
    parsed = c.Struct("start" / COORDINATOR_KEY_START, "key" / describe(key_type, 0)).parse(key)
    described_key = DescribedRecord(key_type, 0, parsed.key)
    if value is None:
        return described_key, None
    version = COORDINATOR_VALUE_START.parse(value).version
    value_type = _types(TOPICS[topic], "Value")[kind]
    parsed = c.Struct("start" / COORDINATOR_VALUE_START, "value" / describe(value_type, version)).parse(value)
    return described_key, DescribedRecord(value_type, version, parsed.value)


@functools.cache
def _types(modules: tuple[ModuleType, ...], suffix: str) -> dict[int, type[Message]]:
    found: dict[int, type[Message]] = {}
    for module in modules:
        for declared in vars(module).values():
            if isinstance(declared, StructType) and issubclass(declared, Message) and declared is not Message:
                kind = declared.__schema__.api_key
                if kind is not None and declared.__name__.endswith(suffix):
                    found[kind] = declared
    return found
