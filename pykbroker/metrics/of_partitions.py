"""The metrics of each partition: its log on this broker, and what its leader knows of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.server.runtime.turns import Turn

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.replication.partition import Partition

_STEPS_OF_PARTITION = 8


async def read_partitions(partitions: list[Partition], readings: Readings, turn: Turn, *, most: int) -> None:
    """Read each partition, or none where there are more than `most`."""
    if len(partitions) > most:
        readings.add("pykbroker_left_out", len(partitions), "partitions")
        return
    size, start, end, segments = (
        readings.of(f"kafka_log_log_{name}") for name in ("size", "logstartoffset", "logendoffset", "numlogsegments")
    )
    in_sync, replicas, under_replicated, stable_lag = (
        readings.of(f"kafka_cluster_partition_{name}")
        for name in ("insyncreplicascount", "replicascount", "underreplicated", "laststableoffsetlag")
    )
    high_watermark = readings.of("pykbroker_partition_highwatermark")
    for each in partitions:
        labels, log = (each.topic, str(each.index)), each.log
        size.append((labels, log.size_bytes))
        start.append((labels, log.log_start_offset))
        end.append((labels, log.log_end_offset))
        segments.append((labels, len(log.segments)))
        if each.is_leader:
            in_sync.append((labels, len(each.isr)))
            replicas.append((labels, len(each.replicas)))
            under_replicated.append((labels, int(each.is_under_replicated)))
            stable_lag.append((labels, each.high_watermark - each.last_stable_offset))
            high_watermark.append((labels, each.high_watermark))
        await turn.took(_STEPS_OF_PARTITION)
