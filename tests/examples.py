"""How many examples Hypothesis tries, by PYKBROKER_HYPOTHESIS.

- `quick`, which is usual: a few, the same in every run, so that `make test` says of one tree always the same;
- `ci`: more, and others in every run. A failure prints what repeats it (`@reproduce_failure`);
- `thorough`: for a long look.

No example fails because the machine is slow: there is no deadline, and no check of how fast examples are made.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

_PROFILE = os.environ.get("PYKBROKER_HYPOTHESIS", "quick")
_FEW = 20
"""So many are tried in any case."""


def examples(count: int, **options: Any) -> settings:
    """The settings of a test. count: of the examples that `ci` tries."""
    return settings(max_examples=_count(count), **options)


def load_profile() -> None:
    """Every test has these settings, unless it says otherwise. A conftest calls it, before tests are imported."""
    settings.register_profile(
        "pykbroker",
        max_examples=_count(100),
        deadline=None,
        database=None,
        derandomize=_PROFILE == "quick",
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("pykbroker")


def _count(count: int) -> int:
    match _PROFILE:
        case "quick":
            return max(count // 3, min(count, _FEW))
        case "ci":
            return count
        case "thorough":
            return count * 40
    raise ValueError(f"PYKBROKER_HYPOTHESIS is quick, ci or thorough, not {_PROFILE}")
