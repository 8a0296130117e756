"""Actions of `pykbroker topics`: list, describe, create, alter, delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import MOST_TOPICS_AT_ONCE, describe_topic_configs
from pykbroker.client.errors import KafkaError
from pykbroker.client.metadata import PartitionMetadata, TopicMetadata
from pykbroker.client.topics import BROKER_DEFAULT, create_topic, delete_topic, describe_topics, grow_topic, list_topics
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult
from pykbroker.protocol.uuids import uuid_to_text

from .command import CommandFailed
from .output import Column, print_table, stdout_is_terminal, warn
from .topic_options import TopicOptions

MIN_INSYNC_REPLICAS = "min.insync.replicas"


async def list_all(cluster: Cluster, options: TopicOptions) -> None:
    for topic in await _matching(cluster, options):
        click.echo(topic.name)


async def describe(cluster: Cluster, options: TopicOptions) -> None:
    names = await _existing(cluster, options)
    live_nodes = set(cluster.metadata.nodes)
    topics = await describe_topics(cluster, names)
    for first in range(0, len(topics), MOST_TOPICS_AT_ONCE):
        some = topics[first : first + MOST_TOPICS_AT_ONCE]
        configs = await describe_topic_configs(cluster, [topic.name for topic in some])
        for topic in some:
            _describe_topic(topic, configs[topic.name], options, live_nodes)


def _describe_topic(
    topic: TopicMetadata,
    configs: Sequence[DescribeConfigsResourceResult],
    options: TopicOptions,
    live_nodes: set[int],
) -> None:
    own = {row.name: row.value or "" for row in configs if row.config_source != ConfigSource.DEFAULT_CONFIG}
    if options.topics_with_overrides:
        if own:
            _print_topic(topic, own)
        return
    min_isr = next((int(row.value or 1) for row in configs if row.name == MIN_INSYNC_REPLICAS), 1)
    if not options.filters_partitions:
        _print_topic(topic, own)
    _print_partitions(topic, [row for row in topic.partitions.values() if _is_shown(row, options, live_nodes, min_isr)])


async def create(cluster: Cluster, options: TopicOptions) -> None:
    name = options.topic
    assert name is not None
    try:
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
            return
        raise
    click.echo(f"Created topic {name}.")
    if "." in name or "_" in name:
        warn("metric names do not tell '.' from '_': it is best to use either, but not both, in topic names")


async def alter(cluster: Cluster, options: TopicOptions) -> None:
    assert options.partitions is not None
    for name in await _existing(cluster, options):
        # The assignment names all partitions; the broker wants those of the new ones.
        existing = len((await cluster.topic(name)).partitions)
        await grow_topic(cluster, name, options.partitions, options.assignment[existing:])


async def delete(cluster: Cluster, options: TopicOptions) -> None:
    for name in await _existing(cluster, options):
        await delete_topic(cluster, name)


def topic_filter(expression: str | None) -> Callable[[str], bool]:
    """Kafka's: a regular expression for the whole name, in which a comma means "or"."""
    if expression is None:
        return lambda name: True
    try:
        pattern = re.compile("|".join(part.strip() for part in expression.strip("\"'").split(",")))
    except re.error as error:
        raise CommandFailed(f"'{expression}' is no regular expression: {error}") from None
    return lambda name: pattern.fullmatch(name) is not None


async def _matching(cluster: Cluster, options: TopicOptions) -> list[TopicMetadata]:
    matches = topic_filter(options.topic)
    topics = await list_topics(cluster)
    return [topic for topic in topics if matches(topic.name) and not (options.exclude_internal and topic.is_internal)]


async def _existing(cluster: Cluster, options: TopicOptions) -> list[str]:
    topics = await _matching(cluster, options)
    if options.topic is not None and not topics and not options.if_exists:
        raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return [topic.name for topic in topics]


def _is_shown(partition: PartitionMetadata, options: TopicOptions, live_nodes: set[int], min_isr: int) -> bool:
    in_sync = len(partition.isr_nodes)
    return (
        not options.filters_partitions
        or (options.under_replicated_partitions and in_sync < len(partition.replica_nodes))
        or (options.unavailable_partitions and partition.leader_id not in live_nodes)
        or (options.under_min_isr_partitions and in_sync < min_isr)
        or (options.at_min_isr_partitions and in_sync == min_isr)
    )


def _print_topic(topic: TopicMetadata, configs: dict[str, str]) -> None:
    replication_factor = len(next(iter(topic.partitions.values())).replica_nodes) if topic.partitions else 0
    header = {
        "Topic": topic.name,
        "TopicId": uuid_to_text(topic.topic_id),
        "PartitionCount": str(len(topic.partitions)),
        "ReplicationFactor": str(replication_factor),
        "Configs": ",".join(f"{name}={value}" for name, value in configs.items()),
    }
    separator = "  " if stdout_is_terminal() else "\t"
    click.echo(separator.join(f"{name}: {value}" for name, value in header.items()))


def _print_partitions(topic: TopicMetadata, partitions: list[PartitionMetadata]) -> None:
    rows = [_partition_row(topic.name, partition) for partition in partitions]
    if rows and stdout_is_terminal():
        print_table([Column(name) for name in rows[0]], [list(row.values()) for row in rows])
        return
    for row in rows:
        click.echo("\t" + "\t".join(f"{name}: {value}" for name, value in row.items()))


def _partition_row(name: str, partition: PartitionMetadata) -> dict[str, str]:
    return {
        "Topic": name,
        "Partition": str(partition.partition),
        "Leader": str(partition.leader_id) if partition.leader_id >= 0 else "none",
        "Replicas": _ids(partition.replica_nodes),
        "Isr": _ids(partition.isr_nodes),
        "Elr": _ids(partition.eligible_leader_replicas),
        "LastKnownElr": _ids(partition.last_known_elr),
    }


def _ids(nodes: Sequence[int] | None) -> str:
    return "N/A" if nodes is None else ",".join(str(node) for node in nodes)
