"""A thread for what blocks, so that coroutines of any kind can wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from .lazy_module import LazyModule

if TYPE_CHECKING:
    from . import loop_thread
else:
    loop_thread = LazyModule("pykbroker.testing.loop_thread")

T = TypeVar("T")


async def in_thread(fn: Callable[[], T]) -> T:
    """Call what blocks in a thread of its own; the caller is a coroutine of any kind.

    Where the caller is cancelled, `fn` goes on to its end.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            result = fn()
        except BaseException as error:
            with suppress(InvalidStateError):  # the caller has gone
                future.set_exception(error)
        else:
            with suppress(InvalidStateError):
                future.set_result(result)

    threading.Thread(target=work, name="pykbroker call", daemon=True).start()
    return await loop_thread.wait_for_future(future)
