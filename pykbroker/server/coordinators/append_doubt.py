"""Append doubt tells whether a coordinator's next append may be refused: then a step is a trial first, which is taken
back where it is.

Too few replicas in sync, or a leader that is none any more, are known before the append. Anything else is expected for
a minute after it has happened: a full disk, a record that is too large. So a log is read again because of a refusal
once a minute at most, however often somebody tries. Kafka's coordinators take back each refused step.
"""

from __future__ import annotations

import math

from pykbroker.replication.partition import Partition

DOUBT_MS = 60_000
"""After a refusal that nobody expected."""
FIRST_RETRY_MS = 500
LONGEST_RETRY_MS = 10_000


class AppendDoubt:
    """The doubt is about one partition, as long as it is led here in one epoch. Times are monotonic.

    next_attempt_ms: when the coordinator tries again what nobody asks it for.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._until_ms = -math.inf
        self._backoff_ms = FIRST_RETRY_MS
        self.next_attempt_ms = 0

    @property
    def is_certain(self) -> bool:
        """Tell whether an append would be refused now."""
        return not self._partition.is_leader or self._partition.is_under_min_isr

    def exists(self, now_ms: int) -> bool:
        return now_ms < self._until_ms or self.is_certain

    def refused(self, now_ms: int) -> None:
        self._until_ms = now_ms + DOUBT_MS

    def own_attempt_refused(self, now_ms: int) -> None:
        self.next_attempt_ms = now_ms + self._backoff_ms
        self._backoff_ms = min(2 * self._backoff_ms, LONGEST_RETRY_MS)

    def own_attempt_made(self) -> None:
        self._backoff_ms = FIRST_RETRY_MS
