"""The words of `pykbroker reassign`: plan, start, verify, list, cancel. Bytes are those of the largest replica."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import TopicMetadata
from pykbroker.client.reassignments import list_reassignments
from pykbroker.client.topics import list_topics
from pykbroker.protocol.topic_partition import TopicPartition

from .broker_ids import parse_broker_ids
from .command import CommandFailed, one_line
from .confirmation import confirm
from .entries import Field, Value, print_entries
from .log_dir_actions import size_text
from .progress import progress
from .reassign_options import ReassignOptions
from .reassignment_cancellation import cancel_directory_moves, cancel_moves
from .reassignment_plan import Plan, read_plan
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
from .replica_places import Places, find_places
from .topic_filter import expression_parts, topic_filter
from .topic_selection import known_topics
from .words import node_to_ask

_POLL_S: Final = 0.5
_MOVE_FIELDS: Final = (
    Field("topic"),
    Field("partition", right=True),
    Field("replicas"),
    Field("target"),
    Field("adding"),
    Field("size_bytes", "SIZE", right=True),
)
_STATE_FIELDS: Final = (
    Field("topic"),
    Field("partition", right=True),
    Field("state"),
    Field("replicas"),
    Field("target"),
)
_ONGOING_FIELDS: Final = (
    Field("topic"),
    Field("partition", right=True),
    Field("replicas"),
    Field("adding"),
    Field("removing"),
)


async def plan(cluster: Cluster, options: ReassignOptions) -> bool:
    """Print a proposal, or write it to a file; nothing moves."""
    topics = await _topics(cluster, options)
    proposed = _proposed(cluster, options, topics)
    if options.as_json:
        click.echo(proposed.text())
    else:
        current = replicas_of(topics)
        _print_moves(proposed, current, await find_places(cluster, current))
    if options.output is not None:
        try:
            options.output.write_text(proposed.text() + "\n")
        except OSError as error:
            raise CommandFailed(f"Cannot write {options.output}: {error.strerror}") from None
    return False


async def _topics(cluster: Cluster, options: ReassignOptions) -> list[TopicMetadata]:
    """Return the topics that are meant. Raises CommandFailed."""
    if options.names and options.topic is not None:
        raise CommandFailed("Names and --topic are two ways to say which topics: give one")
    if options.names:
        return await known_topics(cluster, options.names)
    if options.topic is None:
        raise CommandFailed("Say which topics: their names, or --topic with a regular expression")
    matches = topic_filter(options.topic)
    topics = [each for each in await list_topics(cluster) if matches(each.name)]
    if not topics:
        raise CommandFailed(f"Topic '{options.topic[:250]}' does not exist as expected")
    return topics


def _proposed(cluster: Cluster, options: ReassignOptions, topics: list[TopicMetadata]) -> Plan:
    """Raises CommandFailed."""
    if options.replicas is not None:
        if options.broker_list is not None or options.replication_factor is not None:
            raise CommandFailed("--replicas says all of it: give no --brokers and no --replication-factor")
        replicas = parse_broker_ids(options.replicas, "--replicas")
        return Plan(dict.fromkeys(replicas_of(topics), replicas))
    nodes = cluster.metadata.nodes
    wanted = sorted(nodes) if options.broker_list is None else parse_broker_ids(options.broker_list, "--brokers")
    for broker in wanted:
        if broker not in nodes:
            known = ", ".join(str(each) for each in sorted(nodes))
            raise CommandFailed(f"There is no broker {broker}, or it is down (there are: {known})")
    return propose(
        topics,
        [nodes[each] for each in wanted],
        is_rack_aware=not options.disable_rack_aware,
        replication_factor=options.replication_factor,
    )


def _print_moves(plan: Plan, current: Replicas, places: Places) -> None:
    rows: list[list[Value]] = []
    copied, moved = 0, 0
    for of, target in sorted(plan.replicas.items()):
        adding = _adding(current[of], target)
        size = places.size_bytes(of, current[of])
        if target != current[of]:
            moved += 1
            copied += len(adding) * (size or 0)
            shown = None if size is None else size_text(size)
            rows.append([of.topic, of.partition, list(current[of]), list(target), list(adding), shown])
    if rows:
        print_entries(_MOVE_FIELDS, rows, as_json=False)
    click.echo(f"{moved} of {len(plan.replicas)} partitions change; {size_text(copied)} are copied")
    for broker, error in places.silent.items():
        click.echo(f"Sizes of broker {broker} are not known: {one_line(error)}", err=True)


def _adding(current: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in target if each not in current)


async def start(cluster: Cluster, options: ReassignOptions) -> bool:
    """Start moves, once somebody has agreed, and with `--wait` see them through."""
    if options.reassignment_json_file is not None:
        wanted = read_plan(options.reassignment_json_file)
    else:
        wanted = _proposed(cluster, options, await _topics(cluster, options))
    ongoing = await list_reassignments(cluster)
    check_ongoing(ongoing, options)
    current = await all_replicas(cluster)
    check_plan(cluster, wanted, current)
    before = {of: current[of] for of in wanted.replicas}
    moving = [of for of, target in wanted.replicas.items() if target != current[of] or of in ongoing]
    if not moving and not wanted.log_dirs:
        click.echo("All partitions have these replicas already.")
        return False
    places = await find_places(cluster, before)
    _print_moves(wanted, before, places)
    await confirm(
        f"Move {len(moving)} partition{_s(moving)}",
        [f"{of} from {_ids(before[of])} to {_ids(wanted.replicas[of])}" for of in sorted(moving)],
        yes=options.yes,
        named=options.topic is None or wanted.topics <= set(expression_parts(options.topic)),
    )
    await limit_traffic(cluster, wanted, current, ongoing, options)
    await start_moves(cluster, wanted, options)
    click.echo(f"Moves of {len(moving)} partition{_s(moving)} are under way.")
    return await _see_through(cluster, wanted, options) if options.wait else False


async def _see_through(cluster: Cluster, wanted: Plan, options: ReassignOptions) -> bool:
    """Wait until the plan is fulfilled, and clear its throttles. Raises CommandFailed where time is over."""
    deadline = trio.current_time() + options.wait_s
    total = len(wanted.replicas) + len(wanted.log_dirs)
    with progress("Moving partitions", total) as advance:
        shown = 0
        while True:
            state = await plan_state(cluster, wanted)
            done = state.completed
            advance(done - shown)
            shown = done
            if state.is_completed:
                break
            if trio.current_time() + _POLL_S > deadline:
                raise CommandFailed(
                    f"{done} of {total} moves are done after {options.wait_s:g} s, and the others go on: "
                    "`pykbroker reassign list` shows them"
                )
            await trio.sleep(_POLL_S)
    click.echo("All moves are done.")
    if options.throttle is None and options.replica_alter_log_dirs_throttle is None:
        return False
    return await clear_throttles(cluster, wanted, state.current)


async def verify(cluster: Cluster, options: ReassignOptions) -> bool:
    """Print how far a plan is; return whether something of it is not done."""
    wanted = read_plan(options.plan_file)
    state = await plan_state(cluster, wanted)
    rows: list[list[Value]] = [
        [each.of.topic, each.of.partition, each.state, list(each.replicas), list(each.target)]
        for each in state.partitions
    ]
    print_entries(_STATE_FIELDS, rows, as_json=options.as_json)
    for directory in state.directories:
        click.echo(directory.text, err=options.as_json)
    if state.is_completed and not state.is_moving and not options.preserve_throttles and not options.as_json:
        await clear_throttles(cluster, wanted, state.current)
    return not state.is_completed


async def list_(cluster: Cluster, options: ReassignOptions) -> bool:
    """Print the moves that are under way."""
    found = await list_reassignments(cluster, node=await node_to_ask(cluster, options))
    rows: list[list[Value]] = [
        [of.topic, of.partition, list(move.replicas), list(move.adding), list(move.removing)]
        for of, move in found.items()
    ]
    print_entries(_ONGOING_FIELDS, rows, as_json=options.as_json)
    return False


async def cancel(cluster: Cluster, options: ReassignOptions) -> bool:
    """End moves that are under way, once somebody has agreed."""
    node = await node_to_ask(cluster, options)
    ongoing = await list_reassignments(cluster, node=node)
    wanted = _to_cancel(ongoing, options)
    active = [of for of in sorted(wanted.replicas) if of in ongoing]
    if not active and not wanted.log_dirs:
        click.echo("No move of these is under way.")
        return False
    await confirm(
        f"Cancel the move{_s(active)} of {len(active)} partition{_s(active)}",
        [f"{of} stays on {_ids(ongoing[of].sources)}" for of in active],
        yes=options.yes,
        named=not options.all_,
    )
    cancelled = await cancel_moves(cluster, active, node)
    click.echo(f"{len(cancelled)} move{_s(cancelled)} cancelled.")
    if node is not None:
        return False
    current = await all_replicas(cluster)
    await cancel_directory_moves(cluster, wanted, options.timeout / 1000)
    return False if options.preserve_throttles else await clear_throttles(cluster, wanted, current)


def _to_cancel(ongoing: Mapping[TopicPartition, object], options: ReassignOptions) -> Plan:
    """Raises CommandFailed."""
    ways = [options.reassignment_json_file is not None, bool(options.names), options.all_]
    if sum(ways) != 1:
        raise CommandFailed("Say which moves: names of topics, --reassignment-json-file or --all")
    if options.reassignment_json_file is not None:
        return read_plan(options.reassignment_json_file)
    return Plan({of: () for of in ongoing if options.all_ or of.topic in options.names})


def _ids(brokers: Collection[int]) -> str:
    return ",".join(str(each) for each in brokers)


def _s(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"
