"""Places where a read begins and ends (`--from`, `--to`): an offset, a distance from an end, or a time.

    100, start, start+10, end, end-10, 2026-11-29T10:00:00Z, 2026-11-29, @1764410400000, "5m ago", now, today, yesterday

Times without a zone are UTC. A time stands for the first record that is as young, or for the end where none is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from pykbroker.protocol.topic_partition import TopicPartition

from ..command import CommandFailed
from ..moments import moment_ms as parse_moment

MOST_OFFSET: Final = 2**63 - 1
_RELATIVE = re.compile(r"(?P<word>start|beginning|earliest|end|latest)?(?:(?P<sign>[+-])(?P<distance>[0-9]{1,19}))?")
_FORMS: Final = (
    "an offset, start, start+N, end, end-N, a time such as 2026-11-29T10:00:00Z, @MILLISECONDS, '5m ago', "
    "today or yesterday"
)


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


START: Final = Place(Anchor.START)
END: Final = Place(Anchor.END)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first offset of a partition and the one behind its last record, as a reader sees them."""

    start: int
    end: int

    def inside(self, offset: int) -> int:
        return min(max(offset, self.start), self.end)


def parse_place(text: str, flag: str, now_ms: int) -> Place:
    """Raises CommandFailed."""
    wanted = text.strip()
    if wanted.isascii() and wanted.isdigit():
        if len(wanted) > 19 or int(wanted) > MOST_OFFSET:
            raise CommandFailed(f"{flag}: no offset is as large as {wanted[:40]}")
        return Place(Anchor.OFFSET, int(wanted))
    lowered = wanted.lower()
    relative = _RELATIVE.fullmatch(lowered)
    if relative is not None and lowered:
        return _relative(relative, flag, text)
    moment_ms = parse_moment(wanted, now_ms)
    if moment_ms is None:
        raise CommandFailed(f"{flag} expects {_FORMS}, not '{text[:80]}'")
    if not 0 <= moment_ms <= MOST_OFFSET:
        raise CommandFailed(f"{flag}: no record has the time of '{text[:80]}'")
    return Place(Anchor.TIME, moment_ms)


def _relative(match: re.Match[str], flag: str, text: str) -> Place:
    """`+N` alone counts from the start, `-N` from the end."""
    sign, distance = match["sign"], int(match["distance"] or 0)
    word = match["word"] or ("start" if sign == "+" else "end")
    anchor = Anchor.END if word in ("end", "latest") else Anchor.START
    if sign is not None and (sign == "+") != (anchor is Anchor.START):
        raise CommandFailed(f"{flag}: no record is at '{text}'; start+N and end-N are inside of a partition")
    return Place(anchor, -distance if sign == "-" else distance)


async def bounds_of(
    cluster: Cluster, partitions: Iterable[TopicPartition], isolation_level: int
) -> dict[TopicPartition, Bounds]:
    """Ask where the partitions begin and end now. Raises ClientError."""
    asked = list(partitions)
    starts = await list_offsets(cluster, dict.fromkeys(asked, EARLIEST_TIMESTAMP), isolation_level=isolation_level)
    ends = await list_offsets(cluster, dict.fromkeys(asked, LATEST_TIMESTAMP), isolation_level=isolation_level)
    # Where records are deleted meanwhile, the start may have passed the end that a reader sees.
    return {of: Bounds(starts[of].offset, max(ends[of].offset, starts[of].offset)) for of in asked}


async def offsets_at(
    cluster: Cluster, place: Place, bounds: Mapping[TopicPartition, Bounds], isolation_level: int
) -> dict[TopicPartition, int]:
    """Return the offset of the place in each partition, which only for an absolute one may be outside of its bounds."""
    if place.anchor is Anchor.TIME:
        found = await list_offsets(cluster, dict.fromkeys(bounds, place.number), isolation_level=isolation_level)
        return {of: bound.end if found[of].offset < 0 else found[of].offset for of, bound in bounds.items()}
    offset_in: dict[Anchor, Callable[[Bounds], int]] = {
        Anchor.OFFSET: lambda bound: place.number,
        Anchor.START: lambda bound: bound.inside(bound.start + place.number),
        Anchor.END: lambda bound: bound.inside(bound.end + place.number),
    }
    return {of: offset_in[place.anchor](bound) for of, bound in bounds.items()}
