"""Two looks at a cluster together: rates, lags, and partitions that want replicas.

A rate is known where the same partition of the same topic was seen in both looks. A topic that was created anew has
other partitions under the old name (its id says so), and offsets that went back give no rate, never a negative one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pykbroker.protocol.topic_partition import TopicPartition

from .top_observation import LogDirSeen, Observation, Sample


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic. records_per_s counts offsets, markers of transactions as well. size_bytes: of the leaders' replicas."""

    name: str
    partitions: int
    records_per_s: float | None
    bytes_per_s: float | None
    size_bytes: int | None
    under_replicated: int
    offline: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. lag: None where no offset is committed, or none may be read. is_partial: some ends are not known."""

    name: str
    kind: str
    state: str
    lag: int | None
    is_partial: bool
    consumed_per_s: float | None


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. leaders: the partitions that this broker leads. problem: why it could not be asked."""

    node_id: int
    address: str
    leaders: int
    is_controller: bool
    problem: str | None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster at one time.

    down: ids of brokers that have replicas and are not in the metadata. interval_s: None without an earlier look.
    """

    cluster_id: str | None
    controller_id: int | None
    interval_s: float | None
    took_s: float
    topics: tuple[TopicRow, ...]
    groups: tuple[GroupRow, ...]
    brokers: tuple[BrokerRow, ...]
    log_dirs: tuple[LogDirSeen, ...]
    down: tuple[int, ...]
    missing: tuple[str, ...]

    @property
    def partitions(self) -> int:
        return sum(each.partitions for each in self.topics)

    @property
    def under_replicated(self) -> int:
        return sum(each.under_replicated for each in self.topics)

    @property
    def offline(self) -> int:
        return sum(each.offline for each in self.topics)

    @property
    def records_per_s(self) -> float | None:
        return _sum_of_known(each.records_per_s for each in self.topics)

    @property
    def bytes_per_s(self) -> float | None:
        return _sum_of_known(each.bytes_per_s for each in self.topics)


def view_of(before: Observation | None, now: Observation) -> ClusterView:
    ids = (
        set() if before is None else {name for name, topic in before.topics.items() if _same(topic.topic_id, name, now)}
    )
    ends_before = {} if before is None else before.ends
    sizes_before = {} if before is None else before.sizes
    topics = tuple(
        TopicRow(
            name=name,
            partitions=len(topic.partitions),
            records_per_s=_rate(name in ids, _of(name, topic.partitions), ends_before, now.ends),
            bytes_per_s=_rate(name in ids, _of(name, topic.partitions), sizes_before, now.sizes),
            size_bytes=_size(_of(name, topic.partitions), now.sizes),
            under_replicated=sum(len(each.isr_nodes) < len(each.replica_nodes) for each in topic.partitions.values()),
            offline=sum(each.leader_id < 0 for each in topic.partitions.values()),
        )
        for name, topic in sorted(now.topics.items())
    )
    return ClusterView(
        cluster_id=now.cluster_id,
        controller_id=now.controller_id,
        interval_s=None if before is None else now.at_s - before.at_s,
        took_s=now.took_s,
        topics=topics,
        groups=tuple(_group_row(name, before, now) for name in sorted(now.groups)),
        brokers=_broker_rows(now),
        log_dirs=tuple(sorted(now.log_dirs, key=lambda each: (each.node_id, each.path))),
        down=_down(now),
        missing=tuple(text if count == 1 else f"{text} ({count} times)" for text, count in sorted(now.missing.items())),
    )


def _same(topic_id: bytes, name: str, now: Observation) -> bool:
    topic = now.topics.get(name)
    return topic is not None and topic.topic_id == topic_id


def _of(name: str, partitions: Iterable[int]) -> list[TopicPartition]:
    return [TopicPartition(name, index) for index in partitions]


def _rate(
    is_same: bool,
    partitions: Iterable[TopicPartition],
    before: Mapping[TopicPartition, Sample],
    now: Mapping[TopicPartition, Sample],
) -> float | None:
    if not is_same:
        return None
    rates = (_growth(before.get(each), now.get(each)) for each in partitions)
    return _sum_of_known(rates)


def _growth(before: Sample | None, now: Sample | None) -> float | None:
    """A second; None where there are not two samples, or the number went back."""
    if before is None or now is None or now.value < before.value or now.at_s <= before.at_s:
        return None
    return (now.value - before.value) / (now.at_s - before.at_s)


def _sum_of_known(rates: Iterable[float | None]) -> float | None:
    known = [each for each in rates if each is not None]
    return sum(known) if known else None


def _size(partitions: Iterable[TopicPartition], sizes: Mapping[TopicPartition, Sample]) -> int | None:
    known = [sizes[each].value for each in partitions if each in sizes]
    return sum(known) if known else None


def _group_row(name: str, before: Observation | None, now: Observation) -> GroupRow:
    group = now.groups[name]
    committed = group.committed or {}
    if group.lags is None:
        lags = {of: max(0, now.ends[of].value - offset.value) for of, offset in committed.items() if of in now.ends}
    else:
        lags = dict(group.lags)
    earlier = before.groups.get(name) if before is not None else None
    return GroupRow(
        name=name,
        kind=group.kind,
        state=group.state,
        lag=sum(lags.values()) if lags else None,
        is_partial=len(lags) < len(committed),
        consumed_per_s=_rate(True, committed, (earlier.committed if earlier else None) or {}, committed),
    )


def _broker_rows(now: Observation) -> tuple[BrokerRow, ...]:
    leaders: dict[int, int] = {}
    for topic in now.topics.values():
        for each in topic.partitions.values():
            leaders[each.leader_id] = leaders.get(each.leader_id, 0) + 1
    return tuple(
        BrokerRow(
            node_id=node_id,
            address=str(seen.node),
            leaders=leaders.get(node_id, 0),
            is_controller=node_id == now.controller_id,
            problem=seen.problem,
        )
        for node_id, seen in sorted(now.brokers.items())
    )


def _down(now: Observation) -> tuple[int, ...]:
    replicas = {
        node_id for topic in now.topics.values() for each in topic.partitions.values() for node_id in each.replica_nodes
    }
    return tuple(sorted(replicas - now.brokers.keys()))
