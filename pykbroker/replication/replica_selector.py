"""A consumer reads from the closest replica (KIP-392, `RackAwareReplicaSelector`).

The leader tells it; the consumer then reads there up to that replica's high watermark, and comes back when it asks for
what is not there.
"""

from __future__ import annotations

from collections.abc import Callable

from .partition import Partition

NO_PREFERENCE = -1

RackOf = Callable[[int], str | None]
"""The rack of a broker that a consumer can reach now; None where it has none, or cannot be reached."""

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"


class RackAwareReplicaSelector:
    def __init__(self, rack_of: RackOf) -> None:
        self._rack_of = rack_of

    def select(self, partition: Partition, rack_id: str, offset: int) -> int:
        """The id of another broker that is in the consumer's rack and has the offset; else NO_PREFERENCE.

        Of several, the one that has most, then the one that was level with the leader last.
        """
        if not rack_id or not partition.is_leader or self._rack_of(partition.local_id) == rack_id:
            return NO_PREFERENCE
        isr = partition.isr
        near = [
            follower
            for follower in partition.in_sync.followers.values()
            if follower.replica_id in isr
            and 0 <= follower.log_start_offset <= offset <= follower.log_end_offset
            and self._rack_of(follower.replica_id) == rack_id
        ]
        if not near:
            return NO_PREFERENCE
        return max(near, key=lambda each: (each.log_end_offset, each.caught_up_ms, each.replica_id)).replica_id
