"""An answer that one task waits for and another one gives later: a `CompletableFuture`, on one event loop.

Where hundreds of requests wait for one commit, a task for each costs more than their answers: `CalledBack` has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import trio

from .causes import current_cause, note_release

AnswerT = TypeVar("AnswerT")


class DeferredAnswer(Generic[AnswerT]):
    """The first answer or error counts; later ones are ignored.

    error: what `wait` raises; None where there is an answer, or neither yet.
    """

    __slots__ = ("_answer", "_cause", "_complete", "error")

    def __init__(self) -> None:
        self._complete = trio.Event()
        self._answer: AnswerT | None = None
        self._cause = 0
        self.error: Exception | None = None

    @property
    def is_complete(self) -> bool:
        return self._complete.is_set()

    def complete(self, answer: AnswerT, cause: int | None = None) -> None:
        """Give the answer. cause: the request that brought it about, or 0; None for the one in hand."""
        if not self._complete.is_set():
            self._answer = answer
            self._cause = current_cause() if cause is None else cause
            self._complete.set()

    def fail(self, error: Exception) -> None:
        if not self._complete.is_set():
            self.error = error
            self._cause = current_cause()
            self._complete.set()

    async def wait(self) -> AnswerT:
        """Return the answer when it is there, or raise the error."""
        await self._complete.wait()
        if self._cause:
            note_release(self._cause)
        if self.error is not None:
            raise self.error
        return cast("AnswerT", self._answer)


class CalledBack(Generic[AnswerT]):
    """An answer that a function is called with: `then(answer, None)` or `then(None, error)`, whichever comes first.

    The function runs in the step of whoever gives the answer, so it does next to nothing, and raises nothing.
    """

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[AnswerT | None, Exception | None], None]) -> None:
        self._then: Callable[[AnswerT | None, Exception | None], None] | None = then

    def complete(self, answer: AnswerT, cause: int | None = None) -> None:
        """Give the answer. cause: as `DeferredAnswer` has it; nobody here is told of it."""
        then, self._then = self._then, None
        if then is not None:
            then(answer, None)

    def fail(self, error: Exception) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(None, error)
