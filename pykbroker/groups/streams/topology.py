"""The topology of a streams group: its subtopologies with their topics. The model is Kafka's `StreamsTopology`.

A topology is the struct of its record, which is never changed, and what is derived from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from pykbroker.protocol.messages import streams_groups as request
from pykbroker.protocol.messages.streams_group_records import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)

MOST_SUBTOPOLOGIES = 1_000
MOST_TOPICS = 5_000
"""How many topics the subtopologies name together; one that several name counts several times."""
MOST_COPARTITIONED = 5_000
"""How many topics the copartition groups name together."""


class StreamsTopology:
    """A topology as a member brought it.

    subtopologies: by their ids. subtopology_of_source: the id of the subtopology that reads a topic, by the topic's
    name. required_topics: all topics that have to be there: sources, repartition topics and changelogs.
    """

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: dict[str, Subtopology] = {each.subtopology_id: each for each in value.subtopologies}
        self.subtopology_of_source: dict[str, str] = {
            name: subtopology_id for subtopology_id, each in self.subtopologies.items() for name in source_topics(each)
        }
        changelogs = chain.from_iterable(names(each.state_changelog_topics) for each in value.subtopologies)
        self.required_topics = frozenset(chain(self.subtopology_of_source, changelogs))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamsTopology):
            return NotImplemented
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies

    __hash__ = None  # type: ignore[assignment]


def source_topics(subtopology: Subtopology) -> list[str]:
    """The topics that the subtopology reads, repartition topics among them."""
    return [*subtopology.source_topics, *names(subtopology.repartition_source_topics)]


def names(topics: Iterable[TopicInfo] | Iterable[request.TopicInfo]) -> list[str]:
    return [topic.name for topic in topics]


def named_topics(topology: request.StreamsGroupHeartbeatRequestTopology) -> Iterable[str]:
    """All topics that the topology of a request names, as often as it names them."""
    for each in topology.subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from names(each.repartition_source_topics)
        yield from names(each.state_changelog_topics)


def too_large(topology: request.StreamsGroupHeartbeatRequestTopology) -> str | None:
    """Say what makes the topology larger than a coordinator takes; None where it is not."""
    subtopologies = topology.subtopologies
    if len(subtopologies) > MOST_SUBTOPOLOGIES:
        return f"The topology has {len(subtopologies)} subtopologies, of {MOST_SUBTOPOLOGIES} at most."
    topics = sum(
        len(each.source_topics)
        + len(each.source_topic_regex)
        + len(each.repartition_sink_topics)
        + len(each.repartition_source_topics)
        + len(each.state_changelog_topics)
        for each in subtopologies
    )
    if topics > MOST_TOPICS:
        return f"The topology names {topics} topics, of {MOST_TOPICS} at most."
    copartitioned = sum(
        1 + len(group.source_topics) + len(group.source_topic_regex) + len(group.repartition_source_topics)
        for each in subtopologies
        for group in each.copartition_groups
    )
    if copartitioned > MOST_COPARTITIONED:
        return f"The copartition groups name {copartitioned} topics, of {MOST_COPARTITIONED} at most."
    return None


def topology_of(asked: request.StreamsGroupHeartbeatRequestTopology) -> StreamsTopology:
    """The topology that a request brings, in the form of its record."""
    return StreamsTopology(
        StreamsGroupTopologyValue(epoch=asked.epoch, subtopologies=[_subtopology(each) for each in asked.subtopologies])
    )


def _subtopology(asked: request.StreamsGroupHeartbeatRequestSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=asked.subtopology_id,
        source_topics=asked.source_topics,
        source_topic_regex=asked.source_topic_regex,
        state_changelog_topics=_topics(asked.state_changelog_topics),
        repartition_sink_topics=asked.repartition_sink_topics,
        repartition_source_topics=_topics(asked.repartition_source_topics),
        copartition_groups=[
            CopartitionGroup(
                source_topics=group.source_topics,
                source_topic_regex=group.source_topic_regex,
                repartition_source_topics=group.repartition_source_topics,
            )
            for group in asked.copartition_groups
        ],
    )


def _topics(asked: Sequence[request.TopicInfo]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[TopicConfig(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in asked
    ]
