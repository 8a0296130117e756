"""The timers of one shard: named timeouts, each with at most one deadline. The model is Kafka's `CoordinatorTimer`.

No timer fires by itself: the driver asks `next_ms` when to call, and `pop_due` gives the timeouts that are due.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from pykbroker.kept_entries import KeptEntries


@dataclass(slots=True)  # frozen it would take three times as long to make, for each sign of life
class SessionTimeout:
    """A member, or a member id that was handed out and not used yet, was silent for its session timeout."""

    group_id: str
    member_id: str

    @property
    def key(self) -> tuple[str, ...]:
        return ("session", self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """An empty group has waited for more members to join. remaining_ms: how much longer it may wait in all."""

    group_id: str
    delay_ms: int
    remaining_ms: int

    @property
    def key(self) -> tuple[str, ...]:
        return ("join", self.group_id)


@dataclass(frozen=True, slots=True)
class RebalanceTimeout:
    """The timeout of a rebalance in which not every member has rejoined.

    The key is that of `InitialDelay`: a group is in one or the other.
    """

    group_id: str

    @property
    def key(self) -> tuple[str, ...]:
        return ("join", self.group_id)


@dataclass(frozen=True, slots=True)
class SyncTimeout:
    """The timeout of a generation for which not every member has sent SyncGroup."""

    group_id: str
    generation_id: int

    @property
    def key(self) -> tuple[str, ...]:
        return ("sync", self.group_id)


@dataclass(frozen=True, slots=True)
class RevocationTimeout:
    """A member of a consumer group has not given up its partitions in time. member_epoch: in which it was told to."""

    group_id: str
    member_id: str
    member_epoch: int

    @property
    def key(self) -> tuple[str, ...]:
        return ("revocation", self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class MemberRejoinTimeout:
    """A member of the classic protocol in a consumer group was told to rejoin, and has not."""

    group_id: str
    member_id: str

    @property
    def key(self) -> tuple[str, ...]:
        return ("member rejoin", self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class MemberSyncTimeout:
    """A member of the classic protocol in a consumer group has joined, and not sent SyncGroup since."""

    group_id: str
    member_id: str

    @property
    def key(self) -> tuple[str, ...]:
        return ("member sync", self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class StreamsInitialDelay:
    """A streams group that was empty has waited for more members before its first assignment."""

    group_id: str

    @property
    def key(self) -> tuple[str, ...]:
        return ("streams delay", self.group_id)


Timeout: TypeAlias = (
    SessionTimeout
    | InitialDelay
    | RebalanceTimeout
    | SyncTimeout
    | RevocationTimeout
    | MemberRejoinTimeout
    | MemberSyncTimeout
    | StreamsInitialDelay
)

_Key: TypeAlias = tuple[str, ...]
_Entry: TypeAlias = tuple[int, int, Timeout, _Key]
"""The time in milliseconds, a number that no other entry has, so that timeouts are never compared, the timeout, and its
key."""


class Deadlines:
    """A heap whose entries may be stale: of each key it has one at least that is not later than the key's deadline.

    A deadline that moves on, as sessions do with each request, leaves the heap as it is: the old entry makes room for
    the new one when it comes to the top. One that moves back is pushed beside the old entry. `_trim` sweeps when such
    entries pile up.
    """

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._current: dict[_Key, _Entry] = {}
        self._sequence = count()
        self._kept = KeptEntries(self._current.get, lambda entry: entry)

    def __len__(self) -> int:
        return len(self._current)

    def __contains__(self, timeout: Timeout) -> bool:
        return timeout.key in self._current

    def schedule(self, timeout: Timeout, at_ms: int) -> None:
        """Replace the deadline that the same key has."""
        key = timeout.key
        self._kept.keep(key)
        known = self._current.get(key)
        entry = self._current[key] = (at_ms, next(self._sequence), timeout, key)
        if known is None or at_ms < known[0]:
            heapq.heappush(self._heap, entry)
            self._trim()

    def cancel(self, timeout: Timeout) -> None:
        key = timeout.key
        self._kept.keep(key)
        self._current.pop(key, None)

    def due_ms(self, timeout: Timeout) -> int | None:
        """Return the deadline that the timeout's key has; None where it has none."""
        entry = self._current.get(timeout.key)
        return None if entry is None else entry[0]

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the changes stay. A deadline that is put back may come after
        others of the same time."""
        for key, entry in self._kept.end().items():
            if not is_kept and self._current.get(key) is not entry:
                self._current.pop(key, None)
                if entry is not None:
                    self.schedule(entry[2], entry[0])

    def next_ms(self) -> int | None:
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Timeout | None:
        """The earliest timeout that is due, in the order of deadlines; None when there is none."""
        self._drop_stale()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        timeout = heapq.heappop(self._heap)[2]
        self.cancel(timeout)
        return timeout

    def _drop_stale(self) -> None:
        heap, current = self._heap, self._current
        while heap:
            first = heap[0]
            entry = current.get(first[3])
            if entry is first:
                return
            if entry is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, entry)

    def _trim(self) -> None:
        if len(self._heap) > 2 * len(self._current) + 64:
            self._heap = list(self._current.values())
            heapq.heapify(self._heap)


def cancel_timeouts_of_member(deadlines: Deadlines, group_id: str, member_id: str) -> None:
    """Cancel all timeouts that a member of a consumer group can have."""
    for timeout in (
        SessionTimeout(group_id, member_id),
        RevocationTimeout(group_id, member_id, 0),
        MemberRejoinTimeout(group_id, member_id),
        MemberSyncTimeout(group_id, member_id),
    ):
        deadlines.cancel(timeout)
