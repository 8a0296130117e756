"""Tests that are coroutines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import ParamSpec

import trio

P = ParamSpec("P")


def in_trio(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run the test in a loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        trio.run(partial(test, *args, **kwargs))

    return run
