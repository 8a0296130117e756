"""Places in partitions as a reader types them: an offset, a distance from an end, or a time.

    100, start, start+10, end, end-10, 2026-11-29T10:00:00Z, 2026-11-29, @1764410400000, 5m ago, 1h30m ago, now

Times without a zone are UTC; the page makes those of the reader's own zone complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from pykbroker.client.errors import BadInput

from .span import Span

MOST_OFFSET: Final = 2**63 - 1
_DISTANCE: Final = re.compile(r"(start|end)(?:\s*([+-])\s*([0-9]{1,19}))?")
_EPOCH_MS: Final = re.compile(r"@([0-9]{1,19})")
_AGO: Final = re.compile(r"((?:[0-9]{1,12}\s*(?:ms|s|m|h|d|w)\s*)+)ago")
_PART: Final = re.compile(r"([0-9]+)\s*(ms|s|m|h|d|w)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_FORMS: Final = "an offset, start, end-100, 5m ago, or a date and time such as 2026-11-29T10:00"


class Anchor(Enum):
    OFFSET = "offset"
    START = "start"
    END = "end"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in every partition. number: an offset, a distance from the anchor, or milliseconds since 1970."""

    anchor: Anchor
    number: int = 0


def parse_place(text: str, name: str, now_ms: int) -> Place:
    """Return the place that a text names. Raises BadInput."""
    wanted = text.strip()
    if wanted.isascii() and wanted.isdigit():
        if len(wanted) > 19 or int(wanted) > MOST_OFFSET:
            raise BadInput(f"'{name}': no offset is as large as {wanted[:30]}")
        return Place(Anchor.OFFSET, int(wanted))
    distance = _DISTANCE.fullmatch(wanted.lower())
    if distance is not None:
        return _distance(distance, name, wanted)
    moment_ms = _moment_ms(wanted, now_ms)
    if moment_ms is None:
        raise BadInput(f"'{name}' is {_FORMS}, not '{wanted[:60]}'")
    if not 0 <= moment_ms <= MOST_OFFSET:
        raise BadInput(f"'{name}': no record has the time of '{wanted[:60]}'")
    return Place(Anchor.TIME, moment_ms)


def offsets_of(place: Place, spans: Mapping[int, Span]) -> dict[int, int]:
    """Return the place's offset in each partition, inside of its span. The place is no time."""

    def offset_in(span: Span) -> int:
        match place.anchor:
            case Anchor.START:
                return span.inside(span.first + place.number)
            case Anchor.END:
                return span.inside(span.end - place.number)
            case _:
                return span.inside(place.number)

    return {partition: offset_in(span) for partition, span in spans.items()}


def _distance(found: re.Match[str], name: str, text: str) -> Place:
    anchor = Anchor(found[1])
    if found[2] is not None and (found[2] == "+") != (anchor is Anchor.START):
        raise BadInput(f"'{name}': no record is at '{text[:60]}'; start+10 and end-10 are inside of a partition")
    return Place(anchor, int(found[3] or 0))


def _moment_ms(text: str, now_ms: int) -> int | None:
    epoch = _EPOCH_MS.fullmatch(text)
    if epoch is not None:
        return int(epoch[1])
    ago = _AGO.fullmatch(text.lower())
    if ago is not None:
        return now_ms - sum(int(amount) * _UNITS_MS[unit] for amount, unit in _PART.findall(ago[1]))
    if text.lower() == "now":
        return now_ms
    try:
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
