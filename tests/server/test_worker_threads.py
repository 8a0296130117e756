"""What calls in worker threads return and raise."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio

from pykbroker.server.runtime.threads import WorkerThreads


class _Large:
    """Something that a call makes, and that nobody needs when it has failed."""


def test_a_call_returns_and_raises_what_its_function_does() -> None:
    async def scenario() -> None:
        threads = WorkerThreads(limit=1)
        assert await threads.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 7, 0)
        assert await threads.run(divmod, 9, 4) == (2, 1)

    trio.run(scenario)


def test_a_call_that_fails_leaves_nothing_to_the_garbage_collector() -> None:
    made: list[weakref.ref[_Large]] = []

    def fail() -> None:
        large = _Large()
        made.append(weakref.ref(large))
        raise ValueError("refused")

    async def scenario() -> None:
        try:
            await WorkerThreads().run(fail)
        except ValueError:
            pass
        assert [each() for each in made] == [None]

    is_enabled = gc.isenabled()
    gc.disable()
    try:
        trio.run(scenario)
    finally:
        if is_enabled:
            gc.enable()
