"""Texts from outside as values of metrics' labels."""

from __future__ import annotations

import hashlib
from typing import Final

LONGEST_LABEL: Final = 200


def label(text: str) -> str:
    """Return a name from outside as a label: one line of bounded length, and still one of its own.

    Topics' names come through as they are; ids of groups may be anything.
    """
    if text.isprintable() and len(text) <= LONGEST_LABEL and "\\" not in text:  # which stands for what is escaped
        return text
    shown = text.encode("unicode_escape", "surrogatepass").decode("ascii")
    if len(shown) <= LONGEST_LABEL:
        return shown
    return f"{shown[:LONGEST_LABEL]}…{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
