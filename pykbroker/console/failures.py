"""Failures, as the console's API answers them: Kafka's name of the error, and one line."""

from __future__ import annotations

from typing import Final

from pykbroker.client.errors import (
    AuthenticationRefused,
    BadInput,
    ClientError,
    ConnectionLost,
    KafkaError,
    NoBrokerReachable,
    TimedOut,
    UnknownTopic,
    UnsupportedByBroker,
)
from pykbroker.protocol.errors import ErrorCode

from .endpoint import Json
from .json_texts import one_line

MOST_CHARACTERS: Final = 500

_NOT_FOUND: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
_OF_CLASS: Final[tuple[tuple[type[ClientError], ErrorCode, int], ...]] = (
    (UnknownTopic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404),
    (BadInput, ErrorCode.INVALID_REQUEST, 400),
    (AuthenticationRefused, ErrorCode.SASL_AUTHENTICATION_FAILED, 401),
    (NoBrokerReachable, ErrorCode.BROKER_NOT_AVAILABLE, 503),
    (TimedOut, ErrorCode.REQUEST_TIMED_OUT, 504),
    (ConnectionLost, ErrorCode.NETWORK_EXCEPTION, 503),
    (UnsupportedByBroker, ErrorCode.UNSUPPORTED_VERSION, 409),
)


def failure(name: str, message: str) -> Json:
    """Return the answer's body. name: Kafka's of the error, or one of the console's own in the same spelling."""
    return {"error": {"name": name, "message": one_line(message, MOST_CHARACTERS)}}


def of_error(error: ClientError) -> tuple[int, Json]:
    """Return status and body for an error of the console's client."""
    code, status = _code_and_status(error)
    return status, failure(code.name, str(error))


def name_of(error: ClientError) -> str:
    """Return Kafka's name of the error."""
    return _code_and_status(error)[0].name


def _code_and_status(error: ClientError) -> tuple[ErrorCode, int]:
    if isinstance(error, KafkaError):
        code = error.error_code
        if code in _NOT_FOUND:
            return code, 404
        if code.name.endswith("_AUTHORIZATION_FAILED"):
            return code, 403
        return code, 503 if error.retriable else 409
    for kind, code, status in _OF_CLASS:
        if isinstance(error, kind):
            return code, status
    return ErrorCode.UNKNOWN_SERVER_ERROR, 502
