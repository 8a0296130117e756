"""Actions of `pykbroker share-groups`: what `kafka-share-groups` does, and the words beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.share_groups import (
    ShareGroup,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_group,
    fetch_share_offsets,
)
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from . import typed_groups
from .command import CommandFailed, one_line
from .confirmation import confirm, is_settled
from .entries import Field, Value, print_entries
from .offset_reset import ResetPlace, parse_datetime_ms, parse_topic_scopes, partitions_of, plan_reset
from .reset_plan import INACTIVE_STATES, ResetPlan, carry_out_in_words
from .share_group_options import ShareGroupOptions
from .share_group_tables import Offsets, as_json, print_members, print_offsets, print_state
from .typed_groups import SHARE, Descriptions, chosen, counted, existing

_TOPIC_FIELDS = (Field("topic", width=15), Field("status"))


async def list_names(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Print the groups as Kafka's tool does."""
    await typed_groups.list_names(cluster, options, SHARE)


async def list_in_words(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Print the groups with their states."""
    await typed_groups.list_in_words(cluster, options, SHARE)


async def describe(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Describe groups. Raises CommandFailed where one of them does not exist."""
    await typed_groups.describe(cluster, options, SHARE, _DESCRIPTIONS)


async def _offsets_of(cluster: Cluster, group: ShareGroup) -> Offsets:
    return await fetch_share_offsets(cluster, group.group_id)


_DESCRIPTIONS: Final = Descriptions(
    describe_share_group, _offsets_of, as_json, print_members, print_state, print_offsets
)


async def delete(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Delete the groups that are meant. Raises CommandFailed for those that cannot be."""
    await _delete(cluster, options, await chosen(cluster, options, SHARE))


async def delete_existing(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Delete the groups that are meant. Nothing is deleted where one of them does not exist. Raises CommandFailed."""
    await typed_groups.delete_existing(cluster, options, SHARE, _delete)


async def _delete(cluster: Cluster, options: ShareGroupOptions, names: Sequence[str]) -> None:
    async def count_of(name: str) -> str:
        return counted(len(await fetch_share_offsets(cluster, name)), "share partition")

    await typed_groups.delete(cluster, options, SHARE, names, what_goes="with all offsets", count_of=count_of)


# ---- offsets


async def reset(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Show the plan, and execute it with `--execute`, as Kafka's tool does. Raises CommandFailed."""
    plan = await _planned(cluster, options)
    if options.execute:
        await _execute(cluster, plan)
    plan.print(as_json=options.as_json)


async def reset_in_words(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Show the plan, and execute it when somebody said so. Raises CommandFailed where nobody did.

    A misspelled group is refused; with topics a new group is given offsets.
    """
    parse_topic_scopes(options.topics)
    _place(options)
    if not options.topics:
        await existing(cluster, options, SHARE)
    plan = await _planned(cluster, options)
    await carry_out_in_words(plan, options, lambda agreed: _execute(cluster, agreed))


async def _execute(cluster: Cluster, plan: ResetPlan) -> None:
    for group_id, offsets in plan.new.items():
        if offsets:
            await alter_share_offsets(cluster, group_id, offsets)


async def _planned(cluster: Cluster, options: ShareGroupOptions) -> ResetPlan:
    [name] = options.groups
    place = _place(options)
    scopes = parse_topic_scopes(options.topics)
    current = await _offsets_of_inactive(cluster, name)
    partitions = await partitions_of(cluster, scopes) if scopes else sorted(current)
    plan = ResetPlan()
    plan.current[name] = {of: offset for of, offset in current.items() if offset is not None}
    plan.new[name] = await plan_reset(cluster, place, partitions, {})
    return plan


def _place(options: ShareGroupOptions) -> ResetPlace:
    timestamp_ms = None if options.to_datetime is None else parse_datetime_ms(options.to_datetime)
    return ResetPlace(to_earliest=options.to_earliest, to_latest=options.to_latest, to_timestamp_ms=timestamp_ms)


async def _offsets_of_inactive(cluster: Cluster, name: str) -> Mapping[TopicPartition, int | None]:
    """Return the start offsets of a group; none of one that does not exist, which may be given some.

    Raises CommandFailed where somebody is in it.
    """
    try:
        group = await describe_share_group(cluster, name)
    except KafkaError as error:
        if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        raise
    if group.state not in INACTIVE_STATES:
        raise CommandFailed(f"Share group '{name}' is not empty.")
    return {of: told.start_offset for of, told in (await fetch_share_offsets(cluster, name)).items()}


async def delete_offsets(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Forget topics of a group, each for itself. Raises CommandFailed where one stays."""
    [name] = options.groups
    if not is_settled(yes=options.yes, named=True):
        offsets = await fetch_share_offsets(cluster, name)
        going = [
            f"{of} (start offset {'-' if told.start_offset is None else told.start_offset})"
            for of, told in sorted(offsets.items())
            if of.topic in options.topics
        ]
        action = f"Delete {counted(len(going), 'offset')} of the share group '{name}'"
        await confirm(action, going, yes=options.yes, named=True)
    told_of = await delete_share_offsets(cluster, name, options.topics)
    rows: list[list[Value]] = [
        [topic, "Successful" if error is None else f"Error: {one_line(error)}"]
        for topic, error in sorted(told_of.items())
    ]
    print_entries(_TOPIC_FIELDS, rows, as_json=options.as_json, apart=True)
    if any(error is not None for error in told_of.values()):
        raise CommandFailed("The offsets of some topics were not deleted, see the follow-up details.")


async def delete_offsets_of_existing(cluster: Cluster, options: ShareGroupOptions) -> None:
    """Forget topics of a group. Raises CommandFailed where the group does not exist."""
    if await existing(cluster, options, SHARE):
        await delete_offsets(cluster, options)
    elif options.as_json:
        click.echo("[]")
