"""Secrets in requests and answers: the journal keeps stars and zeros in their places, so that the rest can be read.

Hidden are passwords that SCRAM has salted, the HMACs of delegation tokens, and the values of configurations but those
of topics. Where a body cannot be taken apart, or is cut, zeros stand in the place of all of it. A password that a
client sends on SASL's way never comes here (`server/network/tap`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pykbroker.config.topic_keys import topic_keys
from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ProtocolError
from pykbroker.protocol.framing import decode_request_header, decode_response_header
from pykbroker.protocol.schema import Message, Struct

_NOTHING: Final[frozenset[str]] = frozenset()
_IN_REQUESTS: Final[Mapping[int, frozenset[str]]] = {
    ApiKey.SASL_AUTHENTICATE: frozenset({"auth_bytes"}),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: frozenset({"salt", "salted_password"}),
    ApiKey.CREATE_DELEGATION_TOKEN: _NOTHING,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _NOTHING,
    ApiKey.RENEW_DELEGATION_TOKEN: frozenset({"hmac"}),
    ApiKey.EXPIRE_DELEGATION_TOKEN: frozenset({"hmac"}),
    ApiKey.ALTER_CONFIGS: frozenset({"value"}),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: frozenset({"value"}),
    ApiKey.ENVELOPE: frozenset({"request_data", "request_principal"}),
}
_IN_RESPONSES: Final[Mapping[int, frozenset[str]]] = {
    ApiKey.SASL_AUTHENTICATE: frozenset({"auth_bytes", "error_message"}),
    ApiKey.CREATE_DELEGATION_TOKEN: frozenset({"hmac"}),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: frozenset({"hmac"}),
    ApiKey.ALTER_CONFIGS: frozenset({"error_message"}),  # which may quote a value
    ApiKey.INCREMENTAL_ALTER_CONFIGS: frozenset({"error_message"}),
    ApiKey.ENVELOPE: frozenset({"response_data"}),
}
SECRET_APIS: Final = frozenset(map(int, _IN_REQUESTS))
"""The APIs whose requests or answers may have secrets."""
_MOST_ENTRIES: Final = 500
"""Of a body that is taken apart in the event loop."""
_CORRELATION_ID_BYTES: Final = 4


def hidden_in_request(api_key: int) -> frozenset[str]:
    """Return the names of the fields that are hidden."""
    return _IN_REQUESTS.get(api_key, _NOTHING)


def hidden_in_response(api_key: int) -> frozenset[str]:
    return _IN_RESPONSES.get(api_key, _NOTHING)


def hide_in_request(frame: bytes, size: int) -> tuple[bytes, bool]:
    """Return a request's frame without secrets, and whether all of its body is withheld. size: of the whole frame."""
    body = 0
    try:
        header, body = decode_request_header(frame)
        kind, version = request_type(header.api_key), header.api_version
        hidden = _hide(kind, version, frame, body, hidden_in_request(header.api_key)) if len(frame) == size else None
    except ProtocolError:
        hidden = None
    return _whole(frame, body, hidden)


def hide_in_response(frame: bytes, size: int, api_key: int, version: int) -> tuple[bytes, bool]:
    """Return a response's frame without secrets, and whether all of its body is withheld. size: of the whole frame."""
    body = min(len(frame), _CORRELATION_ID_BYTES)
    try:
        _, body = decode_response_header(frame, api_key, version)
        kind = response_type(api_key)
        hidden = _hide(kind, version, frame, body, hidden_in_response(api_key)) if len(frame) == size else None
    except ProtocolError:
        hidden = None
    return _whole(frame, body, hidden)


def _whole(frame: bytes, body: int, hidden: bytes | None) -> tuple[bytes, bool]:
    return frame[:body] + (bytes(len(frame) - body) if hidden is None else hidden), hidden is None


def _hide(kind: type[Message], version: int, frame: bytes, body: int, names: frozenset[str]) -> bytes | None:
    """Return the body without secrets; None where that is not the same body otherwise. Raises ProtocolError.

    Bytes behind the message, as librdkafka sends one behind some, become zeros.
    """
    message, end = decode(kind, version, frame, body, objects_limit=_MOST_ENTRIES)
    _hide_in_struct(message, names)
    try:
        hidden = encode(message, version)
    except ValueError:
        return None
    return hidden + bytes(len(frame) - end) if len(hidden) == end - body else None


def _hide_in_struct(struct: Struct, names: frozenset[str]) -> None:
    """Put as many bytes in the place of each secret as it has."""
    struct.unknown_tagged_fields = {tag: bytes(len(data)) for tag, data in struct.unknown_tagged_fields.items()}
    is_of_topic = getattr(struct, "name", None) in topic_keys()
    for each in type(struct).__schema__.fields:
        value = getattr(struct, each.name)
        if each.name in names and not (each.name == "value" and is_of_topic):
            setattr(struct, each.name, _stars(value))
        elif isinstance(value, Struct):
            _hide_in_struct(value, names)
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, Struct):
                    _hide_in_struct(element, names)


def _stars(value: Any) -> Any:
    if isinstance(value, str):
        return "*" * len(value.encode("utf-8", "surrogatepass"))
    return None if value is None else bytes(len(value))
