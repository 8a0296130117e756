"""Work that Ctrl-C or a termination signal ends in good order."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import trio


async def run_until_signal(work: Callable[[], Awaitable[None]]) -> int:
    """Cancels `work` at the first SIGINT or SIGTERM; 0, or the exit code that a shell gives for the signal."""
    received = 0

    async def watch(scope: trio.CancelScope) -> None:
        nonlocal received
        async for number in signals:
            received = number
            # A second one ends the process at once, whatever it waits for.
            signal.signal(number, signal.SIG_DFL)
            scope.cancel()
            return

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(watch, scope)
                await work()
            nursery.cancel_scope.cancel()
    return 128 + received if received else 0
