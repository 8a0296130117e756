"""A thread with a Trio loop of its own, into which programs of any kind call: blocking ones, asyncio, Trio.

A broker inside a test process must go on while the test blocks, and the test may itself be a coroutine of another loop.
So each broker has a thread; calls go in by `TrioToken.run_sync_soon` and come back as a `concurrent.futures.Future`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, TypeVar, TypeVarTuple, Unpack

import trio

from .errors import BrokerNotRunning

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LoopThread:
    """A loop in a thread. name: of the thread. prepare: is called in the thread first, for its context variables."""

    def __init__(self, name: str, prepare: Callable[[], object] = lambda: None) -> None:
        self._name = name
        self._prepare = prepare
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._started = threading.Event()
        self._pending: set[Future[Any]] = set()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def nursery(self) -> trio.Nursery:
        """Tasks that live as long as the loop. Only for code that runs in the loop."""
        assert self._nursery is not None
        return self._nursery

    def start(self) -> None:
        """Start the thread, and return when its loop takes calls."""
        self._started.clear()
        # A daemon, so that a program that forgets to stop its brokers ends; it stops them in its exit handlers.
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Cancel what runs in the loop, and return when the thread has ended. What was asked and not answered fails."""
        thread, token = self._thread, self._token
        if thread is None:
            return
        if token is not None:
            try:
                token.run_sync_soon(self._cancel)
            except trio.RunFinishedError:
                pass
        thread.join()
        self._thread = self._token = None

    def call(self, fn: Callable[[Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
        """Run `fn` in the loop and wait for it, blocking. Raises what it raises, and BrokerNotRunning."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a call from the broker's own thread would wait for itself")
        future = self._submit(fn, args)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def call_async(self, fn: Callable[[Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
        """Run `fn` in the loop; the caller is a coroutine of Trio, of asyncio, or of anyio on either.

        Where the caller is cancelled, so is `fn`.
        """
        return await wait_for_future(self._submit(fn, args))

    def _submit(self, fn: Callable[[Unpack[Ts]], Awaitable[T]], args: tuple[*Ts]) -> Future[T]:
        future: Future[T] = Future()
        try:
            if self._token is None:
                raise trio.RunFinishedError
            self._token.run_sync_soon(self._begin, future, fn, args)
        except trio.RunFinishedError:
            raise BrokerNotRunning(f"{self._name} does not run") from None
        return future

    def _begin(self, future: Future[T], fn: Callable[[Unpack[Ts]], Awaitable[T]], args: tuple[*Ts]) -> None:
        self._pending.add(future)
        try:
            self.nursery.start_soon(self._answer, future, fn, args)
        except RuntimeError:  # the nursery has just been closed
            self._give_up(future)

    async def _answer(self, future: Future[T], fn: Callable[[Unpack[Ts]], Awaitable[T]], args: tuple[*Ts]) -> None:
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:

            def follow(done: Future[T]) -> None:
                if done.cancelled():
                    try:
                        token.run_sync_soon(scope.cancel)
                    except trio.RunFinishedError:
                        pass

            future.add_done_callback(follow)
            try:
                result = await fn(*args)
            except trio.Cancelled:
                self._give_up(future)
                raise
            except BaseException as error:
                self._fail(future, error)
                if not isinstance(error, Exception):
                    raise
            else:
                with suppress(InvalidStateError):
                    future.set_result(result)
        self._pending.discard(future)

    def _fail(self, future: Future[Any], error: BaseException) -> None:
        self._pending.discard(future)
        with suppress(InvalidStateError):  # the caller has gone
            future.set_exception(error)

    def _give_up(self, future: Future[Any]) -> None:
        self._fail(future, BrokerNotRunning(f"{self._name} was stopped meanwhile"))

    def _cancel(self) -> None:
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def _run(self) -> None:
        self._prepare()
        try:
            trio.run(self._main)
        finally:
            self._token = self._nursery = None
            for future in list(self._pending):
                self._give_up(future)
            self._started.set()

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._token = trio.lowlevel.current_trio_token()
            self._started.set()
            await trio.sleep_forever()


async def wait_for_future(future: Future[T]) -> T:
    """Wait for what another thread computes, in a coroutine of Trio or of asyncio. Raises RuntimeError elsewhere."""
    try:
        token = trio.lowlevel.current_trio_token()
    except RuntimeError:
        return await asyncio.wrap_future(future)
    done = trio.Event()

    def wake(_: Future[T]) -> None:
        try:
            token.run_sync_soon(done.set)
        except trio.RunFinishedError:
            pass

    future.add_done_callback(wake)
    try:
        await done.wait()
    except trio.Cancelled:
        future.cancel()
        raise
    return future.result()
