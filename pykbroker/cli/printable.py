"""Text from a peer or a file, made harmless for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with what is no printable character as an escape: no control character reaches the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
