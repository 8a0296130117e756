"""What an input costs: steps of Python, processor time, and memory at its peak.

Memory is what Python's allocator gives out (tracemalloc). An input may cost four times its size, and FLOOR_BYTES
besides. The floor is needed because an element of an array may be one byte on the wire and is an object here: a struct
of a dozen fields takes up to 250 bytes. A frame of 4 KiB that is full of them takes about a megabyte, which is what a
connection's own buffers may take. For large frames the number of objects has a bound of its own (`most_entries` of a
handler, `OBJECTS_LIMIT` of the codec); `test_elements_of_arrays.py` measures how much one object takes.

Steps are the lines of Python that run, the same on every machine. A line takes 0.1 µs and more, so STEPS is what 50 ms
are good for where most of it is Python. Work inside of C has no steps: the search looks at processor time as well,
which a test does not.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

FLOOR_BYTES: Final = 1 << 20
BYTES_PER_BYTE: Final = 4
STEPS: Final = 200_000
CPU_S: Final = 0.05
_TRIES: Final = 5


def allowed_bytes(size: int, besides: int = 0) -> int:
    """Return how much memory an input of this size may take at its peak."""
    return BYTES_PER_BYTE * size + FLOOR_BYTES + besides


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the memory at the peak of a call, above what there was before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def steps(call: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs, in whatever it calls. Other tracing of the thread has a pause."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def cpu_s(call: Callable[[], object]) -> float:
    """Return the processor time of a call, at its best of some tries where the first one is too long."""
    best = _cpu_s(call)
    for _ in range(_TRIES):
        if best <= CPU_S:
            break
        best = min(best, _cpu_s(call))
    return best


def _cpu_s(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return time.thread_time() - start
