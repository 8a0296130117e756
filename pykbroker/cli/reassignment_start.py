"""The start of moves: checks of a plan, bounds on the traffic, the request, and moves between log directories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.each_node import ask_each
from pykbroker.client.errors import ClientError
from pykbroker.client.log_dirs import move_replicas
from pykbroker.client.metadata import Node, TopicMetadata
from pykbroker.client.reassignments import Reassignment, alter_reassignments
from pykbroker.client.replication_throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
    Move,
    set_broker_throttles,
    set_topic_throttles,
)
from pykbroker.client.topics import list_topics
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, one_line
from .progress import progress
from .reassign_options import LEAST_THROTTLE_BYTES, ReassignOptions
from .reassignment_plan import Plan
from .replica_places import Replica

Replicas = dict[TopicPartition, tuple[int, ...]]

_POLL_S: Final = 0.2


async def all_replicas(cluster: Cluster) -> Replicas:
    """Return the brokers of every partition, and note the nodes of the cluster."""
    return replicas_of(await list_topics(cluster))


def replicas_of(topics: Sequence[TopicMetadata]) -> Replicas:
    return {
        TopicPartition(topic.name, number): each.replica_nodes
        for topic in topics
        for number, each in topic.partitions.items()
    }


def check_plan(cluster: Cluster, plan: Plan, current: Replicas) -> None:
    """Raises CommandFailed where the plan names brokers or partitions that do not exist."""
    for broker in sorted(plan.brokers):
        if broker not in cluster.metadata.nodes:
            raise CommandFailed(f"Unknown broker id {broker}")
    missing = [of for of in sorted(plan.replicas) if of not in current]
    if missing:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CommandFailed(f"Unable to find partition: {missing[0]}{more}")


def check_ongoing(ongoing: Mapping[TopicPartition, Reassignment], options: ReassignOptions) -> None:
    """Raises CommandFailed where moves are under way, and nobody said that these come on top."""
    if ongoing and not options.additional:
        raise CommandFailed(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
            "create a new partition assignment in addition to the existing one. The --additional flag can also be used "
            "to change the throttle by resubmitting the current reassignment."
        )


async def limit_traffic(
    cluster: Cluster,
    plan: Plan,
    current: Replicas,
    ongoing: Mapping[TopicPartition, Reassignment],
    options: ReassignOptions,
) -> None:
    """Set the throttles that are asked for, before anything moves. Raises CommandFailed."""
    for flag, rate in (
        ("--throttle", options.throttle),
        ("…-log-dirs-throttle", options.replica_alter_log_dirs_throttle),
    ):
        if rate is not None and 0 <= rate < LEAST_THROTTLE_BYTES:
            raise CommandFailed(f"{flag}: the throttle rate should be at least {LEAST_THROTTLE_BYTES} bytes per second")
    if options.throttle is not None and options.throttle >= 0:
        moves = {of: _move(current[of], target, ongoing.get(of)) for of, target in plan.replicas.items()}
        await set_topic_throttles(cluster, moves)
        brokers = {each for move in moves.values() for each in (*move.sources, *move.destinations)}
        rates = {LEADER_RATE: options.throttle, FOLLOWER_RATE: options.throttle}
        await _set_rates(cluster, brokers, rates)
        click.echo(f"The inter-broker throttle limit was set to {options.throttle} B/s", err=options.as_json)
    log_dirs_rate = options.replica_alter_log_dirs_throttle
    if log_dirs_rate is not None and log_dirs_rate >= 0:
        await _set_rates(cluster, {broker for _, broker in plan.log_dirs}, {LOG_DIR_RATE: log_dirs_rate})
        click.echo(f"The replica-alter-dir throttle limit was set to {log_dirs_rate} B/s", err=options.as_json)


def _move(current: tuple[int, ...], target: tuple[int, ...], ongoing: Reassignment | None) -> Move:
    if ongoing is None:
        return Move(current, tuple(each for each in target if each not in current))
    destinations = (*ongoing.adding, *(each for each in target if each not in ongoing.sources))
    return Move(ongoing.sources, tuple(dict.fromkeys(destinations)))


async def _set_rates(cluster: Cluster, brokers: Collection[int], rates: Mapping[str, int]) -> None:
    nodes = [node for node_id, node in cluster.metadata.nodes.items() if node_id in brokers]
    failed = await set_broker_throttles(cluster, nodes, rates)
    for broker, error in failed.items():
        raise CommandFailed(f"The throttle of broker {broker} could not be set: {one_line(error)}")


async def start_moves(cluster: Cluster, plan: Plan, options: ReassignOptions) -> None:
    """Ask the controller for the moves. Raises CommandFailed with all that it refuses."""
    with progress("Starting moves", len(plan.replicas)) as advance:
        outcomes = await alter_reassignments(
            cluster,
            plan.replicas,
            keeps_replication_factor=options.disallow_replication_factor_change,
            on_answer=advance,
        )
    refused = [f"{of}: {one_line(error)}" for of, error in sorted(outcomes.items()) if error is not None]
    if refused:
        for line in refused[:-1]:
            click.echo(line, err=True)
        raise CommandFailed(f"Error reassigning partition(s): {refused[-1]}")
    if not plan.log_dirs:
        return
    await move_between_directories(cluster, plan.log_dirs, options.timeout / 1000, as_json=options.as_json)


async def move_between_directories(
    cluster: Cluster, targets: Mapping[Replica, str], timeout_s: float, *, as_json: bool = False
) -> None:
    """Ask for moves until each has begun: a replica that is new on its broker is not there at once.

    as_json: standard output is for a document, and lines for people go to standard error.
    """
    open_ = dict(targets)
    deadline = trio.current_time() + timeout_s
    while True:
        for replica in await _begin(cluster, open_):
            of, broker = replica
            click.echo(
                f"Successfully started moving log directory to {open_.pop(replica)} for replica "
                f"{of.topic}-{of.partition} with broker {broker} ",
                err=as_json,
            )
        if not open_:
            return
        if trio.current_time() + _POLL_S > deadline:
            names = ",".join(f"{of}-{broker}" for of, broker in sorted(open_)[:100])
            plural = "" if len(open_) == 1 else "s"
            raise CommandFailed(f"Timed out before log directory move{plural} could be started for: {names}")
        await trio.sleep(_POLL_S)


async def _begin(cluster: Cluster, targets: Mapping[Replica, str]) -> list[Replica]:
    """Return the moves that have begun. Raises CommandFailed for those that never will."""
    by_broker: dict[int, dict[TopicPartition, str]] = {}
    for (of, broker), directory in targets.items():
        by_broker.setdefault(broker, {})[of] = directory
    begun = []
    for broker, moves in by_broker.items():
        node = cluster.metadata.nodes[broker]
        outcomes = await _ask(cluster, node, moves)
        for of, error_code in outcomes.items():
            if error_code is ErrorCode.NONE:
                begun.append((of, broker))
            elif error_code is not ErrorCode.REPLICA_NOT_AVAILABLE and not error_code.retriable:
                raise CommandFailed(f"Failed to alter dir for {of}-{broker}: {error_code.description}")
    return begun


async def _ask(cluster: Cluster, node: Node, moves: Mapping[TopicPartition, str]) -> Mapping[TopicPartition, ErrorCode]:
    answers = await ask_each(cluster, [node], lambda connection: move_replicas(connection, moves))
    answer = answers[node.node_id]
    return {} if isinstance(answer, ClientError) else answer
