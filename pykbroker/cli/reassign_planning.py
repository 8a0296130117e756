"""`pykbroker reassign plan`: which replicas partitions of topics are to have, and what that copies."""

from __future__ import annotations

from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import TopicMetadata
from pykbroker.client.topics import list_topics

from .broker_ids import parse_broker_ids
from .command import CommandFailed, one_line
from .entries import Field, Value, print_entries
from .log_dir_actions import size_text
from .reassign_options import ReassignOptions
from .reassignment_plan import Plan
from .reassignment_proposal import propose
from .reassignment_start import Replicas, replicas_of
from .replica_places import Places, find_places
from .topic_filter import topic_filter
from .topic_selection import known_topics

_MOVE_FIELDS: Final = (
    Field("topic"),
    Field("partition", right=True),
    Field("replicas"),
    Field("target"),
    Field("adding"),
    Field("size_bytes", "SIZE", right=True),
)


async def plan(cluster: Cluster, options: ReassignOptions) -> bool:
    """Print a proposal, or write it to a file; nothing moves."""
    topics = await topics_to_move(cluster, options)
    proposed = proposed_plan(cluster, options, topics)
    if options.as_json:
        click.echo(proposed.text())
    else:
        current = replicas_of(topics)
        print_moves(proposed, current, await find_places(cluster, current))
    if options.output is not None:
        try:
            options.output.write_text(proposed.text() + "\n")
        except OSError as error:
            raise CommandFailed(f"Cannot write {options.output}: {error.strerror}") from None
    return False


async def topics_to_move(cluster: Cluster, options: ReassignOptions) -> list[TopicMetadata]:
    """Return the topics that are meant. Raises CommandFailed."""
    if options.names and options.topic is not None:
        raise CommandFailed("Names and --topic are two ways to say which topics: give one")
    if options.names:
        return await known_topics(cluster, options.names)
    if options.topic is None:
        raise CommandFailed("Say which topics: their names, or --topic with a regular expression")
    matches = topic_filter(options.topic)
    topics = [each for each in await list_topics(cluster) if matches(each.name)]
    if not topics:
        raise CommandFailed(f"Topic '{options.topic[:250]}' does not exist as expected")
    return topics


def proposed_plan(cluster: Cluster, options: ReassignOptions, topics: list[TopicMetadata]) -> Plan:
    """Raises CommandFailed."""
    if options.replicas is not None:
        if options.broker_list is not None or options.replication_factor is not None:
            raise CommandFailed("--replicas says all of it: give no --brokers and no --replication-factor")
        replicas = parse_broker_ids(options.replicas, "--replicas")
        return Plan(dict.fromkeys(replicas_of(topics), replicas))
    nodes = cluster.metadata.nodes
    wanted = sorted(nodes) if options.broker_list is None else parse_broker_ids(options.broker_list, "--brokers")
    for broker in wanted:
        if broker not in nodes:
            known = ", ".join(str(each) for each in sorted(nodes))
            raise CommandFailed(f"There is no broker {broker}, or it is down (there are: {known})")
    return propose(
        topics,
        [nodes[each] for each in wanted],
        is_rack_aware=not options.disable_rack_aware,
        replication_factor=options.replication_factor,
    )


def print_moves(plan: Plan, current: Replicas, places: Places) -> None:
    rows: list[list[Value]] = []
    copied, moved = 0, 0
    for of, target in sorted(plan.replicas.items()):
        adding = _adding(current[of], target)
        size = places.size_bytes(of, current[of])
        if target != current[of]:
            moved += 1
            copied += len(adding) * (size or 0)
            shown = None if size is None else size_text(size)
            rows.append([of.topic, of.partition, list(current[of]), list(target), list(adding), shown])
    if rows:
        print_entries(_MOVE_FIELDS, rows, as_json=False)
    click.echo(f"{moved} of {len(plan.replicas)} partitions change; {size_text(copied)} are copied")
    for broker, error in places.silent.items():
        click.echo(f"Sizes of broker {broker} are not known: {one_line(error)}", err=True)


def _adding(current: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in target if each not in current)
