"""Actions of `pykbroker groups`: list and describe. Deletions are in `group_deletion`, resets in `group_reset`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.groups import GroupDescription
from pykbroker.protocol.messages.group_admin import ListedGroup

from .entries import Field, Value, print_entries, print_json
from .group_options import GroupOptions
from .group_selection import (
    ALL_STATES,
    CONSUMER_TYPES,
    STATES,
    TYPES,
    all_groups,
    chosen,
    consumer_groups,
    described,
    in_kafkas_spelling,
    no_such_group,
)
from .group_tables import as_json, lag_of, partition_rows, print_members, print_offsets, print_states
from .output import Column, print_table
from .printable import printable
from .progress import progress

REBALANCING_STATES = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_NOUNS = {"share": "Share group", "streams": "Streams group"}
_FIELDS = (Field("group"), Field("type"), Field("protocol"), Field("state"))


async def list_names(cluster: Cluster, options: GroupOptions) -> None:
    """Print groups of consumers as `kafka-consumer-groups` does; with `--json` as objects."""
    states = in_kafkas_spelling(options.state, STATES, "state")
    types = in_kafkas_spelling(options.type_, CONSUMER_TYPES, "type")
    groups = await consumer_groups(cluster, states, types)
    if options.as_json:
        print_entries(_FIELDS, _rows(groups), as_json=True)
    else:
        _print_list(groups, options.state is not None, options.type_ is not None)


async def list_as_kafka_groups(cluster: Cluster, options: GroupOptions) -> None:
    """Print groups of every type as `kafka-groups` does; with `--json` as objects."""
    types = in_kafkas_spelling(options.group_type, TYPES, "group type")
    if options.consumer:
        groups = await consumer_groups(cluster)
    else:
        types = ["share"] if options.share else ["streams"] if options.streams else types
        groups = await all_groups(cluster, (), types)
    if options.protocol is not None:
        groups = [group for group in groups if group.protocol_type == options.protocol]
    if options.as_json:
        print_entries(_FIELDS, _rows(groups), as_json=True)
        return
    columns = (Column("GROUP", 20), Column("TYPE", 20), Column("PROTOCOL", 20))
    print_table(columns, [[group.group_id, group.group_type.capitalize(), group.protocol_type] for group in groups])


async def list_all(cluster: Cluster, options: GroupOptions) -> None:
    """Print groups of all kinds."""
    states = in_kafkas_spelling(options.state, ALL_STATES, "state")
    types = in_kafkas_spelling(options.type_, TYPES, "type")
    groups = await all_groups(cluster, states, types)
    if options.groups:
        known = [group.group_id for group in groups]
        for name in options.groups:
            if name not in known:
                raise no_such_group(name, known)
        groups = [group for group in groups if group.group_id in options.groups]
    print_entries(_FIELDS, _rows(groups), as_json=options.as_json)


async def describe(cluster: Cluster, options: GroupOptions) -> int:
    """Describe groups, and return how many; with `--lag-above` only those that lag more."""
    names = await chosen(cluster, options)
    with progress("Describing groups", len(names)) as advance:
        groups = []
        for name in names:
            group = await described(cluster, name)
            advance()
            if options.lag_above is None or await lag_of(cluster, group) > options.lag_above:
                groups.append(group)
    if options.as_json:
        print_json([await _object(cluster, group, options) for group in groups])
        return len(groups)
    for group in groups:
        _warn_of_state(group)
    if options.members:
        print_members(groups, options.verbose)
    elif options.state is not None:
        print_states(groups)
    else:
        for group in groups:
            await print_offsets(cluster, group)
    return len(groups)


async def _object(cluster: Cluster, group: GroupDescription, options: GroupOptions) -> Value:
    wants_offsets = not options.members and options.state is None
    return as_json(
        group,
        await partition_rows(cluster, group) if wants_offsets else None,
        await lag_of(cluster, group) if wants_offsets else None,
        with_members=options.state is None,
    )


def _rows(groups: Sequence[ListedGroup]) -> list[list[Value]]:
    return [
        [group.group_id, group.group_type.lower() or None, group.protocol_type or None, group.group_state or None]
        for group in groups
    ]


def _print_list(groups: list[ListedGroup], with_states: bool, with_types: bool) -> None:
    if not with_states and not with_types:
        for group in groups:
            click.echo(printable(group.group_id))
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
    noun = _NOUNS.get(group.group_type.lower(), "Consumer group")
    name = printable(group.group_id)
    if group.state == "Empty":
        click.echo(f"{noun} '{name}' has no active members.", err=True)
    elif group.state in REBALANCING_STATES:
        click.echo(f"Warning: {noun} '{name}' is rebalancing.", err=True)
