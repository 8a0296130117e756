"""Exchanges as plain values: what JSON has, with the names of Kafka's fields, for queries and for people.

Error codes have their names besides; bytes are text where they are UTF-8, else base64; records are listed,
`MOST_RECORDS` of a batch at most. What was cut, or cannot be decoded, says so in the place of its body.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from pykbroker.protocol.api_keys import request_type, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode, MalformedMessage
from pykbroker.protocol.framing import decode_request_header, decode_response_header
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import Message, Struct
from pykbroker.protocol.uuids import uuid_to_text

from .exchange import Exchange
from .secrets import has_secrets

MOST_RECORDS: Final = 100
UNPACKED_BYTES: Final = 4 * 1024 * 1024
"""Of a compressed batch."""
_ERROR_CODE: Final = "error_code"


def request_values(exchange: Exchange) -> dict[str, Any]:
    """The fields of the request. Never raises: what cannot be shown is told in the field `not_shown`."""
    if has_secrets(exchange.api_key):
        return _not_shown("it has secrets")
    if len(exchange.request) < exchange.request_bytes:
        return _not_shown(f"{exchange.request_bytes} bytes, of which {len(exchange.request)} are kept")
    try:
        return message_values(decode_request(exchange))
    except (MalformedMessage, KeyError) as error:
        return _not_shown(str(error))


def response_values(exchange: Exchange) -> dict[str, Any] | None:
    """The fields of the response; None where there is none."""
    if not exchange.response_bytes:
        return None
    if has_secrets(exchange.api_key):
        return _not_shown("it has secrets")
    if len(exchange.response) < exchange.response_bytes:
        return _not_shown(f"{exchange.response_bytes} bytes, of which {len(exchange.response)} are kept")
    try:
        return message_values(decode_response(exchange))
    except (MalformedMessage, KeyError) as error:
        return _not_shown(str(error))


def decode_request(exchange: Exchange) -> Message:
    """Raises MalformedMessage, and KeyError for an API that nobody knows."""
    _, body = decode_request_header(exchange.request)
    message, _ = decode(request_type(exchange.api_key), exchange.api_version, exchange.request, body)
    return message


def decode_response(exchange: Exchange) -> Message:
    """Raises MalformedMessage."""
    _, body = decode_response_header(exchange.response, exchange.api_key, exchange.api_version)
    message, _ = decode(response_type(exchange.api_key), exchange.api_version, exchange.response, body)
    return message


def message_values(message: Struct) -> dict[str, Any]:
    """The fields of a message or of a part of one."""
    values: dict[str, Any] = {}
    for each in type(message).__schema__.fields:
        value = getattr(message, each.name)
        values[each.name] = _records(value) if each.kind == "records" else _value(each.element, value)
        if each.name == _ERROR_CODE and isinstance(value, int):
            values["error"] = _error_name(value)
    return values


def exchange_values(exchange: Exchange) -> dict[str, Any]:
    """One line of a journal, as a mapping."""
    values = {
        "number": exchange.number,
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
        "interference": exchange.interference or None,
        "request": request_values(exchange),
        "response": response_values(exchange),
    }
    return {name: value for name, value in values.items() if value is not None}


def _value(kind: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_value(kind, each) for each in value]
    if isinstance(value, Struct):
        return message_values(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return uuid_to_text(bytes(value)) if kind == "uuid" else _bytes(bytes(value))
    return value


def _bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"


def _records(data: Any) -> Any:
    """The batches of a field of records."""
    if data is None:
        return None
    try:
        return list(_batches(bytes(data)))
    except InvalidRecords as error:
        return _not_shown(str(error))


def _batches(data: bytes) -> Iterator[dict[str, Any]]:
    for batch in iter_batches(data, allow_partial=True):
        header = batch.header
        row: dict[str, Any] = {
            "base_offset": header.base_offset,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "is_transactional": header.is_transactional,
            "is_control": header.is_control,
            "records_count": header.records_count,
            "records": [
                _record(each) for each in islice(iter_records(batch, limit_bytes=UNPACKED_BYTES), MOST_RECORDS)
            ],
        }
        if header.records_count > MOST_RECORDS:
            row |= _not_shown(f"{header.records_count - MOST_RECORDS} more records")
        yield row


def _record(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": None if record.key is None else _bytes(record.key),
        "value": None if record.value is None else _bytes(record.value),
        "timestamp": record.timestamp,
    }
    if record.headers:
        row["headers"] = [[key, None if value is None else _bytes(value)] for key, value in record.headers]
    return row


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def _not_shown(why: str) -> dict[str, Any]:
    return {"not_shown": why}
