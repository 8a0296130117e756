"""The place where a share group without a start offset begins: `share.auto.offset.reset` (KIP-932).

The model is Kafka's `ShareGroupAutoOffsetResetStrategy`, whose durations are those of Java's `Duration.parse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1
BY_DURATION: Final = "by_duration"

_DURATION: Final = (
    r"([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?"
)
_NANOS: Final = 1_000_000_000
_LONG: Final = 1 << 63
_MOST_CHARACTERS: Final = 200
"""Of a duration. Java reads longer ones where they are zeros; nobody writes them."""


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """A place in a partition. duration_ms: how far back from now; 0 but for `by_duration`."""

    kind: Literal["earliest", "latest", "by_duration"]
    duration_ms: int = 0

    def timestamp(self, now_ms: int) -> int:
        """Return what ListOffsets would be asked for: -2 for the earliest offset, -1 for the latest, or a time in ms.

        A duration that goes back to before 1970 stands for the time 0.
        """
        match self.kind:
            case "earliest":
                return EARLIEST_TIMESTAMP
            case "latest":
                return LATEST_TIMESTAMP
            case "by_duration":
                return max(now_ms - self.duration_ms, 0)


def offset_reset(text: str) -> OffsetReset:
    """Read a value of the key. Raises ValueError, with a reason that Kafka has too."""
    if text == "earliest":
        return OffsetReset("earliest")
    if text == "latest":
        return OffsetReset("latest")
    kind, colon, duration = text.partition(":")
    if kind == BY_DURATION and colon:
        nanos = _nanoseconds(duration)
        if nanos >= 0:
            return OffsetReset("by_duration", -(-nanos // 1_000_000))
    raise ValueError("neither 'earliest' nor 'latest' nor a duration that is not negative")


def _nanoseconds(text: str) -> int:
    """Read an ISO 8601 duration of days, hours, minutes and seconds as Java does. Raises ValueError."""
    found = re.fullmatch(_DURATION, text, re.ASCII | re.IGNORECASE) if len(text) <= _MOST_CHARACTERS else None
    if found is None or (found[3] or "").upper() == "T" or not any(found[part] for part in (2, 4, 5, 6)):
        raise ValueError("no duration")
    seconds = sum(int(found[part] or 0) * unit for part, unit in ((2, 86_400), (4, 3_600), (5, 60), (6, 1)))
    fraction = int((found[7] or "").ljust(9, "0"))
    nanos = seconds * _NANOS + (-fraction if (found[6] or "").startswith("-") else fraction)
    nanos = -nanos if found[1] == "-" else nanos
    if not -_LONG <= nanos // _NANOS < _LONG:
        raise ValueError("too long a duration")
    return nanos
