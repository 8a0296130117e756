"""An answer that is given later: the first one counts, and whoever waits has it or its error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.server.runtime.deferred_answer import DeferredAnswer

MANY = 1000


def run(test: Callable[[], Awaitable[None]]) -> None:
    trio.run(test)


def test_an_answer_before_the_wait_is_there_at_once() -> None:
    async def main() -> None:
        answer = DeferredAnswer[str]()
        assert not answer.is_complete
        answer.complete("first")
        assert answer.is_complete
        with assert_checkpoints():
            assert await answer.wait() == "first"

    run(main)


def test_the_first_word_counts() -> None:
    async def main() -> None:
        answer, failed = DeferredAnswer[str](), DeferredAnswer[str]()
        answer.complete("first")
        answer.complete("second")
        answer.fail(ApiError(ErrorCode.NOT_COORDINATOR))
        assert await answer.wait() == "first"
        failed.fail(ApiError(ErrorCode.NOT_COORDINATOR))
        failed.complete("too late")
        failed.fail(ApiError(ErrorCode.REQUEST_TIMED_OUT))
        with pytest.raises(ApiError) as error:
            await failed.wait()
        assert error.value.code is ErrorCode.NOT_COORDINATOR

    run(main)


def test_none_is_an_answer() -> None:
    async def main() -> None:
        answer = DeferredAnswer[None]()
        answer.complete(None)
        await answer.wait()
        assert answer.is_complete

    run(main)


def test_all_who_wait_have_the_answer() -> None:
    async def main() -> None:
        answer, heard = DeferredAnswer[int](), list[int]()

        async def wait() -> None:
            heard.append(await answer.wait())

        async with trio.open_nursery() as nursery:
            for _ in range(MANY):
                nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            answer.complete(7)
        assert heard == [7] * MANY

    run(main)


def test_whoever_is_cancelled_leaves_the_answer_to_the_others() -> None:
    async def main() -> None:
        answer, heard, scope = DeferredAnswer[int](), list[int](), trio.CancelScope()

        async def wait(scope: trio.CancelScope) -> None:
            with scope:
                heard.append(await answer.wait())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, scope)
            nursery.start_soon(wait, trio.CancelScope())
            await wait_all_tasks_blocked()
            scope.cancel()
            await wait_all_tasks_blocked()
            assert not answer.is_complete
            answer.complete(7)
        assert heard == [7]
        assert await answer.wait() == 7

    run(main)
