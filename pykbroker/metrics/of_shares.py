"""The metrics of share groups: at the leaders of partitions, and at the share coordinator.

A leader knows a share partition as long as the group has members there; how far it is behind follows as Kafka's
coordinator computes it, from the high watermark, the start offset and what is settled behind that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.metric_labels import label
from pykbroker.server.runtime.turns import Turn
from pykbroker.server.sharing.share_traffic import TYPES

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.node.broker import Broker
    from pykbroker.server.sharing.led_share_partition import LedSharePartition

_STEPS_OF_PARTITION = 10
_OF_PARTITION = "kafka_server_sharepartitionmetrics_{}"
_OF_LETTERS = "kafka_server_sharegroupmetrics_deadletterqueue{}"
_OF_COORDINATOR = "kafka_server_share_coordinator_metrics_{}"


async def read_shares(broker: Broker, readings: Readings, turn: Turn, *, most: int) -> None:
    """Read what share groups do here; share partitions, or groups, one by one where there are no more than `most`."""
    shares = broker.share_partitions
    traffic = shares.traffic
    for kind, name in TYPES.items():
        readings.add("kafka_server_sharegroupmetrics_recordacknowledgements", traffic.acknowledged[kind], name)
    readings.add_histogram("kafka_server_sharegroupmetrics_partitionloadtimems", traffic.load_times)
    sessions, partitions = shares.session_counts
    readings.add("kafka_server_sharesessioncache_sharesessionscount", sessions)
    readings.add("kafka_server_sharesessioncache_sharepartitionscount", partitions)
    await _read_fetches(broker, readings, turn, most=most)
    await _read_letters(broker, readings, turn, most=most)
    led = shares.all()
    if len(led) > most:
        readings.add("pykbroker_left_out", len(led), "share partitions")
    else:
        await _read_partitions(led, readings, turn)
    await _read_coordinator(broker, readings, turn)


async def _read_fetches(broker: Broker, readings: Readings, turn: Turn, *, most: int) -> None:
    ratios = list(broker.share_partitions.traffic.fetch_ratios.items())
    if len(ratios) > most:
        readings.add("pykbroker_left_out", len(ratios), "share groups")
        return
    for group_id, ratio in ratios:
        name = "kafka_server_sharegroupmetrics_requesttopicpartitionsfetchratio"
        readings.add_summary(name, ratio.requests, ratio.percent, label(group_id))
        await turn.took(_STEPS_OF_PARTITION)


async def _read_letters(broker: Broker, readings: Readings, turn: Turn, *, most: int) -> None:
    counts = list(broker.share_partitions.traffic.letters.items())
    if len(counts) > most:
        readings.add("pykbroker_left_out", len(counts), "share groups with dead letters")
        return
    for group_id, of_group in counts:
        group = label(group_id)
        readings.add(_OF_LETTERS.format("recordcount"), of_group.letters, group)
        readings.add(_OF_LETTERS.format("totalproducerequests"), of_group.requests, group)
        readings.add(_OF_LETTERS.format("failedproducerequests"), of_group.failed, group)
        await turn.took(_STEPS_OF_PARTITION)


async def _read_partitions(led: list[LedSharePartition], readings: Readings, turn: Turn) -> None:
    timeouts, messages, batches = (
        readings.of(_OF_PARTITION.format(name))
        for name in ("acquisitionlocktimeout", "inflightmessagecount", "inflightbatchcount")
    )
    start, lag = readings.of("pykbroker_share_partition_start_offset"), readings.of("pykbroker_share_partition_lag")
    for each in led:
        share = each.active
        if share is not None:
            labels = (label(each.key.group_id), each.partition.topic, str(each.partition.index))
            timeouts.append((labels, each.lock_timeouts))
            messages.append((labels, share.in_flight))
            batches.append((labels, share.batch_count))
            readings.add_summary(
                _OF_PARTITION.format("inflightbatchmessagecount"), share.batches_begun, share.offsets_begun, *labels
            )
            start.append((labels, share.start_offset))
            behind = each.partition.high_watermark - share.start_offset - share.delivery_complete_count
            lag.append((labels, max(behind, 0)))
        await turn.took(_STEPS_OF_PARTITION)


async def _read_coordinator(broker: Broker, readings: Readings, turn: Turn) -> None:
    coordinator = broker.share_coordinator
    writes = coordinator.writes
    readings.add(_OF_COORDINATOR.format("write"), writes.partitions)
    readings.add_histogram(_OF_COORDINATOR.format("write_latency_ms"), writes.times)
    states = 0
    for index in coordinator.active_partitions:
        shard = coordinator.shard(index)
        if shard is None:
            continue
        states += len(shard.states)
        pruned = coordinator.pruned_offset(index)
        if pruned is not None:
            readings.add(_OF_COORDINATOR.format("last_pruned_offset"), pruned, coordinator.topic, str(index))
        await turn.took()
    readings.add("pykbroker_share_states", states)
