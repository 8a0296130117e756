"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable

DEADLINE_S = 180.0
"""Longer than producers of Java and kafka-python try by default (`delivery.timeout.ms`): a loaded machine is slow, not
wrong.
"""


def until(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Returns when the condition holds; fails with `what` where it does not come about."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {deadline_s} s: {what}"
        time.sleep(0.02)
