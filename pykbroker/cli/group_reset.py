"""Resets of a group's offsets: the plan, which is shown or exported, and its execution.

Kafka's flags do nothing without `--execute`. The word asks at a terminal; elsewhere `--execute` or `--yes` answers.
"""

from __future__ import annotations

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.group_offsets import commit_offsets, fetch_offsets
from pykbroker.client.groups import describe_group, list_groups
from pykbroker.client.share_groups import SHARE
from pykbroker.protocol.errors import ErrorCode

from .command import CommandFailed
from .group_options import GroupOptions
from .group_selection import chosen, no_such_group
from .offset_reset import ResetPlace, parse_topic_scopes, partitions_of, plan_reset, read_plan
from .output import warn
from .reset_plan import INACTIVE_STATES, ResetPlan, carry_out_in_words, place_of, read_plan_file


async def reset(cluster: Cluster, options: GroupOptions) -> None:
    """Show the plan, and execute it with `--execute`, as Kafka's tool does."""
    plan = await _planned(cluster, options)
    if options.execute:
        await _execute(cluster, plan)
    elif not options.dry_run and not options.export:
        warn("No action will be performed as the --execute option is missing.")
    if options.export:
        plan.export()
    else:
        plan.print(as_json=options.as_json)


async def reset_in_words(cluster: Cluster, options: GroupOptions) -> None:
    """Show the plan, and execute it when somebody said so. Raises CommandFailed where nobody did."""
    parse_topic_scopes(options.topics)
    place_of(options)
    await _require_known(cluster, options)
    plan = await _planned(cluster, options)
    if options.export:
        plan.export()
        return
    await carry_out_in_words(plan, options, lambda agreed: _execute(cluster, agreed))


async def _execute(cluster: Cluster, plan: ResetPlan) -> None:
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


async def _planned(cluster: Cluster, options: GroupOptions) -> ResetPlan:
    names = await chosen(cluster, options)
    from_file = read_plan(read_plan_file(options.from_file), names) if options.from_file is not None else None
    scopes = parse_topic_scopes(options.topics)
    place = place_of(options)
    plan = ResetPlan()
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


async def _require_inactive(cluster: Cluster, name: str) -> None:
    """A group that does not exist yet may be given offsets."""
    try:
        group = await describe_group(cluster, name)
    except KafkaError as error:
        if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if group.group_type == SHARE:
        raise CommandFailed(f"'{name}' is a share group; `pykbroker share-groups reset-offsets` resets it")
    if group.state not in INACTIVE_STATES:
        raise CommandFailed(
            f"Assignments can only be reset if the group '{name}' is inactive, but the current state is {group.state}."
        )
