"""Names of figures that belong together on one curve: how a cost grows, and the percentiles of a latency.

A measure named after what grows (`growth: partitions`) has one figure a point: `curve_point("CPU µs/batch", 1000)`.
A measure of latency has `p50 ms`, `p99 ms`, `p99.9 ms`, or `produce p99 ms` where it has several latencies.
"""

from __future__ import annotations

import re

_POINT = " at "
_PERCENTILE = re.compile(r"(?:(?P<of>.+) )?p(?P<percent>\d{1,2}(?:\.\d{1,3})?) (?P<unit>ms|µs|us|s)")
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)


def curve_point(figure: str, grown_to: int) -> str:
    """The figure's name at one point of a growth curve: `CPU µs/batch at 1000`."""
    return f"{figure}{_POINT}{grown_to}"


def parse_curve_point(name: str) -> tuple[str, int] | None:
    """The figure, and how much there was of what grows; None for a name that `curve_point` does not make."""
    figure, _, grown_to = name.rpartition(_POINT)
    return (figure, int(grown_to)) if figure and _WHOLE.fullmatch(grown_to) else None


def parse_percentile(name: str) -> tuple[str, float] | None:
    """What the percentile is of, with its unit (`produce ms`, or just `ms`), and the percentage."""
    match = _PERCENTILE.fullmatch(name)
    if match is None:
        return None
    return " ".join(part for part in (match["of"], match["unit"]) if part), float(match["percent"])
