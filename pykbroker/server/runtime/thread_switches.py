"""A thread gives the interpreter to the waiting event loop after a tenth of a millisecond.

Large frames are decoded, and long answers encoded, in threads. Only one thread at a time runs Python, and CPython lets
it go on for 5 ms after another one has asked. The loop gives the interpreter away at each of its system calls, a dozen
for a small Produce, so a client beside such work would wait 5 ms for each of them.

The setting belongs to the whole process, so only a program that is nothing but a broker has this: `pykbroker start`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SWITCH_INTERVAL_S = 0.0001


@contextmanager
def quick_switches() -> Iterator[None]:
    """Let threads switch after a tenth of a millisecond, within a `with` block."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)
