"""The words of `pykbroker reassign` that move partitions and watch them: start, verify, list, cancel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.reassignments import list_reassignments
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .confirmation import confirm
from .controller_options import node_to_ask
from .entries import Field, Value, print_entries
from .progress import progress
from .reassign_options import ReassignOptions
from .reassign_planning import print_moves, proposed_plan, topics_to_move
from .reassignment_cancellation import cancel_directory_moves, cancel_moves
from .reassignment_plan import Plan, read_plan
from .reassignment_start import (
    all_replicas,
    check_ongoing,
    check_plan,
    limit_traffic,
    start_moves,
)
from .reassignment_state import COMPLETED, IN_PROGRESS, clear_throttles, plan_state
from .replica_places import find_places
from .topic_filter import expression_parts

CANCELLED: Final = "cancelled"
_POLL_S: Final = 0.5
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
_THROTTLES_STAY: Final = (
    "Throttles stay, also when the moves are done: `pykbroker reassign clear-throttles` takes them away then"
)


async def start(cluster: Cluster, options: ReassignOptions) -> bool:
    """Start moves, once somebody has agreed, and with `--wait` see them through."""
    if options.reassignment_json_file is not None:
        wanted = read_plan(options.reassignment_json_file)
    else:
        wanted = proposed_plan(cluster, options, await topics_to_move(cluster, options))
    ongoing = await list_reassignments(cluster)
    check_ongoing(ongoing, options)
    current = await all_replicas(cluster)
    check_plan(cluster, wanted, current)
    before = {of: current[of] for of in wanted.replicas}
    moving = [of for of, target in wanted.replicas.items() if target != current[of] or of in ongoing]
    if not moving and not wanted.log_dirs:
        _say("All partitions have these replicas already.", options)
        _print_moved([], options)
        return False
    if not options.as_json:
        print_moves(wanted, before, await find_places(cluster, before))
    await confirm(
        f"Move {len(moving)} partition{_s(moving)}",
        [f"{of} from {_ids(before[of])} to {_ids(wanted.replicas[of])}" for of in sorted(moving)],
        yes=options.yes,
        named=options.topic is None or wanted.topics <= set(expression_parts(options.topic)),
    )
    await limit_traffic(cluster, wanted, current, ongoing, options)
    throttles_stay = max(options.throttle or -1, options.replica_alter_log_dirs_throttle or -1) >= 0
    rows: list[list[Value]] | None = None
    try:
        await start_moves(cluster, wanted, options)
        _say(f"Moves of {len(moving)} partition{_s(moving)} are under way.", options)
        rows = [
            [of.topic, of.partition, IN_PROGRESS, list(before[of]), list(wanted.replicas[of])] for of in sorted(moving)
        ]
        if not options.wait:
            return False
        is_failed = await _see_through(cluster, wanted, options)
        rows = [[topic, partition, COMPLETED, *rest] for topic, partition, _, *rest in rows]
        throttles_stay = False
        return is_failed
    finally:
        if rows is not None:
            _print_moved(rows, options)
        if throttles_stay:
            click.echo(_THROTTLES_STAY, err=True)


def _say(text: str, options: ReassignOptions) -> None:
    """Print a line for people."""
    if not options.as_json:
        click.echo(text)


def _print_moved(rows: Sequence[Sequence[Value]], options: ReassignOptions) -> None:
    """Print moves for programs."""
    if options.as_json:
        print_entries(_STATE_FIELDS, rows, as_json=True)


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
    _say("All moves are done.", options)
    if options.throttle is None and options.replica_alter_log_dirs_throttle is None:
        return False
    return await clear_throttles(cluster, wanted, state.current, as_json=options.as_json)


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
        _say("No move of these is under way.", options)
        _print_moved([], options)
        return False
    await confirm(
        f"Cancel the move{_s(active)} of {len(active)} partition{_s(active)}",
        [f"{of} stays on {_ids(ongoing[of].sources)}" for of in active],
        yes=options.yes,
        named=not options.all_,
    )
    cancelled = await cancel_moves(cluster, active, node)
    _say(f"{len(cancelled)} move{_s(cancelled)} cancelled.", options)
    stay = {of: list(ongoing[of].sources) for of in cancelled}
    _print_moved([[of.topic, of.partition, CANCELLED, each, each] for of, each in stay.items()], options)
    if node is not None:
        return False
    current = await all_replicas(cluster)
    await cancel_directory_moves(cluster, wanted, options.timeout / 1000, as_json=options.as_json)
    if options.preserve_throttles:
        return False
    return await clear_throttles(cluster, wanted, current, as_json=options.as_json)


def _to_cancel(ongoing: Mapping[TopicPartition, object], options: ReassignOptions) -> Plan:
    """Raises CommandFailed."""
    ways = [options.reassignment_json_file is not None, bool(options.names), options.all_]
    if sum(ways) != 1:
        raise CommandFailed("Say which moves: names of topics, --reassignment-json-file or --all")
    if options.reassignment_json_file is not None:
        return read_plan(options.reassignment_json_file)
    return Plan({of: () for of in ongoing if options.all_ or of.topic in options.names})


def _s(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"


def _ids(brokers: Collection[int]) -> str:
    return ",".join(str(each) for each in brokers)
