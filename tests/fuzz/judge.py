"""Whether an input is a fault: by an exception that is not declared, or by what it costs."""

from __future__ import annotations

from .costs import CPU_S, STEPS, allowed_bytes, cpu_s, peak_bytes, steps
from .targets import TARGETS


class Fault(AssertionError):
    """An input costs too much; the text says what of."""


def check_quickly(name: str, data: bytes) -> None:
    """Run an input, and look at processor time. Raises Fault, and whatever the target does not declare."""
    target = TARGETS[name]
    taken = cpu_s(lambda: target.accepts(data))
    if taken > CPU_S:
        raise Fault(f"{name} takes {taken * 1000:.0f} ms of the processor for {len(data)} bytes")


def check_memory(name: str, data: bytes) -> None:
    """Raises Fault, and whatever the target does not declare."""
    target = TARGETS[name]
    target.accepts(data)  # a first use may import modules and generate codecs, which stay
    peak, allowed = peak_bytes(lambda: target.accepts(data)), allowed_bytes(len(data), target.allowed_bytes)
    if peak > allowed:
        raise Fault(f"{name} takes {peak} bytes of memory for {len(data)}, {allowed} are allowed")


def check_steps(name: str, data: bytes) -> None:
    """Raises Fault, and whatever the target does not declare."""
    target = TARGETS[name]
    target.accepts(data)
    taken = steps(lambda: target.accepts(data))
    if taken > STEPS:
        raise Fault(f"{name} takes {taken} steps for {len(data)} bytes, {STEPS} are allowed")
