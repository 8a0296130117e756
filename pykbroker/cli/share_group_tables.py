"""Share groups as `pykbroker share-groups describe` shows them: in the columns of `kafka-share-groups`, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pykbroker.client.share_groups import ShareGroup, ShareOffset
from pykbroker.protocol.topic_partition import TopicPartition

from .entries import Value
from .group_tables import NONE, assignment_text
from .output import Column, print_table
from .printable import printable

Offsets = Mapping[TopicPartition, ShareOffset]

_GROUP = Column("GROUP")


def print_offsets(group: ShareGroup, offsets: Offsets, *, verbose: bool) -> None:
    """Print the partitions of a group with their start offsets and their lag."""
    if not offsets:
        click.echo(f"\nShare group '{printable(group.group_id)}' has no offset information.")
        return
    columns = [_GROUP, Column("TOPIC"), Column("PARTITION", 10, right=True)]
    columns += [Column("LEADER-EPOCH", 13, right=True)] if verbose else []
    columns += [Column("START-OFFSET", 13, right=True), Column("LAG", 0, right=True)]
    rows = []
    for of, told in sorted(offsets.items()):
        row = [group.group_id, of.topic, str(of.partition)]
        row += [_number(told.leader_epoch)] if verbose else []
        rows.append([*row, _number(told.start_offset), _number(told.lag)])
    print_table(columns, rows, apart=True)


def print_members(group: ShareGroup, *, verbose: bool) -> None:
    """Print the members with what they read; nothing where there are none."""
    warn_of_state(group)
    if not group.members:
        return
    columns = [
        _GROUP,
        Column("CONSUMER-ID"),
        Column("HOST"),
        Column("CLIENT-ID"),
        Column("#PARTITIONS", 12, right=True),
    ]
    columns += [Column("MEMBER-EPOCH", 13, right=True)] if verbose else []
    rows = []
    for member in group.members:
        row = [group.group_id, member.member_id, member.client_host, member.client_id, str(len(member.partitions))]
        row += [str(member.epoch)] if verbose else []
        rows.append([*row, assignment_text(member.partitions) if member.partitions else ""])
    print_table([*columns, Column("ASSIGNMENT", 0)], rows, apart=True)


def print_state(group: ShareGroup, *, verbose: bool) -> None:
    """Print who coordinates a group, and what state it is in."""
    warn_of_state(group)
    columns = [_GROUP, Column("COORDINATOR (ID)", 25), Column("STATE")]
    columns += [Column("GROUP-EPOCH", 12, right=True), Column("ASSIGNMENT-EPOCH", 17, right=True)] if verbose else []
    row = [group.group_id, f"{group.coordinator}  ({group.coordinator.node_id})", group.state]
    row += [str(group.epoch), str(group.assignment_epoch)] if verbose else []
    print_table([*columns, Column("#MEMBERS", 0, right=True)], [[*row, str(len(group.members))]], apart=True)


def warn_of_state(group: ShareGroup) -> None:
    """Say on standard error that nobody is in a group."""
    if group.state == "Empty":
        click.echo(f"Share group '{printable(group.group_id)}' has no active members.", err=True)


def as_json(group: ShareGroup, offsets: Offsets | None, *, with_members: bool) -> Value:
    """Return a group as JSON. offsets: None where they are not asked for."""
    shown: dict[str, Value] = {
        "group": group.group_id,
        "state": group.state,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor or None,
        "coordinator": {
            "id": group.coordinator.node_id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
    }
    if offsets is not None:
        shown["partitions"] = [
            {
                "topic": of.topic,
                "partition": of.partition,
                "start_offset": told.start_offset,
                "leader_epoch": told.leader_epoch,
                "lag": told.lag,
            }
            for of, told in sorted(offsets.items())
        ]
    if with_members:
        shown["members"] = [
            {
                "consumer_id": member.member_id,
                "host": member.client_host,
                "client_id": member.client_id,
                "epoch": member.epoch,
                "assignment": [{"topic": of.topic, "partition": of.partition} for of in member.partitions],
            }
            for member in group.members
        ]
    return shown


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)
