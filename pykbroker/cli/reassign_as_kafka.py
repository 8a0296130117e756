"""The flags of `pykbroker reassign`, with the texts of `kafka-reassign-partitions`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.reassignments import Reassignment, list_reassignments
from pykbroker.protocol.topic_partition import TopicPartition

from .broker_ids import parse_broker_ids
from .command import CommandFailed
from .controller_options import node_to_ask
from .reassign_options import ReassignOptions
from .reassignment_cancellation import cancel_directory_moves, cancel_moves
from .reassignment_plan import Plan, read_plan, read_topics
from .reassignment_proposal import propose
from .reassignment_start import (
    Replicas,
    all_replicas,
    check_ongoing,
    check_plan,
    limit_traffic,
    replicas_of,
    start_moves,
)
from .reassignment_state import clear_throttles, plan_state
from .replica_places import find_places
from .topic_selection import known_topics

_VERIFY_LATER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


async def generate(cluster: Cluster, options: ReassignOptions) -> bool:
    """Print the assignment of topics as it is, and a proposal."""
    assert options.topics_to_move_json_file is not None, "checked before"
    names = read_topics(options.topics_to_move_json_file)
    wanted = parse_broker_ids(options.broker_list or "", "--broker-list")
    topics = await known_topics(cluster, names)
    for broker in wanted:
        if broker not in cluster.metadata.nodes:
            raise CommandFailed(f"Unknown broker id {broker}")
    plan = propose(
        topics,
        [cluster.metadata.nodes[each] for each in wanted],
        is_rack_aware=not options.disable_rack_aware,
        replication_factor=None,
    )
    now = await _as_plan(cluster, replicas_of(topics))
    click.echo(f"Current partition replica assignment\n{now.text()}\n")
    click.echo(f"Proposed partition reassignment configuration\n{plan.text()}")
    return False


async def _as_plan(cluster: Cluster, replicas: Replicas) -> Plan:
    """Return what is as a plan, so that it can be had back."""
    return Plan(replicas, (await find_places(cluster, replicas)).current)


async def execute(cluster: Cluster, options: ReassignOptions) -> bool:
    plan = read_plan(options.plan_file)
    ongoing = await list_reassignments(cluster)
    check_ongoing(ongoing, options)
    current = await all_replicas(cluster)
    check_plan(cluster, plan, current)
    now = await _as_plan(cluster, {of: current[of] for of in plan.replicas})
    click.echo(
        f"Current partition replica assignment\n\n{now.text()}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    if options.throttle is not None or options.replica_alter_log_dirs_throttle is not None:
        click.echo(_VERIFY_LATER)
    await limit_traffic(cluster, plan, current, ongoing, options)
    await start_moves(cluster, plan, options)
    click.echo(f"Successfully started partition reassignment{_s(len(plan.replicas))} for {_names(plan.replicas)}")
    return False


async def verify(cluster: Cluster, options: ReassignOptions) -> bool:
    """Print how far a plan is, and clear the throttles where nothing moves any more. Kafka's tool ends with 0."""
    plan = read_plan(options.plan_file)
    state = await plan_state(cluster, plan)
    click.echo("Status of partition reassignment:")
    for partition in state.partitions:
        click.echo(str(partition))
    for directory in state.directories:
        click.echo(directory.text)
    click.echo()
    if state.is_moving or options.preserve_throttles:
        return False
    return await clear_throttles(cluster, plan, state.current)


async def list_(cluster: Cluster, options: ReassignOptions) -> bool:
    found = await list_reassignments(cluster, node=await node_to_ask(cluster, options))
    if not found:
        click.echo("No partition reassignments found.")
        return False
    click.echo("Current partition reassignments:")
    for of, move in found.items():
        click.echo(_line(of, move))
    return False


def _line(of: TopicPartition, move: Reassignment) -> str:
    adding = f" adding: {_ids(move.adding)}." if move.adding else ""
    removing = f" removing: {_ids(move.removing)}." if move.removing else ""
    return f"{of}: replicas: {_ids(move.replicas)}.{adding}{removing}"


async def cancel(cluster: Cluster, options: ReassignOptions) -> bool:
    """End moves of a plan that are under way, and clear the throttles."""
    plan = read_plan(options.plan_file)
    node = await node_to_ask(cluster, options)
    cancelled = await cancel_moves(cluster, plan.replicas, node)
    if cancelled:
        click.echo(f"Successfully cancelled partition reassignment{_s(len(cancelled))} for: {_names(cancelled)}")
    else:
        click.echo("None of the specified partition reassignments are active.")
    if node is not None:
        return False
    current = await all_replicas(cluster)
    back = await cancel_directory_moves(cluster, plan, options.timeout / 1000)
    if not back:
        click.echo("None of the specified partition moves are active.")
    return False if options.preserve_throttles else await clear_throttles(cluster, plan, current)


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(str(of) for of in sorted(partitions))


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(str(each) for each in brokers)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
