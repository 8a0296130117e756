"""StreamsGroupDescribe (KIP-1071): a group's epochs and topology, and what each member has and should have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pykbroker.protocol.messages.streams_group_records import Subtopology
from pykbroker.protocol.messages.streams_group_records import TopicInfo as RecordedTopic
from pykbroker.protocol.messages.streams_groups import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponseSubtopology,
    StreamsGroupDescribeResponseTopology,
    TaskIds,
    TopicInfo,
)

from ..common.group import Group, GroupType
from ..modern.descriptions import GroupAsOfNow, described_fields, missing_fields
from . import sticky_assignor
from .configured_topology import ConfiguredSubtopology, InternalTopic
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember
from .task_offsets import NOT_TOLD, MemberTaskOffsets, in_order_of_tasks
from .tasks import NO_TASKS, TasksTuple, in_order


@dataclass(frozen=True, slots=True)
class StreamsGroupAsOfNow(GroupAsOfNow[DescribedGroup, Member, StreamsGroupMember]):
    """A group at one time. topic_names: of all topics that the description names."""

    topic_names: Collection[str]
    _targets: Mapping[str, TasksTuple]
    _offsets: Mapping[str, MemberTaskOffsets] = field(default_factory=dict)

    def _partitions_of(self, member: StreamsGroupMember) -> list[Collection[int]]:
        target = self._targets.get(member.member_id, NO_TASKS)
        return [
            *member.assigned.active.values(),
            *member.assigned.standby.values(),
            *target.active.values(),
            *target.standby.values(),
            *self._offsets.get(member.member_id, NOT_TOLD).offsets.values(),
            *self._offsets.get(member.member_id, NOT_TOLD).end_offsets.values(),
        ]

    def steps_of(self, member_id: str) -> int:
        return GroupAsOfNow.steps_of(self, member_id) + len(self._members[member_id].client_tags)

    def describe_member(self, member_id: str) -> Member:
        member = self._members[member_id]
        endpoint = member.user_endpoint
        target = self._targets.get(member_id, NO_TASKS)
        offsets = self._offsets.get(member_id, NOT_TOLD)
        return Member(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
            client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
            task_offsets=in_order_of_tasks(offsets.offsets),
            task_end_offsets=in_order_of_tasks(offsets.end_offsets),
            assignment=Assignment(
                active_tasks=_told(member.assigned.active),
                standby_tasks=_told(member.assigned.standby),
                warmup_tasks=_told(member.assigned.warmup),
            ),
            target_assignment=Assignment(
                active_tasks=_told(target.active),
                standby_tasks=_told(target.standby),
                warmup_tasks=_told(target.warmup),
            ),
        )


def group_as_of_now(group: Group | None, group_id: str) -> StreamsGroupAsOfNow:
    """The group as it is now, or the error for a group that is none of this type."""
    if isinstance(group, StreamsGroup):
        topology = _topology(group)
        described = DescribedGroup(**described_fields(group), topology=topology, assignor_name=sticky_assignor.NAME)
        names = frozenset(_names(topology))
        targets, offsets = group.target_assignment.copy(), group.task_offsets.copy()
        return StreamsGroupAsOfNow(described, group.members.copy(), names, targets, offsets)
    refused = DescribedGroup(**missing_fields(group, group_id, GroupType.STREAMS))
    return StreamsGroupAsOfNow(refused, {}, frozenset(), {})


def _topology(group: StreamsGroup) -> StreamsGroupDescribeResponseTopology | None:
    """The topology as the topics of the cluster allow it, else as it was brought."""
    if group.topology is None:
        return None
    if group.configured is not None and group.configured.is_ready and group.configured.subtopologies is not None:
        subtopologies = [_configured(name, each) for name, each in group.configured.subtopologies.items()]
    else:
        subtopologies = [_brought(group.topology.subtopologies[name]) for name in sorted(group.topology.subtopologies)]
    return StreamsGroupDescribeResponseTopology(epoch=group.topology.epoch, subtopologies=subtopologies)


def _configured(subtopology_id: str, subtopology: ConfiguredSubtopology) -> StreamsGroupDescribeResponseSubtopology:
    return StreamsGroupDescribeResponseSubtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(set(subtopology.source_topics)),
        repartition_sink_topics=sorted(set(subtopology.repartition_sink_topics)),
        state_changelog_topics=_internal(subtopology.changelog_topics),
        repartition_source_topics=_internal(subtopology.repartition_source_topics),
    )


def _internal(topics: Mapping[str, InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=name,
            partitions=topics[name].partitions,
            replication_factor=topics[name].replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in topics[name].configs.items()],
        )
        for name in sorted(topics)
    ]


def _brought(subtopology: Subtopology) -> StreamsGroupDescribeResponseSubtopology:
    return StreamsGroupDescribeResponseSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=_recorded(subtopology.state_changelog_topics),
        repartition_source_topics=_recorded(subtopology.repartition_source_topics),
    )


def _recorded(topics: Iterable[RecordedTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _names(topology: StreamsGroupDescribeResponseTopology | None) -> Iterator[str]:
    for each in () if topology is None else topology.subtopologies or ():
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in each.state_changelog_topics)
        yield from (topic.name for topic in each.repartition_source_topics)


def _told(tasks: Mapping[str, Collection[int]]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=partitions) for name, partitions in in_order(tasks)]
