"""The metrics of the groups that this broker coordinates: how many there are, and how far behind they are.

A coordinator knows the committed offsets, and where the log ends only of partitions that this broker has. The lag of
others follows from `pykbroker_group_committed_offset` and the high watermark that their leader tells.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pykbroker.metric_labels import label
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.runtime.turns import Turn

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.groups.shard import GroupShard
    from pykbroker.server.node.broker import Broker

_STEPS_OF_GROUP = 3
_STEPS_OF_OFFSET = 4


async def read_groups(broker: Broker, readings: Readings, turn: Turn, *, most: int) -> None:
    """Read each group's offsets, or none where there are more than `most` groups or offsets."""
    shards = [shard for index in broker.groups.active_partitions if (shard := broker.groups.shard(index)) is not None]
    counts: Counter[tuple[str, str]] = Counter()
    groups, offsets = 0, 0
    for shard in shards:
        for group in list(shard.groups.values()):
            counts[group.type.value, str(group.state.value)] += 1
            groups += 1
            offsets += shard.offsets.committed.count(group.group_id)
            await turn.took(_STEPS_OF_GROUP)
    for (protocol, state), count in counts.items():
        readings.add("kafka_server_group_coordinator_metrics_group_count", count, protocol, state)
    for kind, rebalances in broker.groups.rebalances.items():
        readings.add(f"kafka_server_group_coordinator_metrics_{kind}_group_rebalance", rebalances)
    if max(groups, offsets) > most:
        readings.add("pykbroker_left_out", groups, "groups")
        return
    reading = _Offsets(broker, readings, turn)
    for shard in shards:
        for group_id in list(shard.groups):
            await reading.read(shard, group_id)


class _Offsets:
    """The committed offsets of groups, and their lag."""

    def __init__(self, broker: Broker, readings: Readings, turn: Turn) -> None:
        self._find = broker.partitions.get_partition
        self._turn = turn
        self._committed = readings.of("pykbroker_group_committed_offset")
        self._lag = readings.of("pykbroker_group_lag")
        self._sums = readings.of("pykbroker_group_lag_sum")

    async def read(self, shard: GroupShard, group_id: str) -> None:
        shown, total, has_lag = label(group_id), 0, False
        for topic, partitions in list(shard.offsets.committed.of_group(group_id)):
            for index, committed in list(partitions.items()):
                labels = (shown, label(topic), str(index))
                self._committed.append((labels, committed.offset))
                partition = self._find(topic, index)
                if not isinstance(partition, ErrorCode):
                    lag = max(0, partition.high_watermark - committed.offset)
                    self._lag.append((labels, lag))
                    total, has_lag = total + lag, True
                await self._turn.took(_STEPS_OF_OFFSET)
        if has_lag:
            self._sums.append(((shown,), total))
        await self._turn.took()
