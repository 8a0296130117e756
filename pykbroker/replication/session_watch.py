"""A follower's fetch session reads only the partitions where something has happened.

Kafka reads all partitions of a session at each Fetch request. Here the session watches what it has read; a request
reads again what has changed since, what it names itself, and what is not settled: where the follower does not have all
that the leader has, is not in sync, or was refused. Of every other partition it says what the last one said, and its
time counts for them (`isr.Replica.quiet_in`), so that a quiet follower stays in sync.

A partition is watched up to its next change only, and no longer than the session lasts or its connection stands. What
was watched before says nothing more of its follower, and is let go of in portions (`let_go`): a session may be large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, TypeAlias

from pykbroker.long_work import PORTION, LongWork
from pykbroker.protocol.errors import ErrorCode

from .isr import InSyncReplicas
from .reads import FetchPartitionData

if TYPE_CHECKING:
    from .partition import Partition

PartitionKey: TypeAlias = tuple[bytes | str, int]
"""(topic id, partition) since version 13, (topic name, partition) before."""

_NEVER_MS = -(1 << 62)


class Watching:
    """A session watches these partitions, or did: a `PartitionWatcher`. fetched_ms: the last request that counted."""

    __slots__ = ("_keys", "_partitions", "_session", "fetched_ms")

    def __init__(self, session: SessionWatch, fetched_ms: int) -> None:
        self.fetched_ms = fetched_ms
        self._session: SessionWatch | None = session
        self._partitions: dict[PartitionKey, Partition] = {}
        self._keys: dict[InSyncReplicas, PartitionKey] = {}

    def add(self, key: PartitionKey, partition: Partition) -> None:
        self._partitions[key] = partition
        self._keys[partition.in_sync] = key
        partition.watchers[self] = None

    def remove(self, key: PartitionKey) -> None:
        partition = self._partitions.pop(key, None)
        if partition is not None:
            self._let_go_of(partition)

    def partition_changed(self, partition: Partition) -> None:
        self.ask_again(partition.in_sync)

    def ask_again(self, in_sync: InSyncReplicas) -> None:
        key = self._keys.get(in_sync)
        if key is None:
            return  # Told already: another watcher, a coordinator that appends at once, has changed it once more.
        self.remove(key)
        if self._session is not None:
            self._session.changed(key)

    def end(self) -> Collection[PartitionKey]:
        """The session is told of nothing any more. Returns what was watched: to be let go of, and until then as it is
        for its followers, since no request counts for it any more.
        """
        self._session = None
        return self._partitions

    def let_go(self) -> int:
        """Let go of some partitions; returns how many there were."""
        count = min(len(self._partitions), PORTION)
        for _ in range(count):
            _, partition = self._partitions.popitem()
            self._let_go_of(partition)
        return count

    def _let_go_of(self, partition: Partition) -> None:
        del self._keys[partition.in_sync]
        partition.watchers.pop(self, None)
        partition.in_sync.end_quiet(self)


class SessionWatch:
    """The watch of a session.

    on_change: set by who waits for one. speaker: what its last request came on, a connection or its like.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[], None] | None = None
        self.is_closed = False
        self.speaker: object = None
        self._broker_epoch: int | None = None
        self._unsettled: dict[PartitionKey, None] = {}
        """The next request reads these, the one that has waited longest first."""
        self._level: dict[PartitionKey, None] = {}
        """Settled as soon as the answer that is being made counts."""
        self._changed: dict[PartitionKey, None] = {}
        self._watching = Watching(self, _NEVER_MS)
        self._ended: list[Watching] = []

    # A request comes

    def named(self, key: PartitionKey) -> None:
        """The partition is new in the session, or what is asked of it is."""
        self._unwatch(key)
        self._unsettled[key] = None

    def forgotten(self, key: PartitionKey) -> None:
        self._unwatch(key)
        self._unsettled.pop(key, None)

    def begin(self, keys: Iterable[PartitionKey], broker_epoch: int, now_ms: int) -> None:
        """A request begins, behind what it names. keys: all of the session, for a follower that has registered anew.

        A request that still waits is overtaken, and looks up. `let_go` is to follow.
        """
        if broker_epoch != self._broker_epoch:
            self._broker_epoch = broker_epoch
            self.release()
            self._unsettled.update(dict.fromkeys(keys))
        self._watching.fetched_ms = now_ms
        self._level.clear()
        self._changed.clear()
        self._wake()

    def unsettled(self) -> list[PartitionKey]:
        return list(self._unsettled)

    # It is answered

    def was_read(
        self, key: PartitionKey, partition: Partition, data: FetchPartitionData, replica_id: int, offset: int
    ) -> None:
        """Watch what was read, at once, so that no change is missed. offset: what the session says the follower has."""
        if self.is_closed:
            return
        self._unwatch(key)
        self._changed.pop(key, None)
        self._watching.add(key, partition)
        is_refused = data.error_code is not ErrorCode.NONE or data.diverging_epoch is not None
        has_all = offset == partition.log.log_end_offset
        if not is_refused and has_all and partition.in_sync.begin_quiet(replica_id, offset, self._watching):
            self._level[key] = None
        else:
            self._unsettled[key] = None

    def changed(self, key: PartitionKey) -> None:
        """The watched partition is not as it was read."""
        self._level.pop(key, None)
        self._unsettled[key] = None
        self._changed[key] = None
        self._wake()

    def _wake(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def take_changes(self) -> list[PartitionKey]:
        """Return what has changed since the request came, or since the last call."""
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def answered(self, given: Iterable[PartitionKey]) -> None:
        """The answer counts. given: of these it has records; the next one's bytes go to others first."""
        for key in self._level:
            self._unsettled.pop(key, None)
        self._level.clear()
        for key in given:
            if key in self._unsettled:
                self._unsettled[key] = self._unsettled.pop(key)

    # It ends

    def release(self) -> None:
        """The connection is gone: nothing is watched before the session's next request, which asks for everything.
        `let_go` may follow at any time.
        """
        watching = self._watching
        self._level.clear()
        if watched := watching.end():
            self._unsettled.update(dict.fromkeys(watched))
            self._ended.append(watching)
        self._watching = Watching(self, watching.fetched_ms)

    def close(self) -> None:
        """There is no next request; one that waits looks up. `let_go` is to follow."""
        self.is_closed = True
        self.release()
        self._wake()

    def let_go(self) -> LongWork[None]:
        """Let go of what is watched no longer. Several tasks may do so at the same time."""
        while self._ended:
            if count := self._ended[-1].let_go():
                yield count
            else:
                self._ended.pop()

    def _unwatch(self, key: PartitionKey) -> None:
        self._level.pop(key, None)
        self._watching.remove(key)
