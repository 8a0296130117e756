"""A window of virtual time in which nobody wants anything: what happens in it happens by itself, and must not repeat.

- Repeats: nodes ask each other for what waits or is due, no faster than the configuration says, and nothing fails.
- QuietLog: nobody warns, and no line comes again and again.
- QuietTasks: no task wakes all the time.
- NoChange: no metadata but records that say nothing, no election, and no record in any partition.
"""

from __future__ import annotations

import logging
from collections import Counter

import trio

from tests.replication.simulation.invariants import ensure

from ..nodes import NODE_IDS
from .lines import Line, Lines
from .lives import Life, Lives
from .traffic import Asked, Traffic

WINDOW_S = 2.0
_SLACK = 1
"""What was under way, and clocks that run two per cent too fast."""

_FETCH_WAITS_S = 0.5
_NO_OP_S = 0.5
_HEARTBEAT_S = 0.3
_BEGIN_QUORUM_EPOCH_S = 0.3
"""Half of `controller.quorum.fetch.timeout.ms`: for voters whose fetch waits for longer."""

_MOST_LINES = 2 * len(NODE_IDS)
_DUE = frozenset(("%s begins at offset %d now",))
"""What retention deletes, of dozens of partitions, is old at some time, be it quiet."""
_MOST_STEPS = round(500 * WINDOW_S) * len(NODE_IDS)
"""Of all tasks that run one function: three times as many as there are."""


class Steps(trio.abc.Instrument):
    """counts: by the tasks' names."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.counts[task.name] += 1


async def check_quiet(lives: Lives, traffic: Traffic, lines: Lines) -> None:
    steps = Steps()
    before = {node_id: _state(life) for node_id, life in lives.items()}
    asked, said = traffic.counts.copy(), lines.counts.copy()
    trio.lowlevel.add_instrument(steps)
    await trio.sleep(WINDOW_S)
    trio.lowlevel.remove_instrument(steps)
    check_requests(traffic.counts - asked)
    check_lines(lines.counts - said)
    check_steps(steps.counts)
    for node_id, life in lives.items():
        ensure(before[node_id] == _state(life), "NoChange", "node", node_id, before[node_id], "and then", _state(life))


def check_requests(counts: Counter[tuple[Asked, str]]) -> None:
    for (asked, outcome), count in counts.items():
        ensure(not outcome, "Repeats", f"{count} times {outcome}:", asked)
        most = most_in_window(asked)
        ensure(count <= most, "Repeats", f"{count} times in {WINDOW_S:g} s, {most} at most:", asked)


def most_in_window(asked: Asked) -> int:
    match asked.what:
        case "Fetch" if asked.who.startswith("raft"):
            # One is answered with the record that says nothing, and one with its being committed.
            return 2 * (int(WINDOW_S / _NO_OP_S) + _SLACK) + _SLACK
        case "Fetch":
            interval_s = _FETCH_WAITS_S
        case "BrokerHeartbeat":
            interval_s = _HEARTBEAT_S
        case "BeginQuorumEpoch":
            interval_s = _BEGIN_QUORUM_EPOCH_S
        case _:
            return 0
    return int(WINDOW_S / interval_s) + _SLACK


def check_lines(counts: Counter[Line]) -> None:
    for (level, name, line), count in counts.items():
        if line in _DUE:
            continue
        most = _MOST_LINES if level < logging.WARNING else 0
        ensure(count <= most, "QuietLog", f"{count} times, {most} at most: {name}: {line}")


def check_steps(counts: Counter[str]) -> None:
    for name, count in counts.items():
        ensure(count <= _MOST_STEPS, "QuietTasks", f"{name} wakes {count} times in {WINDOW_S:g} s")


def _state(life: Life) -> dict[str, object]:
    ends = {repr(each): each.log.log_end_offset for each in life.partitions}
    return {"epoch": life.parts.node.raft.epoch, "metadata": life.image.revision, "log ends": ends}
