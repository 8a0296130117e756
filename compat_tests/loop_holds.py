"""What a broker's log says of its event loop: nobody may hold it for long, whatever a test asked for."""

import re
from typing import NamedTuple

LONGEST_MS = 250
"""Generous, in CPU: a slow machine counts three times as much, and a first use compiles codecs and imports modules."""

_HOLD = re.compile(r"(\S+(?: with .*| of .*)?) held the event loop for (\d+) ms of CPU")


class Hold(NamedTuple):
    cpu_ms: int
    who: str


def loop_holds(log: str) -> list[Hold]:
    """log: of a pykbroker, which warns of each step above PYKBROKER_LOOP_BOUND_MS once it serves."""
    return [Hold(int(cpu_ms), who) for who, cpu_ms in _HOLD.findall(log)]


def assert_loop_not_held(log: str, *, bound_ms: int = LONGEST_MS) -> None:
    holds = [hold for hold in loop_holds(log) if hold.cpu_ms > bound_ms]
    assert not holds, f"somebody held the event loop for more than {bound_ms} ms: {holds}"
