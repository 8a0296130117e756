"""A duration as people write it: `7d`, `36h`, `1h30m`, `250ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

LONGEST: Final = timedelta(days=100 * 365)
"""Longer is a slip of the pen; and a time behind it would not fit into a timestamp for ever."""

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_PART: Final = re.compile(r"([0-9]{1,15})(ms|[smhdw])")
_LONGEST_TEXT: Final = 64


class BadDuration(ValueError):
    """The text is no duration, or none that a clock can be advanced by."""


def duration_ms(duration: str | timedelta) -> int:
    """Return the milliseconds of a duration. Raises BadDuration."""
    ms = _text_ms(duration) if not isinstance(duration, timedelta) else round(duration / timedelta(milliseconds=1))
    if ms <= 0:
        raise BadDuration(f"a clock goes forwards only, by at least a millisecond; {_shown(duration)} is not that")
    if ms > LONGEST / timedelta(milliseconds=1):
        raise BadDuration(f"{_shown(duration)} is more than a hundred years")
    return ms


def _text_ms(duration: object) -> int:
    if isinstance(duration, int) and not isinstance(duration, bool):
        raise BadDuration(f'{_shown(duration)} has no unit; write "{_shown(duration)}s" for seconds')
    if not isinstance(duration, str):
        raise BadDuration(f'a duration is a text such as "7d" or "1h30m", not {type(duration).__name__}')
    text = duration.strip().replace(" ", "").removeprefix("+")
    sign = -1 if text.startswith("-") else 1
    parts = text.removeprefix("-")
    matches = list(_PART.finditer(parts)) if len(parts) <= _LONGEST_TEXT else []
    if not matches or "".join(match[0] for match in matches) != parts:
        hint = f'; write "{parts}s" for seconds' if parts.isdecimal() else ""
        raise BadDuration(f'{_shown(duration)} is no duration such as "7d", "1h30m" or "250ms"{hint}')
    return sign * sum(int(match[1]) * _UNITS_MS[match[2]] for match in matches)


def _shown(duration: object) -> str:
    text = str(duration)
    return ascii(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "...")[1:-1]
