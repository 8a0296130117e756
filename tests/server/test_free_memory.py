"""What a thread has left in a heap of its own goes back to the system."""

from __future__ import annotations

import sys

import pytest
import trio

from pykbroker.server.free_memory import give_back_free_memory, trimming
from pykbroker.server.threads import WorkerThreads


def test_free_memory_is_given_back_every_ten_seconds() -> None:
    slept: list[float] = []
    calls: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 4:
            scope.cancel()
        await trio.lowlevel.checkpoint()

    async def run() -> None:
        with scope:
            await give_back_free_memory(WorkerThreads(1), lambda: calls.append(sum(slept)), sleep)

    scope = trio.CancelScope()
    trio.run(run)
    assert calls == [10, 20, 30]


def test_where_the_c_library_has_nothing_to_call_nothing_is_waited_for() -> None:
    async def sleep(seconds: float) -> None:
        raise AssertionError

    trio.run(give_back_free_memory, WorkerThreads(1), None, sleep)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_the_c_library_of_this_system_can_be_asked() -> None:
    trim = trimming()
    assert trim is not None
    assert trim() in (0, 1)  # whether there was something to give back
