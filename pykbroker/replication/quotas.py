"""A quota bounds how fast replicas that are not in sync are copied (KIP-73): Kafka's `ReplicationQuotaManager`.

A broker has two rates, for what it sends as a leader and for what it fetches as a follower; a topic says which of its
replicas they hold for. Who is in sync is never held back, or it would fall out of the ISR.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .partition import Partition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"

ThrottledReplicas = Callable[[str], str]
"""A topic's list as its configuration has it: `*`, or `partition:broker,…`."""


class RateLimit:
    """Bytes in the last windows, against a rate; nothing is counted while there is none."""

    def __init__(self, window_count: int = 11, window_ms: int = 1000) -> None:
        self.bytes_per_second: float | None = None
        self._window_ms = window_ms
        self._span_ms = window_count * window_ms
        self._windows: deque[tuple[int, int]] = deque()
        self._total = 0

    def note(self, size_bytes: int, now_ms: int) -> None:
        if self.bytes_per_second is None:
            return
        begin_ms = now_ms - now_ms % self._window_ms
        self._total += size_bytes
        if self._windows and self._windows[-1][0] == begin_ms:
            size_bytes += self._windows.pop()[1]
        self._windows.append((begin_ms, size_bytes))

    def free_at_ms(self, now_ms: int) -> int:
        """Return when the bytes so far are within the rate, if nothing is added."""
        self._forget(now_ms)
        if self.bytes_per_second is None or not self._windows:
            return now_ms
        begin_ms = self._windows[0][0]
        if not self.bytes_per_second:
            return now_ms + self._span_ms
        needed_ms = self._total * 1000 / self.bytes_per_second
        return max(now_ms, min(begin_ms + int(needed_ms), begin_ms + self._span_ms))

    def is_exceeded(self, now_ms: int) -> bool:
        return self.free_at_ms(now_ms) > now_ms

    def _forget(self, now_ms: int) -> None:
        while self._windows and self._windows[0][0] <= now_ms - self._span_ms:
            self._total -= self._windows.popleft()[1]


def is_named(throttled: str, partition: int, broker_id: int) -> bool:
    """Return whether a topic's list names the replica."""
    return throttled.strip() == "*" or f"{partition}:{broker_id}" in (each.strip() for each in throttled.split(","))


class ReplicaQuota:
    """A throttle says which partitions may not be fetched for now (`ReplicationQuota`); this one lets all pass."""

    def holds_back(self, partition: Partition, now_ms: int) -> bool:
        """The partition is throttled and the quota is used up."""
        return False

    def note(self, partition: Partition, size_bytes: int, now_ms: int) -> None:
        """Note that so many bytes were received for the partition."""

    def free_at_ms(self, now_ms: int) -> int:
        """Return when it is worth asking again."""
        return now_ms


class ReplicationQuota(ReplicaQuota):
    """One of the two rates of a broker. throttled: the topics' lists for this one."""

    def __init__(self, local_id: int, throttled: ThrottledReplicas, limit: RateLimit) -> None:
        self._local_id = local_id
        self._throttled = throttled
        self._limit = limit
        self._known: dict[tuple[str, int], bool] = {}

    @property
    def is_set(self) -> bool:
        return self._limit.bytes_per_second is not None

    def configure(self, bytes_per_second: float | None) -> None:
        """Take new settings over. To be called as well when a topic's list may have changed."""
        self._limit.bytes_per_second = bytes_per_second
        self._known.clear()

    def is_throttled(self, partition: Partition) -> bool:
        key = partition.topic, partition.index
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = is_named(self._throttled(partition.topic), partition.index, self._local_id)
        return known

    def holds_back(self, partition: Partition, now_ms: int) -> bool:
        return self.is_set and self.is_throttled(partition) and self._limit.is_exceeded(now_ms)

    def note(self, partition: Partition, size_bytes: int, now_ms: int) -> None:
        if self.is_set and self.is_throttled(partition):
            self._limit.note(size_bytes, now_ms)

    def free_at_ms(self, now_ms: int) -> int:
        return max(self._limit.free_at_ms(now_ms), now_ms + 1)
