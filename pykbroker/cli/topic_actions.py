"""Actions of `pykbroker topics`: list, describe, create, alter. Deletion is in `topic_deletion`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import (
    MOST_TOPICS_AT_ONCE,
    Resource,
    ResourceType,
    alter_configs,
    describe_topic_configs,
)
from pykbroker.client.errors import KafkaError
from pykbroker.client.metadata import PartitionMetadata, TopicMetadata
from pykbroker.client.topics import BROKER_DEFAULT, create_topic, describe_topics, grow_topic
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult

from .entries import Field, Value, print_entries, print_json
from .meant_keys import with_meant_keys
from .outcomes import outcomes
from .output import warn
from .progress import progress
from .topic_options import TopicOptions
from .topic_partitions import as_json, is_shown, print_partitions, print_topic, replication_factor
from .topic_selection import existing, matching

MIN_INSYNC_REPLICAS = "min.insync.replicas"
_FIELDS = (
    Field("topic"),
    Field("partitions", right=True),
    Field("replication_factor", "REPLICATION", right=True),
    Field("internal"),
)
_FILTERED_FIELDS = (*_FIELDS, Field("partitions_found", "FOUND"))


async def list_names(cluster: Cluster, options: TopicOptions) -> None:
    """Print a name a line, as `kafka-topics` does; with `--json` what the word `list` prints."""
    if options.as_json:
        await list_all(cluster, options)
        return
    for topic in await matching(cluster, options):
        click.echo(topic.name)


async def list_all(cluster: Cluster, options: TopicOptions) -> int:
    """Print topics, and return how many."""
    topics = await existing(cluster, options) if options.names else await matching(cluster, options)
    rows: list[list[Value]] = [
        [topic.name, len(topic.partitions), replication_factor(topic), topic.is_internal] for topic in topics
    ]
    if not options.filters_partitions:
        print_entries(_FIELDS, rows, as_json=options.as_json)
        return len(rows)
    configs = await describe_topic_configs(cluster, [each.name for each in topics] if _needs_configs(options) else [])
    live_nodes = set(cluster.metadata.nodes)
    found = [
        [partition.partition for partition in _shown(topic, options, live_nodes, configs.get(topic.name, ()))]
        for topic in topics
    ]
    rows = [[*row, partitions] for row, partitions in zip(rows, found, strict=True) if partitions]
    if rows or options.as_json:
        print_entries(_FILTERED_FIELDS, rows, as_json=options.as_json)
    return len(rows)


async def describe(cluster: Cluster, options: TopicOptions) -> None:
    names = [topic.name for topic in await existing(cluster, options)]
    live_nodes = set(cluster.metadata.nodes)
    topics = await describe_topics(cluster, names)
    objects: list[Value] = []
    for first in range(0, len(topics), MOST_TOPICS_AT_ONCE):
        some = topics[first : first + MOST_TOPICS_AT_ONCE]
        configs = await describe_topic_configs(cluster, [topic.name for topic in some])
        for topic in some:
            if options.as_json:
                objects += _objects(topic, configs[topic.name], options, live_nodes)
            else:
                _describe_topic(topic, configs[topic.name], options, live_nodes)
    if options.as_json:
        print_json(objects)


def _describe_topic(
    topic: TopicMetadata,
    configs: Sequence[DescribeConfigsResourceResult],
    options: TopicOptions,
    live_nodes: set[int],
) -> None:
    own = _own(configs)
    if options.topics_with_overrides:
        if own:
            print_topic(topic, own)
        return
    if not options.filters_partitions:
        print_topic(topic, own)
    print_partitions(topic, _shown(topic, options, live_nodes, configs))


def _objects(
    topic: TopicMetadata,
    configs: Sequence[DescribeConfigsResourceResult],
    options: TopicOptions,
    live_nodes: set[int],
) -> list[Value]:
    """Return the topic's object; none where nothing of it is asked for."""
    own = _own(configs)
    partitions = _shown(topic, options, live_nodes, configs)
    is_left_out = (options.filters_partitions and not partitions) or (options.topics_with_overrides and not own)
    return [] if is_left_out else [as_json(topic, own, partitions)]


def _own(configs: Sequence[DescribeConfigsResourceResult]) -> dict[str, str]:
    return {row.name: row.value or "" for row in configs if row.config_source != ConfigSource.DEFAULT_CONFIG}


def _shown(
    topic: TopicMetadata,
    options: TopicOptions,
    live_nodes: set[int],
    configs: Sequence[DescribeConfigsResourceResult],
) -> list[PartitionMetadata]:
    min_isr = next((int(row.value or 1) for row in configs if row.name == MIN_INSYNC_REPLICAS), 1)
    return [each for each in topic.partitions.values() if is_shown(each, options, live_nodes, min_isr)]


def _needs_configs(options: TopicOptions) -> bool:
    return options.under_min_isr_partitions or options.at_min_isr_partitions


async def create(cluster: Cluster, options: TopicOptions) -> None:
    names = options.names or (options.topic or "",)
    with outcomes(as_json=options.as_json) as found, progress("Creating topics", len(names)) as advance:
        for name in names:
            is_new = await _create(cluster, name, options)
            found.add({"topic": name, "created": is_new}, f"Created topic {name}." if is_new else None)
            advance()
    if any("." in name or "_" in name for name in names):
        warn("metric names do not tell '.' from '_': it is best to use either, but not both, in topic names")


async def _create(cluster: Cluster, name: str, options: TopicOptions) -> bool:
    """Return whether the topic is new; an old one is an error, unless `--if-not-exists`."""
    try:
        with with_meant_keys(options.overrides, "topic"):
            await create_topic(
                cluster,
                name,
                partitions=BROKER_DEFAULT if options.partitions is None else options.partitions,
                replication_factor=BROKER_DEFAULT if options.replication_factor is None else options.replication_factor,
                assignment=options.assignment,
                configs=options.overrides,
            )
    except KafkaError as error:
        if options.if_not_exists and error.error_code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


async def alter(cluster: Cluster, options: TopicOptions) -> None:
    """Add partitions to topics, and set and delete configs of them."""
    with outcomes(as_json=options.as_json) as found:
        for topic in await existing(cluster, options):
            if options.partitions is not None:
                # The assignment names all partitions; the broker wants those of the new ones.
                there = len((await cluster.topic(topic.name)).partitions)
                await grow_topic(cluster, topic.name, options.partitions, options.assignment[there:])
                found.add({"topic": topic.name, "partitions": options.partitions})
            if options.configs or options.deleted_configs:
                resource = Resource(ResourceType.TOPIC, topic.name)
                with with_meant_keys([*options.overrides, *options.deleted_configs], "topic"):
                    await alter_configs(cluster, resource, options.overrides, options.deleted_configs)
                set_, deleted = sorted(options.overrides), list(options.deleted_configs)
                found.add({"topic": topic.name, "configs_set": set_, "configs_deleted": deleted})
