"""Records to lines of text, with the settings of Kafka's `DefaultMessageFormatter`.

Keys and values are written byte by byte as they came, unless a deserializer of Kafka's was named.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from pykbroker.client.fetched import ConsumedRecord
from pykbroker.protocol.records.batch import TimestampType

from .line_reader import InvalidLine, boolean

Deserializer = Callable[[bytes], bytes]


def _number(layout: str) -> Deserializer:
    reader = struct.Struct(layout)

    def deserialize(data: bytes) -> bytes:
        if len(data) != reader.size:
            raise InvalidLine(f"Size of data received by the deserializer is {len(data)}, not {reader.size}")
        return str(reader.unpack(data)[0]).encode()

    return deserialize


def _uuid(data: bytes) -> bytes:
    """Kafka's serializer writes the text form."""
    try:
        return str(uuid.UUID(data.decode("ascii"))).encode()
    except ValueError:
        raise InvalidLine(f"The text {data!r} is not that of a UUID") from None


DESERIALIZERS: Mapping[str, Deserializer] = {
    "StringDeserializer": bytes,
    "ByteArrayDeserializer": bytes,
    "BytesDeserializer": bytes,
    "ShortDeserializer": _number(">h"),
    "IntegerDeserializer": _number(">i"),
    "LongDeserializer": _number(">q"),
    "FloatDeserializer": _number(">f"),
    "DoubleDeserializer": _number(">d"),
    "UUIDDeserializer": _uuid,
}


def deserializer(class_name: str) -> Deserializer:
    """Return the deserializer for Kafka's class name, with or without its package. Raises InvalidLine."""
    found = DESERIALIZERS.get(class_name.rpartition(".")[2])
    if found is None:
        raise InvalidLine(f"Deserializer {class_name} is not one of {', '.join(DESERIALIZERS)}")
    return found


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """`line` gives what Kafka's console consumer prints for a record, line end included."""

    print_timestamp: bool = False
    print_partition: bool = False
    print_offset: bool = False
    print_delivery: bool = False
    print_epoch: bool = False
    print_headers: bool = False
    print_key: bool = False
    print_value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"
    key_deserializer: Deserializer = bytes
    value_deserializer: Deserializer = bytes
    header_deserializer: Deserializer = bytes

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], deserializers: Mapping[str, Deserializer] = MappingProxyType({})
    ) -> Self:
        """Kafka's names; unknown ones are ignored, as Kafka does. Raises InvalidLine.

        deserializers: by the names of their properties, where they are not Kafka's.
        """
        return cls(
            print_timestamp=boolean(properties, "print.timestamp"),
            print_partition=boolean(properties, "print.partition"),
            print_offset=boolean(properties, "print.offset"),
            print_delivery=boolean(properties, "print.delivery"),
            print_epoch=boolean(properties, "print.epoch"),
            print_headers=boolean(properties, "print.headers"),
            print_key=boolean(properties, "print.key"),
            print_value=boolean({"print.value": "true", **properties}, "print.value"),
            key_separator=os.fsencode(properties.get("key.separator", "\t")),
            line_separator=os.fsencode(properties.get("line.separator", "\n")),
            headers_separator=os.fsencode(properties.get("headers.separator", ",")),
            null_literal=os.fsencode(properties.get("null.literal", "null")),
            key_deserializer=deserializers.get("key.deserializer")
            or deserializer(properties.get("key.deserializer", "BytesDeserializer")),
            value_deserializer=deserializers.get("value.deserializer")
            or deserializer(properties.get("value.deserializer", "BytesDeserializer")),
            header_deserializer=deserializer(properties.get("header.deserializer", "BytesDeserializer")),
        )

    def line(self, record: ConsumedRecord) -> bytes:
        parts: list[bytes] = []
        if self.print_timestamp:
            parts.append(_timestamp(record))
        if self.print_partition:
            parts.append(b"Partition:%d" % record.partition)
        if self.print_offset:
            parts.append(b"Offset:%d" % record.offset)
        if self.print_delivery:
            count = record.delivery_count
            parts.append(b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count)
        if self.print_epoch:
            epoch = record.leader_epoch
            parts.append(b"Epoch:%d" % epoch if epoch >= 0 else b"Epoch:NOT_PRESENT")
        if self.print_headers:
            parts.append(self._headers(record))
        if self.print_key:
            parts.append(self._field(record.key, self.key_deserializer))
        if self.print_value:
            parts.append(self._field(record.value, self.value_deserializer))
        return self.key_separator.join(parts) + self.line_separator

    def _headers(self, record: ConsumedRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self.headers_separator.join(
            name.encode("utf-8", "surrogateescape") + b":" + self._field(value, self.header_deserializer)
            for name, value in record.headers
        )

    def _field(self, data: bytes | None, deserialize: Deserializer) -> bytes:
        return self.null_literal if data is None else deserialize(data)


def _timestamp(record: ConsumedRecord) -> bytes:
    if record.timestamp < 0:
        return b"NO_TIMESTAMP"
    name = b"LogAppendTime" if record.timestamp_type is TimestampType.LOG_APPEND_TIME else b"CreateTime"
    return b"%s:%d" % (name, record.timestamp)
