"""`GET /api/group/streams?id=`: a streams group with its topology, members, tasks, internal topics, offsets and lag
(KIP-1071).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.metadata import ClusterMetadata
from pykbroker.client.streams_groups import StreamsGroup, StreamsMember, Subtopology, describe_streams_group
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .group import MOST_SHOWN, OffsetRow, group_id, offset_row
from .group_lags import MOST_PARTITIONS, committed_offsets, offsets_at, total_lag
from .group_pages import GroupPagesAsked
from .pages import Page, page_of

MOST_TOPICS: Final = 500
_MOST_MISSING: Final = 20
_NOT_READY: Final = "NotReady"


@dataclass(frozen=True, slots=True)
class TaskedRow:
    """A member. active, standby, warmup: its first tasks, as `0_1`; counts: how many there are of each."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    process_id: str
    epoch: int
    active: Sequence[str]
    standby: Sequence[str]
    warmup: Sequence[str]
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class SubtopologyRow:
    """A subtopology: the topics that it reads, those that it reads again by another key, and those of its stores."""

    id: str
    sources: Sequence[str]
    repartition: Sequence[str]
    changelogs: Sequence[str]


@dataclass(frozen=True, slots=True)
class InternalTopicRow:
    """A topic of the group alone. partitions: None where there is no such topic. error: Kafka's name of why."""

    name: str
    partitions: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class TopologyGroup:
    """A streams group. lag: as of other groups. topology_epoch: None where nobody has brought a topology.

    missing: topics of the topology that are not there, as far as one may see, up to a bound.
    """

    group_id: str
    type: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    coordinator: int
    missing: Sequence[str]
    subtopologies: Page[SubtopologyRow]
    internal_topics: Sequence[InternalTopicRow]
    internal_topic_count: int
    members: Page[TaskedRow]
    offsets: Page[OffsetRow]
    lag: int | None
    not_shown: int


async def streams_group(asking: Asking, given: Arguments) -> TopologyGroup:
    """Raises BadInput, KafkaError, ClientError."""
    asked = GroupPagesAsked.of(given)
    topology_asked = asked.partitions.beside(given, "topology_page")
    name = group_id(given)
    described = await describe_streams_group(asking.cluster, name)
    needed = described.source_topics.union(described.internal_topics)
    metadata = await asking.cluster.refresh(needed) if needed else asking.cluster.metadata
    connection = await asking.cluster.node_connection(described.coordinator)
    committed = (await committed_offsets(connection, [name], MOST_PARTITIONS)).get(name, {})

    def places() -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
        owners = {
            at: each.client_id
            for each in described.members
            for at in described.partitions_of(each.tasks)
            if at.topic in metadata.topics and at.partition in metadata.topics[at.topic].partitions
        }
        return sorted({*committed, *owners}), owners

    wanted, owners = await asking.threads.run(places)
    shown = wanted[:MOST_PARTITIONS]
    ends = await offsets_at(asking.cluster, shown)

    def reckoned() -> TopologyGroup:
        rows = [offset_row(at, committed, ends, owners) for at in shown]
        not_shown = len(wanted) - len(shown)
        return TopologyGroup(
            group_id=name,
            type="streams",
            state=described.state,
            epoch=described.epoch,
            assignment_epoch=described.assignment_epoch,
            topology_epoch=described.topology_epoch if described.topology_epoch >= 0 else None,
            coordinator=described.coordinator.node_id,
            missing=_missing(described, needed, metadata),
            subtopologies=page_of(described.subtopologies, topology_asked).mapped(_subtopology),
            internal_topics=[_internal_topic(each, metadata) for each in described.internal_topics[:MOST_TOPICS]],
            internal_topic_count=len(described.internal_topics),
            members=asked.member_page(described.members).mapped(_member),
            offsets=asked.partition_page(rows),
            lag=None if not_shown else total_lag(committed, ends.offsets),
            not_shown=not_shown,
        )

    return await asking.threads.run(reckoned)


def _missing(described: StreamsGroup, needed: set[str], metadata: ClusterMetadata) -> list[str]:
    if described.state != _NOT_READY:
        return []
    return sorted(each for each in needed if _error(each, metadata) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name)[
        :_MOST_MISSING
    ]


def _error(topic: str, metadata: ClusterMetadata) -> str | None:
    if topic in metadata.topics:
        return None
    return metadata.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).name


def _internal_topic(name: str, metadata: ClusterMetadata) -> InternalTopicRow:
    known = metadata.topics.get(name)
    return InternalTopicRow(name, None if known is None else len(known.partitions), _error(name, metadata))


def _subtopology(each: Subtopology) -> SubtopologyRow:
    return SubtopologyRow(
        each.subtopology_id, each.source_topics, each.repartition_source_topics, each.changelog_topics
    )


def _member(member: StreamsMember) -> TaskedRow:
    kinds = [_names(each) for each in (member.tasks.active, member.tasks.standby, member.tasks.warmup)]
    active, standby, warmup = (each[:MOST_SHOWN] for each in kinds)
    return TaskedRow(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        process_id=member.process_id,
        epoch=member.epoch,
        active=active,
        standby=standby,
        warmup=warmup,
        counts=[len(each) for each in kinds],
    )


def _names(tasks: Sequence[tuple[str, Sequence[int]]]) -> list[str]:
    return [f"{name}_{index}" for name, partitions in tasks for index in partitions]
