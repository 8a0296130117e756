"""Record batches as lines: what their headers say, whether their checksums hold, and the records in them.

In the internal topics a record's key and value are messages themselves, and are shown as such.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import construct
from crc32c import crc32c

from pykbroker.protocol.descriptions.internal_topics import (
    METADATA_TOPIC,
    TOPICS,
    DescribedRecord,
    parse_coordinator_record,
    parse_metadata_record,
)
from pykbroker.protocol.descriptions.messages import fields_by_name
from pykbroker.protocol.descriptions.record_batches import BATCH, CONTROL_KEY, CONTROL_VALUES, RECORD
from pykbroker.protocol.descriptions.values import parse
from pykbroker.protocol.records.compression import Compression, decompress
from pykbroker.protocol.records.errors import InvalidRecords

from .listing import INDENT, field_lines, preview, timestamp_text

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_LENGTH_COUNTS_FROM = 12
_MAGIC_AT = 16
_CRC_COVERS_FROM = 21
_SMALLEST_BATCH = 61

RecordLines = Callable[[Any], Iterator[str]]


class DamagedFile(Exception):
    """Bytes that are not what the file's kind says; the text begins with the position."""


def batch_lines(data: memoryview, topic: str | None = None, *, with_records: bool = False) -> Iterator[str]:
    """Every batch, in order. `topic` tells what its records are. Raises DamagedFile where the batches end early."""
    position = 0
    while position < len(data):
        batch = _batch_at(data, position)
        size = _LENGTH_COUNTS_FROM + batch.batch_length
        computed = crc32c(data[position + _CRC_COVERS_FROM : position + size])
        yield f"@{position} {_headline(batch, size, computed)}"
        if with_records or batch.attributes.is_control or topic == METADATA_TOPIC or topic in TOPICS:
            yield from _record_lines(batch, topic)
        position += size


def _batch_at(data: memoryview, position: int) -> Any:
    left = len(data) - position
    if left < _SMALLEST_BATCH:
        raise DamagedFile(f"at byte {position}: {left} bytes, too few for a batch")
    if data[position + _MAGIC_AT] != 2:
        raise DamagedFile(f"at byte {position}: format {data[position + _MAGIC_AT]}, only batches of format 2 are read")
    (length,) = _LENGTH.unpack_from(data, position + _LENGTH_AT)
    size = _LENGTH_COUNTS_FROM + length
    if not _SMALLEST_BATCH <= size <= left:
        raise DamagedFile(f"at byte {position}: a batch of {size} bytes, {left} are left")
    return BATCH.parse(bytes(data[position : position + size]))


def _headline(batch: Any, size: int, computed_crc: int) -> str:
    attributes = batch.attributes
    parts = [
        f"offsets {batch.base_offset}-{batch.base_offset + batch.last_offset_delta}",
        f"{batch.records_count} records",
        f"{size} bytes",
        str(attributes.compression),
        "crc ok" if computed_crc == batch.crc else f"crc WRONG ({batch.crc:08x}, computed {computed_crc:08x})",
        f"leader epoch {batch.partition_leader_epoch}",
        f"{attributes.timestamp_type} {timestamp_text(batch.max_timestamp)}",
    ]
    if batch.producer_id >= 0:
        parts.append(f"producer {batch.producer_id} epoch {batch.producer_epoch} sequence {batch.base_sequence}")
    flags = ("is_transactional", "is_control", "has_delete_horizon")
    parts += [flag.partition("_")[2].replace("_", " ") for flag in flags if attributes[flag]]
    return "  ".join(parts)


def _record_lines(batch: Any, topic: str | None) -> Iterator[str]:
    try:
        payload = decompress(Compression(int(batch.attributes.compression)), batch.records)
        records = parse(construct.Array(batch.records_count, RECORD), bytes(payload))
    except (InvalidRecords, ValueError, construct.ConstructError) as error:
        yield f"{INDENT}records cannot be read: {_reason(error)}"
        return
    for record in records:
        stamp = timestamp_text(batch.base_timestamp + record.timestamp_delta)
        place = f"{INDENT}{batch.base_offset + record.offset_delta}  {stamp}"
        try:
            yield from _one_record(place, record, batch.attributes.is_control, topic)
        except (KeyError, TypeError, construct.ConstructError) as error:
            yield f"{place}  {_plain_record(record)}  (not understood: {_reason(error)})"


def _one_record(place: str, record: Any, is_control: bool, topic: str | None) -> Iterator[str]:
    if is_control:
        kind = str(parse(CONTROL_KEY, record.key).type)
        yield f"{place}  {kind}"
        yield from field_lines(without_empty_tags(parse(CONTROL_VALUES[kind], record.value)), 2)
    elif topic == METADATA_TOPIC:
        described = parse_metadata_record(record.value)
        yield f"{place}  {described.cls.__name__} v{described.version}"
        yield from _described(described)
    elif topic in TOPICS:
        key, value = parse_coordinator_record(topic, record.key, record.value)
        version = "tombstone" if value is None else f"v{value.version}"
        yield f"{place}  {key.cls.__name__.removesuffix('Key')} {version}"
        yield from _described(key)
        if value is not None:
            yield from _described(value)
    else:
        yield f"{place}  {_plain_record(record)}"


def _described(record: DescribedRecord) -> Iterator[str]:
    return field_lines(fields_by_name(record.cls, record.fields, record.version), 2)


def _plain_record(record: Any) -> str:
    headers = ", ".join(f"{preview(header.key)}={preview(header.value)}" for header in record.headers)
    return f"key {preview(record.key)}  value {preview(record.value)}" + (f"  headers {headers}" if headers else "")


def without_empty_tags(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """A Container as plain dicts, without construct's own entries."""
    plain: dict[str, Any] = {}
    for name, value in parsed.items():
        if name.startswith("_") or (name == "tagged" and not value):
            continue
        if isinstance(value, Mapping):
            plain[name] = without_empty_tags(value)
        elif isinstance(value, list):
            plain[name] = [without_empty_tags(item) if isinstance(item, Mapping) else item for item in value]
        else:
            plain[name] = value
    return plain


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())
