"""JSON of the console's answers: dataclasses as objects, in text that any browser reads.

A whole number of a field that a browser would round, beyond 2^53, is a text.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Final

from .endpoint import Json

_LAST_EXACT: Final = 2**53


def encoded(value: Json) -> bytes:
    """Return the bytes; halves of characters, which Kafka's names may have, are escaped."""
    return json.dumps(value, default=_fields, separators=(",", ":")).encode()


def one_line(text: str, longest: int) -> str:
    """Return a text on one line, without control characters, cut where it is too long."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def _fields(value: object) -> Json:
    if is_dataclass(value):
        return {field.name: _exact(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} is no JSON")


def _exact(value: Json) -> Json:
    return str(value) if isinstance(value, int) and abs(value) > _LAST_EXACT else value
