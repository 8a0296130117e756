"""Exchanges as plain values: what JSON has, with the names of Kafka's fields, for queries and for people.

Error codes have their names besides; bytes are text where they are UTF-8, else base64; topics that a request names by
their ids have their names, too. Records are listed, `MOST_RECORDS` of a frame at most. What was cut, hidden, or cannot
be decoded, says so in the place of its body.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode, ProtocolError
from pykbroker.protocol.framing import decode_request_header, decode_response_header
from pykbroker.protocol.records.batch import RecordBatch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import NO_UUID, Message, Struct
from pykbroker.protocol.uuids import uuid_to_text

from .cut_messages import CutMessage
from .exchange import Entry, Event, Exchange
from .secrets import hidden_in_request, hidden_in_response

MOST_RECORDS: Final = 1_000
"""Of one frame; the others are counted."""
MOST_UNPACKED: Final = 16
"""Compressed batches of one frame."""
UNPACKED_BYTES: Final = 4 * 1024 * 1024
"""Of a compressed batch."""
SHOWN_BYTES: Final = 256 * 1024
"""Of a key or a value."""
MOST_SHOWN_BYTES: Final = 1024 * 1024
"""Of all records of a frame: further ones are counted. Only what was compressed has so much."""
MOST_HEADERS: Final = 1_000
"""Of one record."""
_PART_BYTES: Final = 16
"""The least that a record or a header counts for."""
NOT_SHOWN: Final = "not_shown"
HIDDEN: Final = "(hidden)"
ERROR: Final = "error"
ACKNOWLEDGE_ERROR: Final = "acknowledge_error"
_ERROR_CODES: Final = {
    "error_code": ERROR,
    "partition_error_code": ERROR,
    "acknowledge_error_code": ACKNOWLEDGE_ERROR,
}
"""The fields with an error's code, and the one beside each that has the error's name."""
_FETCHES: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
_TOPIC_ID: Final = "topic_id"
_TOPIC_NAMES: Final = ("topic", "name", "topic_name")
"""The fields that have a topic's name beside or in the place of its id."""


class Names(Protocol):
    """The names of topics by their ids; `topic_names.TopicNames` is one."""

    def get(self, topic_id: bytes, /) -> str | None: ...


def entry_values(entry: Entry, names: Names) -> dict[str, Any]:
    """One line of a journal, as a mapping."""
    if isinstance(entry, Event):
        return event_values(entry)
    return head_values(entry) | body_values(entry, names)


def event_values(event: Event) -> dict[str, Any]:
    return _without_none(
        {
            "kind": "event",
            "number": event.number,
            "node": event.node,
            "at_ms": event.at_ns / 1e6,
            "whose": event.whose,
            "text": event.text,
            "caused_by": event.caused_by or None,
        }
    )


def head_values(exchange: Exchange) -> dict[str, Any]:
    """The fields of an exchange without its bodies."""
    return _without_none(
        {
            "kind": "exchange",
            "number": exchange.number,
            "node": exchange.node,
            "api": exchange.api,
            "version": exchange.api_version,
            "client_id": exchange.client_id,
            "principal": exchange.principal,
            "connection": exchange.peer.number,
            "client": f"{exchange.peer.host}:{exchange.peer.port}",
            "listener": exchange.peer.listener,
            "correlation_id": exchange.correlation_id,
            "received_ms": exchange.received_ns / 1e6,
            "took_ms": exchange.took_ms,
            "outcome": exchange.outcome.value,
            "caused_by": exchange.caused_by or None,
            "reason": exchange.reason or None,
            "interference": list(exchange.interference) or None,
        }
    )


def body_values(exchange: Exchange, names: Names, *, with_records: bool = True) -> dict[str, Any]:
    """The fields of request and response. Without records their fields are None, and most of the work is saved."""
    request = request_values(exchange, names, with_records=with_records)
    return _without_none({"request": request, "response": response_values(exchange, names, with_records=with_records)})


def request_values(exchange: Exchange, names: Names, *, with_records: bool = True) -> dict[str, Any]:
    """The fields of the request. Never raises: what cannot be shown is told in the field `not_shown`."""
    if exchange.is_withheld:
        return _not_shown("it has secrets")
    try:
        _, body = decode_request_header(exchange.request)
        kind = request_type(exchange.api_key)
    except (ProtocolError, KeyError) as error:
        return _not_shown(str(error))
    shown = _Shown(exchange.api_version, names, hidden_in_request(exchange.api_key), with_records)
    return _message_values(
        kind, exchange.request, exchange.request_bytes, body, shown, exchange.api_key == ApiKey.PRODUCE
    )


def response_values(exchange: Exchange, names: Names, *, with_records: bool = True) -> dict[str, Any] | None:
    """The fields of the response; None where there is none."""
    if not exchange.response_bytes:
        return None
    if exchange.is_withheld:
        return _not_shown("it has secrets")
    version = exchange.api_version
    try:
        kind = response_type(exchange.api_key)
        if exchange.api_key == ApiKey.API_VERSIONS and exchange.response[4:6] == _UNSUPPORTED:
            version = 0  # a client that is newer than what the broker offers is answered in the oldest version
        _, body = decode_response_header(exchange.response, exchange.api_key, version)
    except (ProtocolError, KeyError) as error:
        return _not_shown(str(error))
    shown = _Shown(version, names, hidden_in_response(exchange.api_key), with_records)
    return _message_values(kind, exchange.response, exchange.response_bytes, body, shown, exchange.api_key in _FETCHES)


@dataclass(frozen=True, slots=True)
class _Shown:
    """The way to show a message. hidden: fields with secrets, which the journal has not."""

    version: int
    names: Names
    hidden: frozenset[str]
    with_records: bool


def _message_values(
    kind: type[Message], kept: bytes, size: int, body: int, shown: _Shown, is_mostly_records: bool
) -> dict[str, Any]:
    """The values of the message behind the header of a frame. size: of the whole frame."""
    note = _not_shown(f"{size} bytes, of which {len(kept)} are kept") if len(kept) < size else {}
    if note and not is_mostly_records:
        return note
    try:
        if note:
            cut = CutMessage(kind, shown.version, kept, body)
            return _Values(shown, cut).of(cut.message) | note
        message, _ = decode(kind, shown.version, kept, body)
        return _Values(shown).of(message)
    except ProtocolError as error:
        return _not_shown(str(error)) | note


class _Values:
    """The values of one message. cut: that message where its end is missing."""

    def __init__(self, shown: _Shown, cut: CutMessage | None = None) -> None:
        self._version = shown.version
        self._names = shown.names
        self._hidden = shown.hidden
        self._with_records = shown.with_records
        self._cut = cut
        self._records_left = MOST_RECORDS
        self._unpacked_left = MOST_UNPACKED
        self._bytes_left = MOST_SHOWN_BYTES

    def of(self, struct: Struct) -> dict[str, Any]:
        """The fields of a message, or of a part of one, that its version has."""
        values: dict[str, Any] = {}
        for each in type(struct).__schema__.fields:
            if not each.versions.includes(self._version) or (self._cut and not self._cut.has(struct, each.name)):
                continue
            value = getattr(struct, each.name)
            if each.name in self._hidden and isinstance(value, (bytes, bytearray, memoryview)):
                values[each.name] = HIDDEN
            elif each.kind == "records":
                values[each.name] = None if value is None or not self._with_records else self._records(value)
            else:
                values[each.name] = self._value(each.element, value)
            if each.name in _ERROR_CODES and isinstance(value, int):
                values[_ERROR_CODES[each.name]] = error_name(value)
        self._name_topic(struct, values)
        return values

    def _name_topic(self, struct: Struct, values: dict[str, Any]) -> None:
        topic_id = getattr(struct, _TOPIC_ID, NO_UUID)
        if _TOPIC_ID not in values or topic_id == NO_UUID or any(values.get(field) for field in _TOPIC_NAMES):
            return
        name = self._names.get(bytes(topic_id))
        if name is not None:
            field = next((field for field in _TOPIC_NAMES if hasattr(struct, field)), _TOPIC_NAMES[0])
            values[field] = name

    def _value(self, kind: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(kind, each) for each in value]
        if isinstance(value, Struct):
            return self.of(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return uuid_to_text(bytes(value)) if kind == "uuid" else _text(bytes(value))
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value

    def _records(self, data: memoryview) -> list[dict[str, Any]]:
        """The batches of a field of records."""
        found: list[dict[str, Any]] = []
        try:
            for batch in iter_batches(bytes(data), allow_partial=True):
                if not self._records_left or self._bytes_left <= 0:
                    found.append(_not_shown("more batches"))
                    break
                found.append(self._batch(batch))
        except InvalidRecords as error:
            found.append(_not_shown(str(error)))
        whole_bytes = self._cut.whole_bytes(data) if self._cut else len(data)
        if len(data) < whole_bytes:
            found.append(_not_shown(f"{whole_bytes} bytes of records, of which {len(data)} are kept"))
        return found

    def _batch(self, batch: RecordBatch) -> dict[str, Any]:
        header = batch.header
        values: dict[str, Any] = {
            "base_offset": header.base_offset,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "is_transactional": header.is_transactional,
            "is_control": header.is_control,
            "compression": header.compression.name.lower(),
            "records_count": header.records_count,
        }
        if header.compression is not Compression.NONE:
            if not self._unpacked_left:
                return values | _not_shown("more compressed batches")
            self._unpacked_left -= 1
        records: list[dict[str, Any]] = []
        try:
            for record in islice(iter_records(batch, limit_bytes=UNPACKED_BYTES), self._records_left):
                if self._bytes_left <= 0:
                    break
                self._bytes_left -= _shown_bytes(record)
                records.append(_record(record))
        except InvalidRecords as error:
            return values | _not_shown(str(error))
        self._records_left -= len(records)
        values["records"] = records
        left = header.records_count - len(records)
        return values | (_not_shown(f"{left} more records") if left > 0 else {})


def error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def _record(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {
        "offset": record.offset,
        "key": None if record.key is None else _text(record.key),
        "value": None if record.value is None else _text(record.value),
        "timestamp": record.timestamp,
    }
    if record.headers:
        row["headers"] = list(_headers(record))
        left = len(record.headers) - MOST_HEADERS
        row |= _not_shown(f"{left} more headers") if left > 0 else {}
    return row


def _headers(record: Record) -> Iterator[list[str | None]]:
    for key, value in record.headers[:MOST_HEADERS]:
        yield [_cut(key), None if value is None else _text(value)]


def _shown_bytes(record: Record) -> int:
    """The size of what is shown of a record, about; headers that are not count all the same, since they were read."""
    size = _PART_BYTES + min(SHOWN_BYTES, len(record.key or b"")) + min(SHOWN_BYTES, len(record.value or b""))
    for key, value in record.headers:
        size += _PART_BYTES + min(SHOWN_BYTES, len(key)) + min(SHOWN_BYTES, len(value or b""))
    return size


def _text(data: bytes) -> str:
    cut = f"… ({len(data)} bytes)" if len(data) > SHOWN_BYTES else ""
    data = data[:SHOWN_BYTES]
    try:
        return data.decode() + cut
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}{cut}"


def _cut(key: str) -> str:
    return key if len(key) <= SHOWN_BYTES else f"{key[:SHOWN_BYTES]}… ({len(key)} characters)"


def _not_shown(why: str) -> dict[str, Any]:
    return {NOT_SHOWN: why}


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
