"""Groups of Kafka Streams (KIP-1071): the topology, the members with their tasks, and the internal topics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.messages.streams_groups import (
    Assignment,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseSubtopology,
    TaskIds,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import check
from .metadata import Node

STREAMS = "streams"
_INTERNAL_ENDINGS: Final = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY_JOIN = re.compile(r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-[0-9]+-topic")


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of a member by their kind: the id of a subtopology, and its partitions, in the coordinator's order."""

    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]
    warmup: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member. is_classic: it still speaks the classic protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    process_id: str
    epoch: int
    topology_epoch: int
    is_classic: bool
    tasks: Tasks
    target_tasks: Tasks


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A subtopology: the topics that it reads, and those that belong to the group alone."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A streams group as its coordinator describes it."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int
    coordinator: Node
    members: tuple[StreamsMember, ...]
    subtopologies: tuple[Subtopology, ...]

    @property
    def source_topics(self) -> set[str]:
        """The topics that the application reads, without those it has made itself."""
        return {topic for each in self.subtopologies for topic in each.source_topics}

    @property
    def read_topics(self) -> set[str]:
        """The source topics, and those in which it writes records anew by another key."""
        return self.source_topics | {topic for each in self.subtopologies for topic in each.repartition_source_topics}

    @property
    def internal_topics(self) -> list[str]:
        """The topics of its stores and of its repartitions, by name."""
        made = {
            topic for each in self.subtopologies for topic in (*each.repartition_source_topics, *each.changelog_topics)
        }
        return sorted(made - self.source_topics)

    def partitions_of(self, tasks: Tasks) -> tuple[TopicPartition, ...]:
        """Return the partitions that the active ones of the tasks read."""
        read = {
            each.subtopology_id: (*each.source_topics, *each.repartition_source_topics) for each in self.subtopologies
        }
        return tuple(
            sorted(
                {
                    TopicPartition(topic, partition)
                    for subtopology_id, partitions in tasks.active
                    for topic in read.get(subtopology_id, ())
                    for partition in partitions
                }
            )
        )


def is_named_as_internal(topic: str, group_id: str) -> bool:
    """Tell whether a topic has a name as Kafka Streams gives it to an internal topic of the application."""
    return topic.startswith(f"{group_id}-") and (
        topic.endswith(_INTERNAL_ENDINGS) or _FOREIGN_KEY_JOIN.fullmatch(topic) is not None
    )


async def describe_streams_group(cluster: Cluster, group_id: str) -> StreamsGroup:
    """Raises KafkaError, with GROUP_ID_NOT_FOUND where there is no streams group of the name."""

    def verify(response: StreamsGroupDescribeResponse) -> None:
        for row in response.groups:
            check(row.error_code, row.error_message)

    coordinator = await cluster.retrying(lambda: cluster.coordinator(group_id))
    response = await cluster.group_request(
        group_id, StreamsGroupDescribeRequest(group_ids=[group_id]), StreamsGroupDescribeResponse, verify=verify
    )
    group = response.groups[0]
    topology = group.topology
    return StreamsGroup(
        group_id=group_id,
        state=group.group_state,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology_epoch=-1 if topology is None else topology.epoch,
        coordinator=coordinator,
        members=tuple(sorted(map(_member, group.members), key=lambda member: member.member_id)),
        subtopologies=tuple(map(_subtopology, (None if topology is None else topology.subtopologies) or ())),
    )


def _subtopology(row: StreamsGroupDescribeResponseSubtopology) -> Subtopology:
    return Subtopology(
        row.subtopology_id,
        tuple(row.source_topics),
        tuple(topic.name for topic in row.repartition_source_topics),
        tuple(topic.name for topic in row.state_changelog_topics),
    )


def _member(row: Member) -> StreamsMember:
    return StreamsMember(
        member_id=row.member_id,
        group_instance_id=row.instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        process_id=row.process_id,
        epoch=row.member_epoch,
        topology_epoch=row.topology_epoch,
        is_classic=row.is_classic,
        tasks=_tasks(row.assignment),
        target_tasks=_tasks(row.target_assignment),
    )


def _tasks(assignment: Assignment) -> Tasks:
    return Tasks(
        _by_subtopology(assignment.active_tasks),
        _by_subtopology(assignment.standby_tasks),
        _by_subtopology(assignment.warmup_tasks),
    )


def _by_subtopology(rows: Sequence[TaskIds]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((row.subtopology_id, tuple(row.partitions)) for row in rows)
