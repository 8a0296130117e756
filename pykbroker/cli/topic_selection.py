"""The topics of a cluster that a command line means: by exact names, or by Kafka's expression."""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import TopicMetadata
from pykbroker.client.topics import list_topics

from .command import CommandFailed
from .suggestions import did_you_mean
from .topic_filter import topic_filter
from .topic_options import TopicOptions


async def matching(cluster: Cluster, options: TopicOptions) -> list[TopicMetadata]:
    """Return the topics that are meant and exist, by name. Raises CommandFailed."""
    wanted = set(options.names)
    matches = topic_filter(options.topic) if not wanted else wanted.__contains__
    topics = await list_topics(cluster)
    return [topic for topic in topics if matches(topic.name) and not (options.exclude_internal and topic.is_internal)]


async def existing(cluster: Cluster, options: TopicOptions) -> list[TopicMetadata]:
    """Return the topics that are meant. Raises CommandFailed for those that do not exist, unless `--if-exists`."""
    topics = await matching(cluster, options)
    if options.if_exists:
        return topics
    if options.topic is not None and not topics:
        hint = did_you_mean(options.topic, [topic.name for topic in await list_topics(cluster)])
        raise CommandFailed(f"Topic '{options.topic}' does not exist as expected{hint and '.'}{hint}")
    missing = [name for name in options.names if name not in {topic.name for topic in topics}]
    if missing:
        others = [topic.name for topic in await list_topics(cluster)]
        raise CommandFailed(f"There is no topic '{missing[0][:250]}'.{did_you_mean(missing[0], others)}")
    return topics


async def known_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicMetadata]:
    """Return topics by their exact names, in this order. Raises CommandFailed for one that does not exist."""
    topics = {topic.name: topic for topic in await list_topics(cluster)}
    for name in names:
        if name not in topics:
            raise CommandFailed(f"There is no topic '{name[:250]}'.{did_you_mean(name, topics)}")
    return [topics[name] for name in names]
