"""Cycles of dependencies: ww (writes of one partition, in its order), wr (a read of what another wrote), the order of
a process and the order of time.

A cycle of wr alone, or with the order of time, shows a reader who saw what was not there yet. Those with ww are told
and permitted: transactions write to several partitions one after another, and nothing keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from .findings import Anomaly
from .graph import components, shortest_cycle
from .index import History
from .operations import NEVER_NS, Operation

WR, WW, PROCESS, TIME = 1, 2, 4, 8

_WANTED = (
    # name, edges, of which at least one is to be there
    ("G1c", WR, WR),
    ("G1c-realtime", WR | TIME, TIME),
    ("G0", WW, WW),
    ("G1c-ww", WW | WR, WR),
    ("G0-process", WW | PROCESS, PROCESS),
    ("G1c-process", WW | WR | PROCESS, WR),
    ("G0-realtime", WW | TIME, TIME),
    ("G1c-realtime-ww", WW | WR | TIME, WR),
)


def check_cycles(history: History) -> Iterator[Anomaly]:
    nodes = [operation for operation in history.by_invocation if _is_node(history, operation)]
    edges = _Edges(history, nodes)
    told: set[frozenset[int]] = set()
    for name, kinds, required in _WANTED:
        for component in components(edges.of, kinds):
            cycle = shortest_cycle(edges.of, kinds, component, required)
            if cycle is not None and frozenset(cycle) not in told:
                told.add(frozenset(cycle))
                yield _anomaly(name, [nodes[number] for number in cycle])


def _anomaly(name: str, cycle: list[Operation]) -> Anomaly:
    path = " -> ".join(f"#{operation.number}" for operation in (*cycle, cycle[0]))
    return Anomaly(name, f"a cycle of {len(cycle)} operations: {path}", tuple(cycle))


def _is_node(history: History, operation: Operation) -> bool:
    if not (operation.sends or operation.reads):
        return False
    return operation.outcome == "ok" or history.took_effect(operation)


class _Edges:
    def __init__(self, history: History, nodes: list[Operation]) -> None:
        self._numbers = {operation: number for number, operation in enumerate(nodes)}
        self.of: list[dict[int, int]] = [{} for _ in nodes]
        self._write_write(history)
        self._write_read(history)
        self._of_processes(nodes)
        self._of_time(nodes)

    def _add(self, source: int, target: int, kind: int) -> None:
        if source != target:
            targets = self.of[source]
            targets[target] = targets.get(target, 0) | kind

    def _write_write(self, history: History) -> None:
        numbers = self._numbers
        for log in history.logs.values():
            writers = (numbers.get(log.writers[value]) for value in log.order)
            previous = None
            for number in writers:
                if number is not None:
                    if previous is not None and previous != number:
                        self._add(previous, number, WW)
                    previous = number

    def _write_read(self, history: History) -> None:
        numbers = self._numbers
        for log in history.logs.values():
            for value, readers in log.readers.items():
                writer = numbers.get(log.writers.get(value))  # type: ignore[arg-type]
                if writer is None:
                    continue
                for reader in readers:
                    if reader.reads_committed and (number := numbers.get(reader)) is not None:
                        self._add(writer, number, WR)

    def _of_processes(self, nodes: list[Operation]) -> None:
        last: dict[int, int] = {}
        for number, operation in enumerate(nodes):
            if operation.proc in last:
                self._add(last[operation.proc], number, PROCESS)
            if operation.outcome == "ok":
                last[operation.proc] = number

    def _of_time(self, nodes: list[Operation]) -> None:
        """From each operation that ended to those that began next; what follows from others is left out."""
        by_completion = sorted(range(len(nodes)), key=lambda number: nodes[number].completed_ns)
        ended: dict[int, None] = {}
        before: list[list[int]] = [[] for _ in nodes]
        position = 0
        for number, operation in enumerate(nodes):
            while position < len(nodes):
                other = by_completion[position]
                if nodes[other].completed_ns >= operation.invoked_ns or nodes[other].completed_ns == NEVER_NS:
                    break
                for earlier in before[other]:
                    ended.pop(earlier, None)
                ended[other] = None
                position += 1
            before[number] = list(ended)
            for other in before[number]:
                self._add(other, number, TIME)
