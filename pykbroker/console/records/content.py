"""Bytes of a record as a page shows them: JSON, text, or a hex dump; null and empty are told apart."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from .json_layout import check, pretty

MOST_JSON_BYTES: Final = 1024 * 1024
_BYTES_A_LINE: Final = 16
_CHARACTERS_A_LINE: Final = 78
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SEPARATORS: Final = re.compile(r"[\s:]+")
FORMS: Final = ("auto", "text", "hex")


@dataclass(frozen=True, slots=True)
class Content:
    """The part of some bytes that is shown. kind: null, empty, json, text or hex; is_cut: the text lacks some."""

    kind: str
    text: str
    size_bytes: int
    is_cut: bool


def content_of(data: bytes | None, most_characters: int, form: str = "auto", *, lays_out: bool = True) -> Content:
    """Return what a page shows of a key or a value.

    form: `auto` for JSON or text where the bytes are that and hex elsewhere, `text`, or `hex`. lays_out: JSON gets one
    entry a line.
    """
    if not data:
        return Content("null" if data is None else "empty", "", 0, False)
    text = None if form == "hex" else _text(data, most_characters, is_lenient=form == "text")
    if text is None:
        return _dump(data, most_characters)
    if form == "auto" and lays_out:
        laid_out = _json(data, most_characters)
        if laid_out is not None:
            return _cut("json", laid_out, len(data), most_characters)
    shown = _cut("text", text, len(data), most_characters)
    return shown if len(data) <= 4 * most_characters else Content("text", shown.text, len(data), True)


def bytes_of_hex(text: str) -> bytes:
    """Return the bytes of pairs of hex digits, with spaces or colons between them or not. Raises ValueError."""
    return bytes.fromhex(_SEPARATORS.sub("", text))


def _cut(kind: str, text: str, size_bytes: int, most_characters: int) -> Content:
    return Content(kind, text[:most_characters], size_bytes, len(text) > most_characters)


def _text(data: bytes, most_characters: int, *, is_lenient: bool) -> str | None:
    """Return the beginning as text; None where that is no UTF-8, or has control characters."""
    beginning = data[: 4 * most_characters]
    decoder = codecs.getincrementaldecoder("utf-8")("replace" if is_lenient else "strict")
    try:
        text = decoder.decode(beginning, final=len(beginning) == len(data))
    except UnicodeDecodeError:
        return None
    if is_lenient:
        return text
    return None if _CONTROL.search(text) else text


def _json(data: bytes, most_characters: int) -> str | None:
    """Return an object or an array with one entry a line; None for all else: there is nothing to lay out."""
    if len(data) > MOST_JSON_BYTES or not data[:64].lstrip().startswith((b"{", b"[")):
        return None
    try:
        text = data.decode()
        check(text)
    except ValueError:
        return None
    return pretty(text, most_characters)


def _dump(data: bytes, most_characters: int) -> Content:
    lines = max(1, most_characters // _CHARACTERS_A_LINE)
    beginning = data[: lines * _BYTES_A_LINE]
    shown = (_dump_line(beginning, at) for at in range(0, len(beginning), _BYTES_A_LINE))
    return Content("hex", "\n".join(shown), len(data), len(beginning) < len(data))


def _dump_line(data: bytes, at: int) -> str:
    part = data[at : at + _BYTES_A_LINE]
    readable = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
    return f"{at:08x}  {part.hex(' '):<47}  {readable}"
