"""Sample requests of every API that brokers serve, in every version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pykbroker.api import HANDLERS
from pykbroker.protocol.api_keys import ApiKey, request_type
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import Field, Message, Struct

ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR)
FULL: Final = "full"
BARE: Final = "bare"
NO_ACKS: Final = "no acks"
_ENTRIES: Final = 2


class Case(NamedTuple):
    """One request and the error that it is to be answered with. sample: `FULL`, `BARE` or `NO_ACKS`."""

    api_key: int
    version: int
    sample: str
    error: ErrorCode

    def request(self) -> Message:
        message = request_type(self.api_key)()
        _fill(message, self.version, 0, is_bare=self.sample == BARE)
        if hasattr(message, "acks"):
            message.acks = 0 if self.sample == NO_ACKS else -1
        return message


def cases() -> Iterator[Case]:
    for handler in HANDLERS.broker:
        for version in range(handler.min_version, handler.max_version + 1):
            for error in ERRORS:
                yield Case(handler.api_key, version, FULL, error)
            yield Case(handler.api_key, version, BARE, ERRORS[0])
            if handler.api_key == ApiKey.API_VERSIONS:
                yield Case(handler.api_key, version, FULL, ErrorCode.UNSUPPORTED_VERSION)
            if handler.api_key == ApiKey.PRODUCE:
                yield Case(handler.api_key, version, NO_ACKS, ERRORS[0])


def _fill(part: Struct, version: int, number: int, *, is_bare: bool) -> None:
    for position, each in enumerate(type(part).__schema__.fields):
        if each.versions.includes(version):
            value = _value(each, version, 10 * number + position + 1, is_bare=is_bare)
            setattr(part, each.name, value)


def _value(each: Field, version: int, number: int, *, is_bare: bool) -> Any:
    if is_bare and each.nullable.includes(version):
        return None
    if each.is_array:
        entries = 0 if is_bare else _ENTRIES
        return [_element(each, version, number + index, is_bare=is_bare) for index in range(entries)]
    return _element(each, version, number, is_bare=is_bare)


def _element(each: Field, version: int, number: int, *, is_bare: bool) -> Any:
    match each.element:
        case "struct":
            part = each.struct()
            _fill(part, version, number, is_bare=is_bare)
            return part
        case "string":
            return f"{each.name}-{number}"
        case "bytes":
            return b"bytes-%d" % number
        case "uuid":
            return number.to_bytes(16, "big")
        case "records":
            return b""
        case "bool":
            return True
        case "float64":
            return number / 2
        case _:
            return number % 100
