"""Dates in the patterns of Java's SimpleDateFormat, as far as `--date-format` of Kafka's tool is used: numbers only."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from .command import CommandFailed

DEFAULT_PATTERN: Final = "yyyy-MM-dd HH:mm:ss:SSS"
_PARTS: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_FIELDS: Final[dict[str, Callable[[datetime], int]]] = {
    "y": lambda at: at.year,
    "M": lambda at: at.month,
    "d": lambda at: at.day,
    "H": lambda at: at.hour,
    "m": lambda at: at.minute,
    "s": lambda at: at.second,
    "S": lambda at: at.microsecond // 1000,
}
_LONGEST_PATTERN: Final = 200


def date_text(at: datetime, pattern: str) -> str:
    """Raises CommandFailed for a letter that is not served."""
    if len(pattern) > _LONGEST_PATTERN or _PARTS.sub("", pattern):
        raise CommandFailed(f"--date-format '{pattern[:_LONGEST_PATTERN]}' is no pattern of dates")
    return "".join(_part(at, match.group()) for match in _PARTS.finditer(pattern))


def _part(at: datetime, letters: str) -> str:
    if letters.startswith("'"):
        return "'" if letters == "''" else letters[1:-1].replace("''", "'")
    if not letters[0].isalpha():
        return letters
    field = _FIELDS.get(letters[0])
    if field is None or (letters[0] == "M" and len(letters) > 2):
        raise CommandFailed(f"--date-format has '{letters}'; only y, M, d, H, m, s and S as numbers are served")
    number = field(at)
    return f"{number % 100:02d}" if letters == "yy" else str(number).zfill(len(letters))
