"""Deletion of groups and of their offsets: what would go is shown and asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError, UnknownTopic
from pykbroker.client.group_offsets import delete_offsets, fetch_offsets
from pykbroker.client.groups import delete_group, list_groups
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, one_line
from .confirmation import MOST_SHOWN, confirm, is_settled
from .entries import Field, Value, print_entries
from .group_options import GroupOptions
from .group_selection import chosen, existing
from .offset_reset import parse_topic_scopes, partitions_of
from .outcomes import outcomes
from .printable import printable
from .progress import progress

_FIELDS = (Field("topic", width=15), Field("partition", right=True, width=10), Field("status", width=15))


async def delete(cluster: Cluster, options: GroupOptions) -> None:
    """Delete the groups that are meant. Raises CommandFailed for those that cannot be."""
    await _delete(cluster, options, await chosen(cluster, options))


async def delete_existing(cluster: Cluster, options: GroupOptions) -> None:
    """Delete the groups that are meant. Nothing is deleted where one of them does not exist. Raises CommandFailed."""
    names = await existing(cluster, options)
    if names or options.as_json:
        await _delete(cluster, options, names)


async def _delete(cluster: Cluster, options: GroupOptions, names: Sequence[str]) -> None:
    named = bool(options.groups)
    if not is_settled(yes=options.yes, named=named):
        action = f"Delete {_count(len(names), 'group')} with all committed offsets"
        await confirm(action, await _going(cluster, names), yes=options.yes, named=named)
    failures, deleted = [], []
    with outcomes(as_json=options.as_json) as found:
        with progress("Deleting groups", len(names)) as advance:
            for name in names:
                try:
                    await delete_group(cluster, name)
                    deleted.append(name)
                    found.add({"group": name, "deleted": True, "error": None})
                except KafkaError as error:
                    failures.append(f"Group '{name}' could not be deleted due to: {error}")
                    found.add({"group": name, "deleted": False, "error": one_line(error)})
                advance()
        if deleted or not failures:
            quoted = ", ".join(f"'{printable(name)}'" for name in deleted)
            found.say(f"Deletion of requested consumer groups ({quoted}) was successful.")
    if failures:
        raise CommandFailed("; ".join(failures))


async def _going(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """Return a line for each group; those that are only counted have their names alone."""
    states = {group.group_id: group.group_state for group in await list_groups(cluster)}
    lines = []
    for name in names[:MOST_SHOWN]:
        if name not in states:
            lines.append(f"{name} (does not exist)")
            continue
        offsets = len(await fetch_offsets(cluster, name))
        lines.append(f"{name} ({states[name] or 'state unknown'}, {_count(offsets, 'committed offset')})")
    return [*lines, *names[MOST_SHOWN:]]


async def delete_some_offsets(cluster: Cluster, options: GroupOptions) -> None:
    """Delete a group's offsets of topics or partitions, each for itself. Raises CommandFailed where one stays."""
    [group_id] = options.groups
    partitions, missing = await partitions_of_topics(cluster, options.topics)
    await delete_offsets_of(cluster, group_id, partitions, missing, yes=options.yes, as_json=options.as_json)


async def delete_offsets_of_existing(cluster: Cluster, options: GroupOptions) -> None:
    """Delete offsets of a group. Raises CommandFailed where the group does not exist."""
    parse_topic_scopes(options.topics)
    if await existing(cluster, options):
        await delete_some_offsets(cluster, options)


async def delete_offsets_of(
    cluster: Cluster,
    group_id: str,
    partitions: Sequence[TopicPartition],
    missing: Sequence[Sequence[Value]],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete a group's offsets of partitions, once that is agreed. Raises CommandFailed where one stays.

    missing: a row of topic, partition and status for what is not there.
    """
    if not is_settled(yes=yes, named=True):
        committed = await fetch_offsets(cluster, group_id)
        going = [f"{of} (committed offset {committed[of].offset})" for of in sorted(partitions) if of in committed]
        action = f"Delete {_count(len(going), 'offset')} of the group '{group_id}'"
        await confirm(action, going, yes=yes, named=True)
    rows = [*missing]
    for of, code in sorted((await delete_offsets(cluster, group_id, partitions)).items()):
        status = "Successful" if code is ErrorCode.NONE else f"Error: {code.name}: {code.description}"
        rows.append([of.topic, of.partition, status])
    failed = any(row[2] != "Successful" for row in rows)
    if not failed and not as_json:
        click.echo(f"Request succeeded for deleting offsets from group {printable(group_id)}.")
    print_entries(_FIELDS, rows, as_json=as_json, apart=True)
    if failed:
        raise CommandFailed("Encountered some partition-level error, see the follow-up details.")


async def partitions_of_topics(
    cluster: Cluster, topics: Iterable[str]
) -> tuple[list[TopicPartition], list[list[Value]]]:
    """Return the partitions that are meant, and a row for each topic that is not there. Raises CommandFailed."""
    partitions: list[TopicPartition] = []
    rows: list[list[Value]] = []
    for topic, listed in parse_topic_scopes(topics).items():
        try:
            whole = await partitions_of(cluster, {topic: None}) if listed is None else []
        except UnknownTopic as error:
            rows.append([topic, None, f"Error: {error}"])
        else:
            partitions += whole or [TopicPartition(topic, partition) for partition in listed or ()]
    return partitions, rows


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
