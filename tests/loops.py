"""Holds every loop that a test runs to a bound: no step of a task may take longer, whoever asked for it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from pykbroker.server.runtime.loop_monitor import Hold, LoopMonitor
from pykbroker.sim.threads import cpu_of_threads_s

LONGEST_MS = 250.0
"""Generous: a slow machine counts three times as much, and a first use compiles codecs and imports modules."""


def loop_cpu_s() -> float:
    return time.thread_time() - cpu_of_threads_s()


@contextmanager
def no_holds(monkeypatch: pytest.MonkeyPatch, bound_ms: float = LONGEST_MS) -> Iterator[list[Hold]]:
    """Watch every `trio.run` within; fail at the end where a step took longer than the bound, collections aside."""
    holds: list[Hold] = []
    run = trio.run

    def note(hold: Hold) -> None:
        if hold.cpu_ms - hold.collecting_ms > bound_ms:
            holds.append(hold)

    def watched_run(function: Callable[..., Awaitable[Any]], *args: object, **options: Any) -> Any:
        async def watched(*args: object) -> Any:
            with LoopMonitor(bound_ms, note, cpu_s=loop_cpu_s).watching():
                return await function(*args)

        return run(watched, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(trio, "run", watched_run)
        yield holds
    assert not holds, f"the event loop was held for more than {bound_ms:g} ms: {'; '.join(map(str, holds))}"
