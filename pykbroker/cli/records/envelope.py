"""A whole record as one line of JSON and back, without loss: `consume --json`, `produce --json`.

    {"topic":"t","partition":0,"offset":5,"timestamp":1700000000000,"timestamp_type":"CreateTime",
     "key":"k","value":"v","headers":[{"name":"h","value":"x"}]}

Keys, values, names of headers and their values are strings, or null. Bytes that are not UTF-8 stand in base64 under
`key_base64`, `value_base64`, `name_base64` instead. With a format or a schema, the key or the value is its document.
A record that a share group delivered has its `delivery_count`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from typing import Final, NamedTuple

from pykbroker.client.fetched import ConsumedRecord
from pykbroker.protocol.records.batch import Header, TimestampType

from ..line_reader import InvalidLine
from . import json_text
from .codecs import TEXT, Codec, encoded_text, from_base64, short

_BASE64: Final = "_base64"
_MOST_INT64: Final = 2**63 - 1
_MOST_INT32: Final = 2**31 - 1
_HEADER_FIELDS: Final = frozenset(("name", "name_base64", "value", "value_base64"))
_PLACE: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "delivery_count")
_FIELDS: Final = frozenset((*_PLACE, "key", "key_base64", "value", "value_base64", "headers"))
_TYPES: Final = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}


class Enveloped(NamedTuple):
    """The record of an envelope. timestamp_ms, partition: None where the envelope has none."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int | None
    partition: int | None


class EnvelopeFormat:
    """`line` gives the envelope of a record, `parse` makes a record of one."""

    def __init__(self, key: Codec = TEXT, value: Codec = TEXT) -> None:
        self._key = key
        self._value = value
        self._topics: dict[str, str] = {}

    def line(self, record: ConsumedRecord) -> bytes:
        """Return the line with its end; what does not have its codec's form is in base64."""
        topic = self._topics.get(record.topic) or self._topics.setdefault(record.topic, quoted(record.topic))
        key = _field("key", record.key, self._key)
        value = _field("value", record.value, self._value)
        headers = ",".join(map(_header, record.headers)) if record.headers else ""
        delivery = "" if record.delivery_count is None else f'"delivery_count":{record.delivery_count},'
        text = (
            f'{{"topic":{topic},"partition":{record.partition},"offset":{record.offset},'
            f'"timestamp":{record.timestamp},"timestamp_type":"{_TYPES[record.timestamp_type]}",{delivery}'
            f'{key},{value},"headers":[{headers}]}}\n'
        )
        return text.encode()

    def parse(self, line: bytes) -> Enveloped:
        """Raises InvalidLine."""
        try:
            document = json_text.parse_exactly(line.decode())
        except UnicodeDecodeError as error:
            raise InvalidLine(f"not UTF-8: {error.reason} at byte {error.start}") from None
        except ValueError as error:
            raise InvalidLine(f"not JSON: {error}") from None
        fields = _object(document, _FIELDS, "the envelope of a record")
        if "value" not in fields and "value_base64" not in fields:
            raise InvalidLine("no value; a tombstone says null")
        headers = [] if fields.get("headers") is None else fields["headers"]
        if not isinstance(headers, list):
            raise InvalidLine("headers are not a list")
        return Enveloped(
            key=_bytes("key", fields, self._key),
            value=_bytes("value", fields, self._value),
            headers=tuple(_parsed_header(each) for each in headers),
            timestamp_ms=_number("timestamp", fields, -1, _MOST_INT64),
            partition=_number("partition", fields, 0, _MOST_INT32),
        )


def _field(name: str, data: bytes | None, codec: Codec) -> str:
    if data is None:
        return f'"{name}":null'
    if codec is TEXT:
        try:
            return f'"{name}":{quoted(data.decode())}'
        except UnicodeDecodeError:
            return _in_base64(name, data)
    try:
        document = codec.document(data)
    except InvalidLine:
        return _in_base64(name, data)
    # JSON's own null is four bytes or an Avro null, and no tombstone.
    return _in_base64(name, data) if document == "null" else f'"{name}":{document}'


def _in_base64(name: str, data: bytes) -> str:
    return f'"{name}{_BASE64}":"{base64.b64encode(data).decode()}"'


def _header(header: Header) -> str:
    name, value = header
    return f"{{{_field('name', name.encode('utf-8', 'surrogateescape'), TEXT)},{_field('value', value, TEXT)}}}"


def _parsed_header(document: object) -> Header:
    fields = _object(document, _HEADER_FIELDS, "a header")
    name = _bytes("name", fields, TEXT)
    if name is None:
        raise InvalidLine("a header has no name")
    return name.decode("utf-8", "surrogateescape"), _bytes("value", fields, TEXT)


def _object(document: object, known: frozenset[str], what: str) -> Mapping[str, object]:
    if not isinstance(document, dict):
        raise InvalidLine(f"{short(document)} is not {what}")
    for name in document:
        if name not in known:
            raise InvalidLine(f"{short(name)} is no field of {what}")
    return document


def _bytes(name: str, fields: Mapping[str, object], codec: Codec) -> bytes | None:
    encoded = fields.get(name + _BASE64)
    if encoded is None:
        document = fields.get(name)
        return None if document is None else _from_document(name, document, codec)
    if fields.get(name) is not None:
        raise InvalidLine(f"{name} and {name}{_BASE64} exclude each other")
    if not isinstance(encoded, str):
        raise InvalidLine(f"{name}{_BASE64} is not a string")
    return from_base64(encoded_text(encoded))


def _from_document(name: str, document: object, codec: Codec) -> bytes:
    try:
        return codec.from_document(document)
    except InvalidLine as error:
        raise InvalidLine(f"{name}: {error}") from None


def _number(name: str, fields: Mapping[str, object], least: int, most: int) -> int | None:
    number = fields.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InvalidLine(f"{name} is not a whole number from {least} on, below 2^{(most + 1).bit_length() - 1}")
    return number
