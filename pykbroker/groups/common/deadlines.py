"""The timers of one shard: named timeouts, each with at most one deadline. The model is Kafka's `CoordinatorTimer`.

No timer fires by itself: the driver asks `next_ms` when to call, and `pop_due` gives the timeouts that are due.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from pykbroker.kept_entries import KeptEntries


@dataclass(frozen=True, slots=True)
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

_Entry: TypeAlias = tuple[int, int, Timeout]
"""The time in milliseconds, a number that no other entry has, so that timeouts are never compared, and the timeout."""


class Deadlines:
    """A heap with lazy deletion: moving a deadline leaves the old entry behind; `_trim` sweeps when they pile up."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._current: dict[tuple[str, ...], _Entry] = {}
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
        entry = self._current[key] = (at_ms, next(self._sequence), timeout)
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
        while self._heap and self._is_stale(self._heap[0]):
            heapq.heappop(self._heap)

    def _is_stale(self, entry: _Entry) -> bool:
        return self._current.get(entry[2].key) is not entry

    def _trim(self) -> None:
        if len(self._heap) > 2 * len(self._current) + 64:
            self._heap = [entry for entry in self._heap if not self._is_stale(entry)]
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
