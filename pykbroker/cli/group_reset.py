"""Resets of a group's offsets: the plan, which is shown or exported, and its execution.

Kafka's flags do nothing without `--execute`. The word asks at a terminal; elsewhere `--execute` or `--yes` answers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.group_offsets import commit_offsets, fetch_offsets
from pykbroker.client.groups import describe_group, list_groups
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .confirmation import ask, can_ask
from .entries import Field, Value, print_entries
from .group_options import GroupOptions
from .group_selection import chosen, no_such_group
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
from .output import warn

INACTIVE_STATES = ("Empty", "Dead")
_FIELDS = (
    Field("group", width=15),
    Field("topic", width=15),
    Field("partition", right=True, width=10),
    Field("current_offset", "", right=True),
    Field("new_offset", right=True, width=15),
)
_WITH_CURRENT = (*_FIELDS[:3], Field("current_offset", right=True, width=15), _FIELDS[4])

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The offsets that each group has, and those that it is to have."""

    current: dict[str, Offsets]
    new: dict[str, Offsets]

    @property
    def rows(self) -> list[list[Value]]:
        return [
            [group_id, of.topic, of.partition, self.current.get(group_id, {}).get(of), offset]
            for group_id, offsets in self.new.items()
            for of, offset in sorted(offsets.items())
        ]


async def reset(cluster: Cluster, options: GroupOptions) -> None:
    """Show the plan, and execute it with `--execute`, as Kafka's tool does."""
    plan = await _planned(cluster, options)
    if options.execute:
        await _execute(cluster, plan)
    elif not options.dry_run and not options.export:
        warn("No action will be performed as the --execute option is missing.")
    if options.export:
        click.echo(write_plan(plan.new), nl=False)
    else:
        print_entries(_FIELDS, plan.rows, as_json=options.as_json, apart=True)


async def reset_in_words(cluster: Cluster, options: GroupOptions) -> None:
    """Show the plan, and execute it when somebody said so. Raises CommandFailed where nobody did."""
    parse_topic_scopes(options.topics)
    _place(options)
    await _require_known(cluster, options)
    plan = await _planned(cluster, options)
    if options.export:
        click.echo(write_plan(plan.new), nl=False)
        return
    print_entries(_WITH_CURRENT, plan.rows, as_json=options.as_json)
    changed = sum(row[3] != row[4] for row in plan.rows)
    if options.dry_run or not plan.rows:
        return
    if not (options.execute or options.yes):
        if not can_ask():
            raise CommandFailed(
                "Nothing was reset: nobody can be asked here, and neither --execute nor --yes was given"
            )
        await ask(f"Reset {changed} offset{'' if changed == 1 else 's'}")
    await _execute(cluster, plan)


async def _execute(cluster: Cluster, plan: _Plan) -> None:
    for group_id, offsets in plan.new.items():
        if offsets:
            await commit_offsets(cluster, group_id, offsets)


async def _require_known(cluster: Cluster, options: GroupOptions) -> None:
    """Refuse a misspelled group that has no offsets to reset; with topics offsets are given to a new one."""
    if options.topics or options.from_file is not None:
        return
    there = {group.group_id for group in await list_groups(cluster)}
    for name in options.groups:
        if name not in there:
            raise no_such_group(name, there)


async def _planned(cluster: Cluster, options: GroupOptions) -> _Plan:
    names = await chosen(cluster, options)
    from_file = read_plan(_read(options.from_file), names) if options.from_file is not None else None
    scopes = parse_topic_scopes(options.topics)
    place = _place(options)
    plan = _Plan({}, {})
    for name in names:
        await _require_inactive(cluster, name)
        committed = {of: answer.offset for of, answer in (await fetch_offsets(cluster, name)).items()}
        plan.current[name] = committed
        if from_file is not None:
            plan.new[name] = await plan_reset(cluster, ResetPlace(to_offsets=from_file.get(name, {})), [], {})
            continue
        partitions = await partitions_of(cluster, scopes) if scopes else sorted(committed)
        plan.new[name] = await plan_reset(cluster, place, partitions, committed)
    return plan


def _place(options: GroupOptions) -> ResetPlace:
    return ResetPlace(
        to_earliest=options.to_earliest,
        to_latest=options.to_latest,
        to_current=options.to_current,
        to_offset=options.to_offset,
        shift_by=options.shift_by,
        to_timestamp_ms=_timestamp_ms(options),
    )


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
