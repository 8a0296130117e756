"""What a broker's log says of its event loop: nobody may hold it for long, whatever a test asked for."""

import re

LONGEST_MS = 250
"""Generous, in CPU: a slow machine counts three times as much, and a first use compiles codecs and imports modules."""

_HOLD = re.compile(r".* held the event loop for (\d+) ms of CPU.*")


def assert_loop_not_held(log: str, *, bound_ms: int = LONGEST_MS) -> None:
    """log: of a pykbroker, which warns of each step above PYKBROKER_LOOP_BOUND_MS once it serves."""
    holds = [hold[0] for hold in _HOLD.finditer(log) if int(hold[1]) > bound_ms]
    assert not holds, f"somebody held the event loop for more than {bound_ms} ms:\n" + "\n".join(holds)
