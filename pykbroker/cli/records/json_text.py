"""JSON text with other white space and otherwise as it is: every digit of a number and every escape of a string stays.

Reading into Python's numbers and writing them again would round what is longer than a float.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NoReturn

INDENT = "  "
MOST_INDENTED = 40
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s"\[\]{},:]+')
_OPENING = frozenset("[{")
_CLOSING = frozenset("]}")
_BEHIND = {",": "{}", ":": " "}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _exact(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or Decimal(text) != Decimal(repr(number)):
        raise ValueError(f"the number {text[:40]} does not fit into 64 bits")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_EXACT_DECODER = json.JSONDecoder(parse_float=_exact, parse_constant=_refuse)
_CHECKER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


def parse(text: str) -> object:
    """Return the document. Raises ValueError for what is not JSON, NaN and Infinity included."""
    return _decode(_DECODER, text)


def parse_exactly(text: str) -> object:
    """Return the document, as `parse` does, or raise ValueError where a number would be rounded."""
    return _decode(_EXACT_DECODER, text)


def check(text: str) -> None:
    """Raise ValueError unless the text is JSON; a number may have as many digits as it likes."""
    _decode(_CHECKER, text)


def _decode(decoder: json.JSONDecoder, text: str) -> object:
    try:
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def compact(text: str) -> str:
    """Return valid JSON in one line, without spaces."""
    return "".join(_TOKEN.findall(text))


def pretty(text: str) -> str:
    """Return valid JSON with one entry a line, nested ones indented."""
    return "".join(_laid_out(_TOKEN.findall(text)))


def _new_line(depth: int) -> str:
    """No deeper than `MOST_INDENTED`: a document of a megabyte must not become one of gigabytes."""
    return "\n" + INDENT * min(depth, MOST_INDENTED)


def _laid_out(tokens: list[str]) -> Iterator[str]:
    depth = 0
    for index, token in enumerate(tokens):
        is_empty = index > 0 and token in _CLOSING and tokens[index - 1] in _OPENING
        if token in _CLOSING:
            depth -= 1
            if not is_empty:
                yield _new_line(depth)
        elif index > 0 and tokens[index - 1] in _OPENING:
            yield _new_line(depth)
        yield token
        if token in _OPENING:
            depth += 1
        else:
            yield _BEHIND.get(token, "").format(_new_line(depth))
