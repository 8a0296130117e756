"""A JSON Web Token in its compact form (RFC 7515, RFC 7519), read within bounds and without a look at its signature.

The bounds are ours: a token is not longer than 64 KiB, its JSON has no name twice, and a principal is not longer than
1,024 characters and has a place in UTF-8.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

MAX_TOKEN_CHARS: Final = 65_536
MAX_PRINCIPAL_CHARS: Final = 1_024
LAST_MS: Final = (1 << 63) - 1
"""The last moment that Kafka's clocks can name."""

_PARTS: Final = 3
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)


class InvalidToken(Exception):
    """A token that is refused. `str(error)` is for the log, and holds nothing of the token but names of its claims.

    scope: what the token had to be good for, where that is what it lacks; the client is told.
    """

    def __init__(self, reason: str, *, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


@dataclass(frozen=True, slots=True)
class CompactToken:
    """The parts of a token. signed: the bytes that the signature is for."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


def read_token(text: str) -> CompactToken:
    """Raises InvalidToken."""
    if len(text) > MAX_TOKEN_CHARS:
        raise InvalidToken(f"it is longer than {MAX_TOKEN_CHARS} characters")
    parts = text.split(".", _PARTS)
    if len(parts) != _PARTS:
        raise InvalidToken("it has not three parts")
    header, claims, signature = parts
    return CompactToken(
        _json_object("header", header),
        _json_object("payload", claims),
        f"{header}.{claims}".encode(),
        _bytes("signature", signature),
    )


def number_claim(claims: Mapping[str, Any], name: str) -> int | float | None:
    """The number of a claim, None where it is missing. Raises InvalidToken."""
    value = claims.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InvalidToken(f"its claim '{name}' is not a number")
    return value


def milliseconds(seconds: float) -> int:
    """The moment of a claim, as far as Kafka's clocks go."""
    if not -LAST_MS < seconds * 1000 < LAST_MS:
        return LAST_MS if seconds > 0 else -LAST_MS
    return round(seconds * 1000)


def check_principal(name: str) -> str:
    """Return the name of a principal. Raises InvalidToken for one that could not be told to others."""
    if len(name) > MAX_PRINCIPAL_CHARS:
        raise InvalidToken(f"its principal is longer than {MAX_PRINCIPAL_CHARS} characters")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidToken("its principal is no text of Unicode") from None
    return name


def _json_object(what: str, text: str) -> dict[str, Any]:
    data = _bytes(what, text)
    try:
        value = json.loads(data.decode(), object_pairs_hook=_without_duplicates, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidToken(f"its {what} is no JSON that can be read") from None
    if not isinstance(value, dict):
        raise InvalidToken(f"its {what} is no JSON object")
    return value


def _bytes(what: str, text: str) -> bytes:
    if _BASE64URL.fullmatch(text) is None or len(text) % 4 == 1:
        raise InvalidToken(f"its {what} is not in Base64url")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError("JSON has no such number")
