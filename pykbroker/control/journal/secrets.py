"""Requests and answers with secrets: the journal keeps their headers, and zeros in the place of their bodies.

A password that a client sends in the clear on SASL's way never comes here (`server/network/tap`).
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import decode_request_header

SECRET_APIS: Final = frozenset(
    {
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,  # salted passwords
        ApiKey.CREATE_DELEGATION_TOKEN,  # the answer's HMAC is a password
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ALTER_CONFIGS,  # passwords of key stores
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ENVELOPE,  # any of these
    }
)
_CORRELATION_ID_BYTES: Final = 4


def has_secrets(api_key: int) -> bool:
    return api_key in SECRET_APIS


def request_without_body(frame: bytes) -> bytes:
    """Return a request's frame with zeros for its body."""
    try:
        _, body = decode_request_header(frame)
    except MalformedMessage:
        body = 0
    return frame[:body] + bytes(len(frame) - body)


def response_without_body(frame: bytes) -> bytes:
    """Return a response's frame with zeros for all that stands behind its correlation id."""
    return frame[:_CORRELATION_ID_BYTES] + bytes(max(0, len(frame) - _CORRELATION_ID_BYTES))
