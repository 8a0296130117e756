"""The number of nodes that `start --cores` asks for: a number, or as many as this process may use cores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

MOST_CORES: Final = 64
CORES_VARIABLE: Final = "PYKBROKER_CORES"
"""The environment's variable for `--cores`, for containers and services."""
_CPU_MAX: Final = Path("/sys/fs/cgroup/cpu.max")
"""Linux's control groups, version 2: `QUOTA PERIOD` in microseconds, or `max PERIOD`."""


class CoreCount(click.ParamType[int]):
    """`auto`, or a number of nodes."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        if str(value).strip().lower() == "auto":
            return min(usable_cores(), MOST_CORES)
        text = str(value).strip()
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= MOST_CORES:
            self.fail(f"'{str(value)[:60]}' is neither auto nor a number from 1 to {MOST_CORES}", param, ctx)
        return int(text)


def usable_cores(cpu_max: Path = _CPU_MAX) -> int:
    """Return how many cores this process may use: by its affinity, and by the quota of its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        cores = os.cpu_count() or 1
    try:
        quota, _, period = cpu_max.read_text().strip().partition(" ")
        allowed = int(quota) // int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no control group, or no quota
        return cores
    return max(1, min(cores, allowed))
