"""Texts of errors that are longer than a Kafka string can be, since they repeat what a client sent.

A value of 32 kB that is no number comes back in the text that says so. Kafka's classes refuse to write such an answer,
and its client learns nothing but UNKNOWN_SERVER_ERROR. Here the text is cut, and the error stays what it is.
"""

from __future__ import annotations

from typing import Any, Final

from .primitives import MAX_STRING_BYTES
from .schema import Struct

_NAME: Final = "error_message"
_MARK: Final = "…"
_ROOM_BYTES: Final = MAX_STRING_BYTES - len(_MARK.encode())


def shorten_error_messages(struct: Struct) -> bool:
    """Cut the texts in all fields `error_message` of a message that are too long, in place; tell whether any was."""
    is_shorter = False
    for f in type(struct).__schema__.fields:
        value: Any = getattr(struct, f.name, None)
        if f.element == "struct":
            for inner in value if isinstance(value, list) else (value,):
                if isinstance(inner, Struct):
                    is_shorter |= shorten_error_messages(inner)
        elif f.name == _NAME and isinstance(value, str) and len(text := value.encode()) > MAX_STRING_BYTES:
            setattr(struct, f.name, text[:_ROOM_BYTES].decode("utf-8", "ignore") + _MARK)
            is_shorter = True
    return is_shorter
