"""Actions of `pykbroker groups`: list, describe, delete, reset offsets, delete offsets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError, UnknownTopic
from pykbroker.client.group_offsets import commit_offsets, delete_offsets, fetch_offsets
from pykbroker.client.groups import GroupDescription, delete_group, describe_group, list_groups
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListedGroup
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .group_options import GroupOptions
from .group_tables import print_deleted, print_members, print_offsets, print_plan, print_states
from .offset_reset import (
    ResetPlace,
    parse_datetime_ms,
    parse_duration_ms,
    parse_topic_scopes,
    partitions_of,
    plan_reset,
    read_plan,
    write_plan,
)
from .output import Column, print_table, warn

STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES = ("classic", "consumer")
PROTOCOL_TYPES = ("consumer", "")
"""Groups of consumers, and those that only ever had offsets committed."""
INACTIVE_STATES = ("Empty", "Dead")
REBALANCING_STATES = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")

Scopes = dict[str, list[int] | None]


async def list_all(cluster: Cluster, options: GroupOptions) -> None:
    states = _names(options.state, STATES, "state")
    types = _names(options.type_, TYPES, "type")
    groups = await _consumer_groups(cluster, states, types)
    _print_list(groups, options.state is not None, options.type_ is not None)


async def describe(cluster: Cluster, options: GroupOptions) -> None:
    described = [await describe_group(cluster, name) for name in await _chosen(cluster, options)]
    for group in described:
        _warn_of_state(group)
    if options.members:
        print_members(described, options.verbose)
    elif options.state is not None:
        print_states(described)
    else:
        for group in described:
            await print_offsets(cluster, group)


async def delete(cluster: Cluster, options: GroupOptions) -> None:
    failures = []
    deleted = []
    for name in await _chosen(cluster, options):
        try:
            await delete_group(cluster, name)
            deleted.append(name)
        except KafkaError as error:
            failures.append(f"Group '{name}' could not be deleted due to: {error}")
    if deleted or not failures:
        named = ", ".join(f"'{name}'" for name in deleted)
        click.echo(f"Deletion of requested consumer groups ({named}) was successful.")
    if failures:
        raise CommandFailed("; ".join(failures))


async def delete_some_offsets(cluster: Cluster, options: GroupOptions) -> None:
    [group_id] = options.groups
    rows: list[tuple[str, str, str]] = []
    partitions: list[TopicPartition] = []
    for topic, listed in parse_topic_scopes(options.topics).items():
        try:
            whole = await partitions_of(cluster, {topic: None}) if listed is None else []
        except UnknownTopic as error:
            rows.append((topic, "-", f"Error: {error}"))
        else:
            partitions += whole or [TopicPartition(topic, partition) for partition in listed or ()]
    outcomes = await delete_offsets(cluster, group_id, partitions)
    for of, code in sorted(outcomes.items()):
        status = "Successful" if code is ErrorCode.NONE else f"Error: {code.name}: {code.description}"
        rows.append((of.topic, str(of.partition), status))
    failed = any(status != "Successful" for _, _, status in rows)
    if not failed:
        click.echo(f"Request succeeded for deleting offsets from group {group_id}.")
    print_deleted(rows)
    if failed:
        raise CommandFailed("Encountered some partition-level error, see the follow-up details.")


async def reset(cluster: Cluster, options: GroupOptions) -> None:
    plan = await _plan(cluster, options)
    if options.execute:
        for group_id, offsets in plan.items():
            if offsets:
                await commit_offsets(cluster, group_id, offsets)
    elif not options.dry_run and not options.export:
        warn("No action will be performed as the --execute option is missing.")
    if options.export:
        click.echo(write_plan(plan), nl=False)
    else:
        print_plan(plan)


async def _plan(cluster: Cluster, options: GroupOptions) -> dict[str, dict[TopicPartition, int]]:
    names = await _chosen(cluster, options)
    from_file = read_plan(_read(options.from_file), names) if options.from_file is not None else None
    scopes = parse_topic_scopes(options.topics)
    place = ResetPlace(
        to_earliest=options.to_earliest,
        to_latest=options.to_latest,
        to_current=options.to_current,
        to_offset=options.to_offset,
        shift_by=options.shift_by,
        to_timestamp_ms=_timestamp_ms(options),
    )
    plan: dict[str, dict[TopicPartition, int]] = {}
    for name in names:
        await _require_inactive(cluster, name)
        if from_file is not None:
            plan[name] = await plan_reset(cluster, ResetPlace(to_offsets=from_file.get(name, {})), [], {})
            continue
        committed = {of: answer.offset for of, answer in (await fetch_offsets(cluster, name)).items()}
        partitions = await partitions_of(cluster, scopes) if scopes else sorted(committed)
        plan[name] = await plan_reset(cluster, place, partitions, committed)
    return plan


async def _require_inactive(cluster: Cluster, name: str) -> None:
    """A group that does not exist yet may be given offsets."""
    try:
        group = await describe_group(cluster, name)
    except KafkaError as error:
        if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if group.state not in INACTIVE_STATES:
        raise CommandFailed(
            f"Assignments can only be reset if the group '{name}' is inactive, but the current state is {group.state}."
        )


async def _consumer_groups(
    cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[ListedGroup]:
    """Brokers that know no types filter, and list other kinds of groups too, are helped out here."""
    listed = await list_groups(cluster, states, types)
    return [
        group
        for group in listed
        if group.protocol_type in PROTOCOL_TYPES
        and group.group_type.lower() in (*(types or TYPES), "")
        and (not states or group.group_state in states)
    ]


async def _chosen(cluster: Cluster, options: GroupOptions) -> list[str]:
    return list(options.groups) or [group.group_id for group in await _consumer_groups(cluster)]


def _names(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Return names in Kafka's spelling, whatever the case they were given in."""
    spelling = {name.lower(): name for name in known}
    wanted = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in wanted:
        if name.lower() not in spelling:
            raise CommandFailed(f"Invalid {what} '{name}'. Valid {what}s are: {', '.join(known)}")
    return [spelling[name.lower()] for name in wanted]


def _timestamp_ms(options: GroupOptions) -> int | None:
    if options.to_datetime is not None:
        return parse_datetime_ms(options.to_datetime)
    if options.by_duration is not None:
        return time.time_ns() // 1_000_000 - parse_duration_ms(options.by_duration)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _print_list(groups: list[ListedGroup], with_states: bool, with_types: bool) -> None:
    if not with_states and not with_types:
        for group in groups:
            click.echo(group.group_id)
        return
    columns = [Column("GROUP", 20)]
    columns += [Column("TYPE", 20)] if with_types else []
    columns += [Column("STATE", 20)] if with_states else []
    rows = []
    for group in groups:
        row = [group.group_id]
        row += [group.group_type.capitalize()] if with_types else []
        row += [group.group_state] if with_states else []
        rows.append(row)
    print_table(columns, rows)


def _warn_of_state(group: GroupDescription) -> None:
    if group.state == "Empty":
        click.echo(f"Consumer group '{group.group_id}' has no active members.", err=True)
    elif group.state in REBALANCING_STATES:
        click.echo(f"Warning: Consumer group '{group.group_id}' is rebalancing.", err=True)
