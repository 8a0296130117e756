"""JSON with other white space and otherwise as it was written: every digit of a number stays, and every escape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NoReturn

_INDENT: Final = "  "
_MOST_INDENTED: Final = 20
"""Levels: a deep document of a megabyte must not become one of gigabytes."""
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s"\[\]{},:]+')


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


_CHECKER: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


def check(text: str) -> None:
    """Raises ValueError unless the text is JSON; numbers may have as many digits as they like."""
    try:
        _CHECKER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def pretty(text: str, most_characters: int) -> str:
    """Return valid JSON with one entry a line, and a little more than so many characters of it at most."""
    parts: list[str] = []
    size = 0
    for part in _laid_out(text):
        parts.append(part)
        size += len(part)
        if size > most_characters:
            break
    return "".join(parts)


def _laid_out(text: str) -> Iterator[str]:
    depth = 0
    before = ""
    for found in _TOKEN.finditer(text):
        part = found[0]
        if part in ("]", "}"):
            depth -= 1
            if before not in ("[", "{"):
                yield _new_line(depth)
        elif before in ("[", "{"):
            yield _new_line(depth)
        yield part
        if part in ("[", "{"):
            depth += 1
        elif part == ",":
            yield _new_line(depth)
        elif part == ":":
            yield " "
        before = part


def _new_line(depth: int) -> str:
    return "\n" + _INDENT * min(depth, _MOST_INDENTED)
