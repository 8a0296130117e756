"""Text that clients had a hand in, as one line."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Return the text as one line that does nothing to a terminal: what cannot be printed is escaped."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
