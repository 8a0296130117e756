"""The scopes of time: for what a node asks a clock whether a limit is over. Each may be ahead of the clock by itself.

Timestamps that are written or told are the clock's in any case, and so are the waits of clients and the elections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pykbroker.reckoning import Reckoning, by_the_clock


def _not_ahead() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class TimeScopes:
    """The scopes of one node.

    tombstones: `delete.retention.ms` and the lags of compaction. producers: producer ids in logs, and transactional ids
    that nobody uses. sessions_ahead_ms: by how much the timers of groups are ahead of the monotonic clock.
    """

    retention: Reckoning = by_the_clock
    tombstones: Reckoning = by_the_clock
    transactions: Reckoning = by_the_clock
    producers: Reckoning = by_the_clock
    offsets: Reckoning = by_the_clock
    tokens: Reckoning = by_the_clock
    sessions_ahead_ms: Callable[[], int] = _not_ahead


BY_THE_CLOCK = TimeScopes()
