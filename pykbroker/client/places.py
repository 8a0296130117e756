"""Places in partitions in words: an offset, a distance from an end, or a time.

    100, start, start+10, end, end-10, 2026-11-29T10:00:00Z, 2026-11-29, @1764410400000, "5m ago", now, today, yesterday

Times without a zone are UTC. A time stands for the first record that is as young, or for the end where none is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .errors import BadInput
from .moments import moment_ms
from .spans import Span

MOST_OFFSET: Final = 2**63 - 1
_RELATIVE: Final = re.compile(
    r"(?P<word>start|beginning|earliest|end|latest)?(?:\s*(?P<sign>[+-])\s*(?P<distance>[0-9]{1,19}))?"
)
_FORMS: Final = (
    "an offset, start, start+N, end, end-N, a time such as 2026-11-29T10:00:00Z, @MILLISECONDS, '5m ago', "
    "today or yesterday"
)


class Anchor(Enum):
    """The kind of a place."""

    OFFSET = "offset"
    START = "start"
    END = "end"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in every partition. number: an offset, what is added to the anchor's, or milliseconds since 1970."""

    anchor: Anchor
    number: int = 0

    def offset_in(self, span: Span) -> int:
        """Return the offset in a partition: inside of it, unless the place is an offset. The place is no time."""
        match self.anchor:
            case Anchor.START:
                return span.inside(span.first + self.number)
            case Anchor.END:
                return span.inside(span.end + self.number)
            case _:
                return self.number


START: Final = Place(Anchor.START)
END: Final = Place(Anchor.END)


def parse_place(text: str, name: str, now_ms: int) -> Place:
    """Return the place in a text. name: what the text is of, for complaints. Raises BadInput."""
    wanted = text.strip()
    if wanted.isascii() and wanted.isdigit():
        if len(wanted) > 19 or int(wanted) > MOST_OFFSET:
            raise BadInput(f"{name}: no offset is as large as {wanted[:40]}")
        return Place(Anchor.OFFSET, int(wanted))
    relative = _RELATIVE.fullmatch(wanted.lower())
    if relative is not None and wanted:
        return _relative(relative, name, wanted)
    moment = moment_ms(wanted, now_ms)
    if moment is None:
        raise BadInput(f"{name} expects {_FORMS}, not '{text[:80]}'")
    if not 0 <= moment <= MOST_OFFSET:
        raise BadInput(f"{name}: no record has the time of '{text[:80]}'")
    return Place(Anchor.TIME, moment)


def _relative(match: re.Match[str], name: str, text: str) -> Place:
    """`+N` alone counts from the start, `-N` from the end."""
    sign, distance = match["sign"], int(match["distance"] or 0)
    word = match["word"] or ("start" if sign == "+" else "end")
    anchor = Anchor.END if word in ("end", "latest") else Anchor.START
    if sign is not None and (sign == "+") != (anchor is Anchor.START):
        raise BadInput(f"{name}: no record is at '{text[:60]}'; start+N and end-N are inside of a partition")
    return Place(anchor, -distance if sign == "-" else distance)
