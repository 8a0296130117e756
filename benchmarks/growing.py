"""Measures that repeat at sizes that grow: what one thing costs while another one grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.bench import Figures
from benchmarks.curves import curve_point

LEAST_POINTS = 2
SECONDS = 3.0
LEAST_SECONDS = 1.5
GROWTH = "most / first"
"""Behind the name of a figure: its dearest point by its first one. 1.0 is flat, or falling."""


def points(full: Sequence[int], scale: float) -> list[int]:
    """Those up to a part of the largest one, in ascending order; never fewer than two."""
    within = [size for size in full if size <= full[-1] * scale]
    return within if len(within) >= LEAST_POINTS else list(full[:LEAST_POINTS])


def seconds(scale: float) -> float:
    """How long a point is measured."""
    return max(SECONDS * min(scale, 1.0), LEAST_SECONDS)


def curve(figure: str, costs: Mapping[int, float]) -> Figures:
    """costs: by what had grown to how much, the smallest one first."""
    first = next(iter(costs.values()))
    drawn = {curve_point(figure, grown_to): cost for grown_to, cost in costs.items()}
    return {**drawn, f"{figure}, {GROWTH}": max(costs.values()) / first}
