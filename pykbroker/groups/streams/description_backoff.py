"""The time until a group is asked again for the description of its topology (KIP-1331).

The model is Kafka's `StreamsGroupTopologyDescriptionBackoff`, which keeps this beside the groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

_FIRST_DELAY_MS: Final = 30_000
_LONGEST_DELAY_MS: Final = 3_600_000
_JITTER: Final = 0.2
_MOST_DOUBLINGS: Final = 7


@dataclass(frozen=True, slots=True)
class DescriptionBackoff:
    """The time during which a group is not asked again. attempts: before this one."""

    topology_epoch: int
    attempts: int
    until_ms: int

    def is_active(self, topology_epoch: int, now_ms: int) -> bool:
        return self.topology_epoch == topology_epoch and now_ms < self.until_ms


def backoff_after(
    before: DescriptionBackoff | None, topology_epoch: int, now_ms: int, rng: Random
) -> DescriptionBackoff:
    """Return the backoff of one more attempt: 30 seconds, twice as long each time, an hour at most."""
    attempts = before.attempts + 1 if before is not None and before.topology_epoch == topology_epoch else 0
    doubled_ms = min(_FIRST_DELAY_MS * 2 ** min(attempts, _MOST_DOUBLINGS), _LONGEST_DELAY_MS)
    delay_ms = doubled_ms * rng.uniform(1 - _JITTER, 1 + _JITTER)
    return DescriptionBackoff(topology_epoch, attempts, now_ms + min(int(delay_ms), _LONGEST_DELAY_MS))
