"""How a request waits for its partitions: woken by their change, bounded by its own timeout.

A fetch waits for any change of what it reads, a produce with acks=all for the high watermark. A partition knows its
watchers and tells them synchronously; nothing polls, and where nobody waits a change costs one check of an empty
dict. Kafka's counterparts are the purgatories of `DelayedFetch` and `DelayedProduce`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Protocol

import trio

from pykbroker.replication.fetch_session import WatchedContext
from pykbroker.replication.partition import Partition
from pykbroker.replication.session_watch import PartitionKey


class WaitingClient(Protocol):
    """Who waits for an answer; `dispatch.ConnectionState` is one."""

    has_left: bool
    give_up: Callable[[], None] | None


class PartitionChanges:
    """Watches partitions within a `with` block, and lets one task wait for their changes.

    Changes that come between two waits are kept, so nothing is missed between reading and waiting. When `client` has
    left, the time is over.
    """

    __slots__ = ("_changed", "_client", "_parked", "_partitions", "deadline")

    def __init__(
        self, partitions: Iterable[Partition], *, timeout_ms: int, client: WaitingClient | None = None
    ) -> None:
        self._client = client
        self._partitions = tuple(dict.fromkeys(partitions))
        self._changed: dict[Partition, None] = {}
        self._parked: trio.lowlevel.Task | None = None
        self.deadline = trio.current_time() + timeout_ms / 1000

    def __enter__(self) -> PartitionChanges:
        for partition in self._partitions:
            partition.watchers[self] = None
        if self._client is not None:
            self._client.give_up = self.give_up
            if self._client.has_left:
                self.deadline = -math.inf
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for partition in self._partitions:
            del partition.watchers[self]
        if self._client is not None:
            self._client.give_up = None

    def give_up(self) -> None:
        """The time is over now."""
        self.deadline = -math.inf
        if self._parked is not None:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None

    def partition_changed(self, partition: Partition) -> None:
        self._changed[partition] = None
        if self._parked is not None:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None

    async def next(self) -> list[Partition]:
        """What has changed since the last call, in order of the changes; empty once the time is over."""
        if not self._changed:
            with trio.CancelScope(deadline=self.deadline):
                self._parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED


class SessionChanges:
    """The same for what a follower's fetch session watches: within a `with` block, one task waits for it.

    Nothing changes any more for a request that was overtaken, be it by another one of its session.
    """

    __slots__ = ("_client", "_context", "_deadline", "_parked")

    def __init__(self, context: WatchedContext, *, timeout_ms: int, client: WaitingClient | None = None) -> None:
        self._client = client
        self._context = context
        self._parked: trio.lowlevel.Task | None = None
        self._deadline = trio.current_time() + timeout_ms / 1000

    def __enter__(self) -> SessionChanges:
        if not self._context.is_overtaken:
            self._context.watch.on_change = self._wake
        if self._client is not None:
            self._client.give_up = self.give_up
            if self._client.has_left:
                self._deadline = -math.inf
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        watch = self._context.watch
        if watch.on_change == self._wake:  # and not that of a request on another connection
            watch.on_change = None
        if self._client is not None:
            self._client.give_up = None

    def give_up(self) -> None:
        """The time is over now."""
        self._deadline = -math.inf
        self._wake()

    def _wake(self) -> None:
        if self._parked is not None:
            trio.lowlevel.reschedule(self._parked)
            self._parked = None

    async def next(self) -> list[PartitionKey]:
        """What has changed since it was read, in order of the changes; empty once the time is over."""
        changed = self._take()
        if changed or self._context.is_overtaken:
            return changed
        with trio.CancelScope(deadline=self._deadline):
            self._parked = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        return self._take()

    def _take(self) -> list[PartitionKey]:
        """Those of an overtaken request are the other one's."""
        return [] if self._context.is_overtaken else self._context.watch.take_changes()

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED
