"""Endpoints of a streams group: which partitions are where, for interactive queries (KIP-535).

A process that answers queries tells its host and port; each member with such an endpoint is shown with the partitions
that its tasks read. What was told of a member is kept until the member changes. The model is Kafka's
`EndpointToPartitionsManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pykbroker.protocol.messages.streams_groups import Endpoint, EndpointToPartitions, TopicPartition

from ..common.topics import TopicsView
from .configured_topology import ConfiguredSubtopology
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember


def partitions_by_endpoint(
    group: StreamsGroup, updated: StreamsGroupMember, topics: TopicsView
) -> list[EndpointToPartitions]:
    """The endpoints of all members, that of the member that asks last."""
    others = (member for member_id, member in group.members.items() if member_id != updated.member_id)
    told = (_endpoint_of(group, member, topics) for member in (*others, updated))
    return [each for each in told if each is not None]


def _endpoint_of(group: StreamsGroup, member: StreamsGroupMember, topics: TopicsView) -> EndpointToPartitions | None:
    if member.user_endpoint is None:
        return None
    known = group.endpoints.get(member.member_id)
    if known is None:
        host, port = member.user_endpoint
        subtopologies = (None if group.configured is None else group.configured.subtopologies) or {}
        known = group.endpoints[member.member_id] = EndpointToPartitions(
            user_endpoint=Endpoint(host=host, port=port),
            active_partitions=list(_partitions(member.assigned.active, subtopologies, topics, group.is_of_4_4)),
            standby_partitions=list(_partitions(member.assigned.standby, subtopologies, topics, group.is_of_4_4)),
        )
    return known


def _partitions(
    tasks: Mapping[str, Collection[int]],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    topics: TopicsView,
    is_of_4_4: bool,
) -> Iterator[TopicPartition]:
    """The partitions that the tasks read. Topics and subtopologies that there are not any more are left out.

    is_of_4_4: whether tasks beyond a topic's partitions are left out; in Kafka 4.3 a topic with fewer partitions than
    the member has tasks is cut off behind them.
    """
    for subtopology_id, partitions in tasks.items():
        subtopology = subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        ordered = sorted(partitions)
        for name in dict.fromkeys([*subtopology.source_topics, *subtopology.repartition_source_topics]):
            topic_id = topics.topic_id(name)
            if topic_id is None:
                continue
            count = topics.partition_count(topic_id)
            read = [each for each in ordered if each < count] if is_of_4_4 else ordered[:count]
            if read or not is_of_4_4:
                yield TopicPartition(topic=name, partitions=read)
