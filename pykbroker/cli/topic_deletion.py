"""Deletion of topics: what would go is shown, and asked for where a pattern chose it.

A pattern never reaches internal topics, which keep the offsets of groups and the states of transactions: they are
deleted by their exact names, with `--internal`.
"""

from __future__ import annotations

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import TopicMetadata
from pykbroker.client.topics import delete_topic

from .command import CommandFailed
from .confirmation import confirm
from .outcomes import outcomes
from .progress import progress
from .topic_filter import expression_parts
from .topic_options import TopicOptions
from .topic_partitions import replication_factor
from .topic_selection import existing


async def delete(cluster: Cluster, options: TopicOptions) -> None:
    """Delete the topics that are meant. Raises CommandFailed."""
    meant = await existing(cluster, options)
    named = set(options.names or expression_parts(options.topic or ""))
    topics = _without_internal(meant, options, named)
    await confirm(
        f"Delete {len(topics)} topic{'' if len(topics) == 1 else 's'} with all records",
        [f"{topic.name} ({_size(topic)})" for topic in topics],
        yes=options.yes,
        named=all(topic.name in named for topic in topics),
    )
    deleted = 0
    try:
        with outcomes(as_json=options.as_json) as found, progress("Deleting topics", len(topics)) as advance:
            for topic in topics:
                await delete_topic(cluster, topic.name)
                found.add({"topic": topic.name, "deleted": True})
                deleted += 1
                advance()
    finally:
        if 0 < deleted < len(topics):
            click.echo(f"{deleted} of {len(topics)} topics are deleted", err=True)


def _without_internal(found: list[TopicMetadata], options: TopicOptions, named: set[str]) -> list[TopicMetadata]:
    internal = [topic.name for topic in found if topic.is_internal]
    asked_for = [name for name in internal if name in named]
    if asked_for and not options.internal:
        raise CommandFailed(
            f"'{asked_for[0]}' is internal, and what it keeps of groups or transactions would be lost: "
            "--internal deletes it"
        )
    kept = sorted(set(internal) - set(asked_for))
    if kept:
        click.echo(f"Internal topics stay: {', '.join(kept)}", err=True)
    return [topic for topic in found if topic.name not in kept]


def _size(topic: TopicMetadata) -> str:
    count = len(topic.partitions)
    return f"{count} partition{'' if count == 1 else 's'}, replication factor {replication_factor(topic)}"
