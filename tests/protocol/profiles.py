"""How much Hypothesis tries: little by default, PYKBROKER_HYPOTHESIS=thorough for a long look."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_FACTOR = {"quick": 1, "thorough": 40}[os.environ.get("PYKBROKER_HYPOTHESIS", "quick")]


def examples(quick: int) -> settings:
    return settings(
        max_examples=quick * _FACTOR,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
