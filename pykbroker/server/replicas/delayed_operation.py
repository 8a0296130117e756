"""The wait of a request: until something changes, its time is over, or its client has left or waits for something else.

Kafka's counterpart is `DelayedOperation` with its purgatory. Here a task waits: it is woken by each change, and looks
for itself whether that is enough. A client that has closed its end is noticed some seconds later
(`Connection.look_for_peer`, `ConnectionState.leave`). Nothing polls, and a change that nobody waits for costs one look
at an empty dict.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Protocol, Self

import trio

from pykbroker.replication.partition import Partition

from ..runtime.causes import current_cause, note_release


class WaitingClient(Protocol):
    """The client that waits for an answer; `ConnectionState` is one."""

    has_left: bool
    give_up: Callable[[], None] | None
    asked_again: Callable[[], Awaitable[None]] | None
    waited_ns: int


class DelayedOperation(ABC):
    """The wait of one task within a `with` block. When `client` has left, the time is over."""

    __slots__ = ("_asked_again", "_cause", "_client", "_deadline", "_parked", "_scope")

    def __init__(
        self, timeout_ms: int, client: WaitingClient | None, asked_again: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Once `asked_again` returns, the time is over."""
        self._client = client
        self._asked_again = asked_again
        self._parked: trio.lowlevel.Task | None = None
        self._scope: trio.CancelScope | None = None
        self._cause = 0
        """The request that has woken it last."""
        self._deadline = trio.current_time() + timeout_ms / 1000

    @abstractmethod
    def _watch(self) -> None:
        """Watch what the operation waits for: each change calls `_wake` from now on."""

    @abstractmethod
    def _unwatch(self) -> None: ...

    def __enter__(self) -> Self:
        self._watch()
        client = self._client
        if client is not None:
            client.give_up = self.give_up
            if client.has_left:
                self._deadline = -math.inf
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._unwatch()
        if self._cause:
            note_release(self._cause)
        if self._client is not None:
            self._client.give_up = None

    def give_up(self) -> None:
        """The time is over now."""
        self._deadline = -math.inf
        self._wake()
        self._cause = 0

    def _wake(self) -> None:
        self._cause = current_cause()
        if self._parked is not None:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None
        elif self._scope is not None:
            self._scope.cancel()

    async def _wait(self) -> None:
        """Return at the next `_wake`, or once the time is over."""
        began_ns = time.perf_counter_ns()
        try:
            await self._park()
        finally:
            if self._client is not None:
                self._client.waited_ns += time.perf_counter_ns() - began_ns

    async def _park(self) -> None:
        self._cause = 0
        with trio.CancelScope(deadline=self._deadline) as scope:
            if self._asked_again is None:
                self._parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)
                return
            self._scope = scope
            try:
                await self._asked_again()
                self._deadline = -math.inf
            finally:
                self._scope = None

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED


class PartitionChanges(DelayedOperation):
    """The wait for changes of partitions, which are watched within the block.

    Changes that come between two waits are kept, so nothing is missed between reading and waiting.
    """

    __slots__ = ("_changed", "_partitions")

    def __init__(
        self,
        partitions: Iterable[Partition],
        *,
        timeout_ms: int,
        client: WaitingClient | None = None,
        asked_again: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(timeout_ms, client, asked_again)
        self._partitions = tuple(dict.fromkeys(partitions))
        self._changed: dict[Partition, None] = {}

    def _watch(self) -> None:
        for partition in self._partitions:
            partition.watchers[self] = None

    def _unwatch(self) -> None:
        for partition in self._partitions:
            del partition.watchers[self]

    def partition_changed(self, partition: Partition) -> None:
        self._changed[partition] = None
        self._wake()

    async def next(self) -> list[Partition]:
        """Return what has changed since the last call, in order of the changes; nothing once the time is over."""
        if not self._changed:
            await self._wait()
        changed = list(self._changed)
        self._changed.clear()
        return changed
