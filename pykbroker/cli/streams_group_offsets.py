"""Resets and deletions of offsets of streams groups, as `kafka-streams-groups` does them, and the words beside it.

A reset may take internal topics with it: what the application has built of records that it is to read again.
"""

from __future__ import annotations

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.group_offsets import commit_offsets, fetch_offsets
from pykbroker.client.streams_groups import StreamsGroup, describe_streams_group
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .entries import Value
from .group_deletion import delete_offsets_of, partitions_of_topics
from .internal_topics import TopicDeletion, complaint, delete_topics, internal_topics_of, named_internal_topics
from .offset_reset import ResetPlace, parse_topic_scopes, partitions_of, plan_reset, read_plan
from .printable import printable
from .reset_plan import INACTIVE_STATES, Offsets, ResetPlan, carry_out_in_words, place_of, read_plan_file
from .streams_group_options import StreamsGroupOptions
from .typed_groups import STREAMS, counted, existing

InternalTopics = dict[str, list[str]]


async def reset(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Show the plan, and execute it with `--execute`, as Kafka's tool does. Raises CommandFailed."""
    plan, internal = await _planned(cluster, options)
    if options.execute:
        await _execute(cluster, plan, internal)
    if options.export:
        plan.export()
    else:
        plan.print(as_json=options.as_json)


async def reset_in_words(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Show the plan, and execute it when somebody said so. Raises CommandFailed where nobody did."""
    parse_topic_scopes(options.topics)
    place_of(options)
    plan, internal = await _planned(cluster, options)
    if options.export:
        plan.export()
        return
    topics = [topic for listed in internal.values() for topic in listed]
    also = f" and delete {counted(len(topics), 'internal topic')} ({', '.join(topics)})" if topics else ""
    await carry_out_in_words(plan, options, lambda agreed: _execute(cluster, agreed, internal), also=printable(also))


async def _execute(cluster: Cluster, plan: ResetPlan, internal: InternalTopics) -> None:
    """Raises CommandFailed where an internal topic stays: then the offsets are reset none the less."""
    for group_id, offsets in plan.new.items():
        if offsets:
            await commit_offsets(cluster, group_id, offsets)
    gone: dict[str, TopicDeletion] = {}
    for group_id, topics in internal.items():
        if topics:
            gone[group_id] = await delete_topics(cluster, topics)
    for each in gone.values():
        if each.deleted:
            click.echo(f"Deleted internal topics: {', '.join(map(printable, each.deleted))}", err=True)
    failure = complaint(gone)
    if failure is not None:
        raise CommandFailed(failure)


async def _planned(cluster: Cluster, options: StreamsGroupOptions) -> tuple[ResetPlan, InternalTopics]:
    """Return the plan, and the internal topics to delete of each group. Raises CommandFailed."""
    scopes = parse_topic_scopes(options.topics)
    place = place_of(options)
    names = await existing(cluster, options, STREAMS)
    from_file = read_plan(read_plan_file(options.from_file), names) if options.from_file is not None else None
    plan = ResetPlan()
    internal: InternalTopics = {}
    for name in names:
        group = await describe_streams_group(cluster, name)
        if group.state not in INACTIVE_STATES:
            raise CommandFailed(
                f"Assignments can only be reset if the group '{name}' is inactive, "
                f"but the current state is {group.state}."
            )
        internal[name] = _internal_topics(group, options)
        everything = {of: told.offset for of, told in (await fetch_offsets(cluster, name)).items()}
        committed = {of: offset for of, offset in everything.items() if of.topic in group.read_topics}
        plan.current[name] = committed
        if from_file is not None:
            plan.new[name] = await plan_reset(cluster, ResetPlace(to_offsets=from_file.get(name, {})), [], {})
        else:
            partitions = await _partitions(cluster, group, everything, scopes)
            plan.new[name] = await plan_reset(cluster, place, partitions, committed)
    return plan, internal


def _internal_topics(group: StreamsGroup, options: StreamsGroupOptions) -> list[str]:
    if options.all_internal_topics:
        return internal_topics_of(group)
    return named_internal_topics(group, options.internal_topics)


async def _partitions(
    cluster: Cluster, group: StreamsGroup, committed: Offsets, scopes: dict[str, list[int] | None]
) -> list[TopicPartition]:
    """Return the partitions that are meant: those of source topics that the group has offsets of, unless named."""
    if not scopes:
        return sorted(of for of in committed if of.topic in group.source_topics)
    partitions = await partitions_of(cluster, scopes)
    if any(of not in committed for of in partitions):
        raise CommandFailed(f"One or more topics are not part of the group '{group.group_id}'.")
    return partitions


async def delete_offsets(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Delete offsets of a group, each for itself. Raises CommandFailed where one stays, or the group does not exist."""
    parse_topic_scopes(options.topics)
    for name in await existing(cluster, options, STREAMS):
        if options.all_topics:
            group = await describe_streams_group(cluster, name)
            committed = await fetch_offsets(cluster, name)
            partitions = sorted(of for of in committed if of.topic in group.source_topics)
            missing: list[list[Value]] = []
        else:
            partitions, missing = await partitions_of_topics(cluster, options.topics)
        await delete_offsets_of(cluster, name, partitions, missing, yes=options.yes, as_json=options.as_json)
