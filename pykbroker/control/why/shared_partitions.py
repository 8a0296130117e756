"""The partitions of a share group: whose state there is, and what became of the records that are in flight (KIP-932).

The group's coordinator knows which partitions are initialized; the leader of a partition knows its records, as long as
members read there; the share coordinator knows what was persisted. Whoever is among the sources is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.replication.partition import Partition
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.log_lines import printable
from pykbroker.sharing.persister import UNINITIALIZED_START_OFFSET, SharePartitionKey

from .answers import Holder, SharedPartition
from .sources import Sources, Turns
from .wording import client, counted, duration, moment

if TYPE_CHECKING:
    from pykbroker.server.sharing.led_share_partition import LedSharePartition
    from pykbroker.sharing.partition.share_partition import SharePartition

MOST_HOLDERS: Final = 20
_INITIALIZED: Final = "initialized"
_INITIALIZING: Final = "initializing"
_DELETING: Final = "deleting"


@dataclass(slots=True)
class _Held:
    records: int
    first: int
    deadline_ms: int


@dataclass(slots=True)
class _InFlight:
    """The records in flight, counted by state. runs: how many runs of them there are."""

    runs: int = 0
    acquired: int = 0
    available: int = 0
    acknowledged: int = 0
    archived: int = 0
    archived_by_limit: int = 0
    most_deliveries: int = 0


class SharedPartitions:
    """The partitions of one share group, now."""

    def __init__(self, sources: Sources, group: ShareGroup) -> None:
        self._sources = sources
        self._group = group
        self.runs_counted = 0
        """Of the partition that was looked at last."""

    async def places(self, turns: Turns) -> Mapping[tuple[str, int], str]:
        """Return the partitions that the group has, with the state of each."""
        states, places = self._group.state_partitions, dict[tuple[str, int], str]()
        for state, topics in ((_INITIALIZING, states.initializing), (_INITIALIZED, states.initialized)):
            for topic_id, topic in topics.items():
                known = self._sources.image.topic_by_id(topic_id)
                name = topic.name if known is None else known.name
                shown = _DELETING if topic_id in states.deleting else state
                places.update(dict.fromkeys(((name, index) for index in topic.partitions), shown))
                await turns.took(1 + len(topic.partitions) // 10)
        return places

    def state_of(self, topic: str, index: int) -> str | None:
        """Return the state of one partition; None where the group has none of it."""
        known, states = self._sources.image.topic(topic), self._group.state_partitions
        if known is None:
            return None
        for state, topics in ((_INITIALIZED, states.initialized), (_INITIALIZING, states.initializing)):
            found = topics.get(known.topic_id)
            if found is not None and index in found.partitions:
                return _DELETING if known.topic_id in states.deleting else state
        return None

    def led(self, topic: str, index: int) -> tuple[Broker, Partition, LedSharePartition | None] | None:
        """Return the leader, its partition, and the share partition there; None where the leader was not asked."""
        partition = self._sources.led(topic, index)
        broker = None if partition is None else self._sources.broker(partition.leader)
        if partition is None or broker is None:
            return None
        key = SharePartitionKey(self._group.group_id, partition.topic_id, index)
        return broker, partition, broker.share_partitions.find(key)

    def look(self, topic: str, index: int, state: str) -> SharedPartition:
        """Return one partition as it is."""
        self.runs_counted = 0
        found = self.led(topic, index)
        partition = None if found is None else found[1]
        high_watermark = None if partition is None else partition.high_watermark
        share = None if found is None or found[2] is None else found[2].active
        if found is not None and share is not None:
            return self._in_flight(found[0], found[1], share, state)
        start_offset, complete = self._persisted(topic, index)
        lag = None
        if start_offset is not None and high_watermark is not None:
            lag = max(high_watermark - start_offset - complete, 0)
        return SharedPartition(
            topic=topic,
            partition=index,
            state=state,
            start_offset=start_offset,
            high_watermark=high_watermark,
            lag=lag,
        )

    def _persisted(self, topic: str, index: int) -> tuple[int | None, int]:
        """Return the start offset, and how many records behind it are settled, as the share coordinator has them."""
        known = self._sources.image.topic(topic)
        if known is None:
            return None, 0
        key = SharePartitionKey(self._group.group_id, known.topic_id, index)
        place = self._sources.any.share_coordinator.partition_of(key)
        if place is None:
            return None, 0
        for broker in self._sources.brokers:
            shard = broker.share_coordinator.shard(place)
            state = None if shard is None else shard.states.get(key)
            if state is not None:
                is_known = state.start_offset != UNINITIALIZED_START_OFFSET
                return (state.start_offset, max(state.delivery_complete_count, 0)) if is_known else (None, 0)
        return None, 0

    def _in_flight(self, broker: Broker, partition: Partition, share: SharePartition, state: str) -> SharedPartition:
        limit = broker.share_partitions.limits(self._group.group_id).delivery_count_limit
        counts, held = _counted(share, limit)
        self.runs_counted = counts.runs
        return SharedPartition(
            topic=partition.topic,
            partition=partition.index,
            state=state,
            start_offset=share.start_offset,
            high_watermark=partition.high_watermark,
            lag=max(partition.high_watermark - share.start_offset - share.delivery_complete_count, 0),
            end_offset=share.end_offset + 1 if share.in_flight else share.end_offset,
            acquired=counts.acquired,
            available=counts.available,
            acknowledged=counts.acknowledged,
            archived=counts.archived,
            archived_by_limit=counts.archived_by_limit,
            most_deliveries=counts.most_deliveries,
            delivery_count_limit=limit,
            holders=tuple(self._holders(broker, held)),
        )

    def _holders(self, broker: Broker, held: Mapping[str, _Held]) -> list[Holder]:
        """Those whose records come back first."""
        now_ms, monotonic_ms = broker.clock.now_ms(), broker.clock.monotonic_ms()
        holders = []
        for member_id, of in sorted(held.items(), key=lambda each: (each[1].deadline_ms, each[0]))[:MOST_HOLDERS]:
            member = self._group.members.get(member_id)
            holders.append(
                Holder(
                    member_id=member_id,
                    client_id="" if member is None else member.client_id,
                    host="" if member is None else member.client_host.lstrip("/"),
                    records=of.records,
                    first_offset=of.first,
                    until_timestamp_ms=now_ms + max(of.deadline_ms - monotonic_ms, 0),
                )
            )
        return holders


def _counted(share: SharePartition, limit: int) -> tuple[_InFlight, dict[str, _Held]]:
    from pykbroker.sharing.partition.values import RecordState

    counts, held = _InFlight(), dict[str, _Held]()
    for run in share.runs():
        counts.runs += 1
        first = max(run.first, share.start_offset)
        records = run.last - first + 1
        if records <= 0:
            continue
        match run.state:
            case RecordState.ACQUIRED:
                counts.acquired += records
                of = held.get(run.member)
                if of is None:
                    held[run.member] = _Held(records, first, run.deadline_ms)
                else:
                    of.records += records
                    of.deadline_ms = min(of.deadline_ms, run.deadline_ms)
            case RecordState.AVAILABLE:
                counts.available += records
                counts.most_deliveries = max(counts.most_deliveries, run.delivery_count)
            case RecordState.ACKNOWLEDGED:
                counts.acknowledged += records
            case RecordState.ARCHIVED:
                counts.archived += records
                counts.archived_by_limit += records if run.delivery_count >= limit else 0
    return counts, held


def facts_of(shared: SharedPartition, now_ms: int) -> list[str]:
    """Say of whom the records in flight are, and what became of others. now_ms: the wall clock."""
    place = f"{printable(shared.topic)}-{shared.partition}"
    facts = []
    for each in shared.holders:
        left = duration(each.until_timestamp_ms - now_ms)
        facts.append(
            f"{holder_of(each)} has acquired {counted(each.records, 'record')} of {place} from {each.first_offset} on, "
            f"until {moment(each.until_timestamp_ms)} ({left} more)."
        )
    if shared.archived_by_limit:
        facts.append(
            f"{counted(shared.archived_by_limit, 'record')} of {place} in flight are archived after "
            f"{shared.delivery_count_limit} deliveries (share.delivery.count.limit): nobody gets them any more."
        )
    rest = shared.archived - shared.archived_by_limit
    if rest:
        facts.append(
            f"{counted(rest, 'record')} of {place} in flight are archived: rejected, gone, or no records for the group."
        )
    if shared.most_deliveries:
        limit = shared.delivery_count_limit
        often = f"{counted(shared.most_deliveries, 'time')}, of {limit} at most"
        facts.append(f"Of {place} are available {counted(shared.available, 'record')}, delivered up to {often}.")
    return facts


def holder_of(holder: Holder) -> str:
    """Return who holds records: "M (client app at 10.0.0.1)"."""
    whose = f" ({client(holder.client_id, holder.host)})" if holder.client_id or holder.host else ""
    return f"{printable(holder.member_id)}{whose}"
