"""A history: operations of processes, one JSON object for each beginning and each end of one.

    {"proc": 3, "type": "invoke", "f": "txn", "mops": [["send", "orders-0", [null, "v1"]]], "t_ns": 5}
    {"proc": 3, "type": "ok", "f": "txn", "mops": [["send", "orders-0", [17, "v1"]],
     ["poll", {"bills-1": [[4, "b9"]]}]], "t_ns": 9}

The end is `ok`, `fail` (certainly without effect) or `info` (nobody knows; so is an operation without an end). What
`Operation` says of an attribute is what the end's object may have under that name. Of sends in an operation that never
ended, objects of the type `progress` tell what had begun. A process has one operation at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NEVER_NS = 1 << 62
"""When an operation ended whose end nobody saw."""

OK, FAIL, INFO = "ok", "fail", "info"

Value = Any
"""Hashable, and unique in its partition: no two sends have the same. Lists become tuples."""

KINDS = frozenset(
    (
        "send",  # records, each for itself
        "poll",
        "txn",  # sends, polls and commits that count together or not at all
        "assign",  # the process reads from a place of its own choice from now on
        "subscribe",  # … or what its group gives it
        "crash",  # the process forgot where it was
        "init",  # InitProducerId: `producer` is what it was given
        "commit",  # offsets of a group
        "committed",  # … as the coordinator tells them
        "own",  # partitions that a member was given: `group`, `member`, `epoch`, `keys`
        "offsets",  # ListOffsets: `hw`, `lso`, `start`
        "heal",  # from now on nothing is in anybody's way
        "copy",  # declares that `pairs` of partitions have the same content, at the end
        "trimmed",  # declares that retention takes from `keys`, never the last `keeps_bytes`, nor what is of `keeps_ms`
        "trim",  # whoever wants to may delete what is `below` an offset from now on
        "compacted",  # declares that `keys` are compacted; their values are (record key, value or None, unique)
        "shared",  # declares that the share group `group` delivers all of `keys`, no record more than `limit` times
        "deliver",  # … and a poll of one of its members; `asked_ns`: when the first request for it may have gone out
        "acknowledge",  # … and what a member says of records that it was given
    )
)


class MalformedHistory(ValueError):
    """The file is no history; the message names the line."""


class Send(NamedTuple):
    """offset: None where nobody was told."""

    key: str
    offset: int | None
    value: Value


class Read(NamedTuple):
    key: str
    offset: int
    value: Value


class Commit(NamedTuple):
    """An offset of a group, committed or told."""

    group: str
    key: str
    offset: int


class Delivery(NamedTuple):
    """A record that a share group gives to a member, for the `delivery_count`-th time."""

    group: str
    key: str
    offset: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """The word of a member on one delivery, `accept`, `reject` or `release`, and what the leader answered: each has an
    outcome of its own, for one operation may go to several leaders.
    """

    group: str
    key: str
    offset: int
    delivery_count: int
    kind: str
    outcome: str


ACKNOWLEDGEMENTS = frozenset(("accept", "reject", "release"))


class Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int


class Mark(NamedTuple):
    """What somebody was told of a partition: `start`, `lso` or `hw`."""

    kind: str
    key: str
    offset: int


@dataclass(slots=True, eq=False)
class Operation:
    """decided_ns: when the end of the transaction was asked for, or None where it never was.

    isolation: of its polls. is_final: a fresh reader's, from the beginning to the end, when all was quiet.
    rebalanced: partitions that came or went meanwhile.
    """

    number: int
    proc: int
    kind: str
    outcome: str
    invoked_ns: int
    completed_ns: int = NEVER_NS
    sends: list[Send] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    rebalanced: frozenset[str] = frozenset()
    isolation: str = "read_committed"
    is_final: bool = False
    decided_ns: int | None = None
    producer: Producer | None = None
    keys: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    """Everything else that its end has."""

    @property
    def is_transaction(self) -> bool:
        return self.kind == "txn"

    @property
    def is_without_effect(self) -> bool:
        return self.outcome == FAIL or (self.kind == "txn" and self.outcome == INFO and self.decided_ns is None)

    @property
    def reads_committed(self) -> bool:
        return self.isolation == "read_committed"

    def __str__(self) -> str:
        end = "?" if self.completed_ns == NEVER_NS else str(self.completed_ns)
        parts = [f"#{self.number} process {self.proc} {self.kind} {self.outcome} [{self.invoked_ns}..{end}]"]
        parts += [f"send {key}@{'?' if offset is None else offset}={value!r}" for key, offset, value in self.sends]
        parts += [f"read {key}@{offset}={value!r}" for key, offset, value in self.reads]
        parts += [f"offset of {group} {key}={offset}" for group, key, offset in self.commits]
        parts += [f"delivery {count} of {key}@{offset} by {group}" for group, key, offset, count in self.deliveries]
        parts += [
            f"{kind} {outcome} of delivery {count} of {key}@{offset} by {group}"
            for group, key, offset, count, kind, outcome in self.acknowledgements
        ]
        parts += [f"{kind} {key}={offset}" for kind, key, offset in self.marks]
        if self.producer is not None:
            parts.append(f"as {self.producer.transactional_id} {self.producer.producer_id}/{self.producer.epoch}")
        if len(parts) > 9:
            parts[8:] = [f"and {len(parts) - 8} more"]
        return "  ".join(parts)


_ATTRIBUTES = frozenset(
    (
        *("i", "proc", "type", "f", "mops", "t_ns", "rebalance", "isolation", "final", "decide_ns", "producer"),
        *("keys", "hw", "lso", "start"),
    )
)


def parse_history(lines: Iterable[str]) -> list[Operation]:
    """In the order of their beginnings. Raises MalformedHistory."""
    operations: list[Operation] = []
    under_way: dict[int, Operation] = {}
    reads: dict[Read, Read] = {}
    for line_number, line in enumerate(lines, 1):
        if line.strip():
            try:
                _take(json.loads(line), operations, under_way, reads)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise MalformedHistory(f"line {line_number}: {error!r}") from error
    return operations


def _take(
    event: dict[str, Any], operations: list[Operation], under_way: dict[int, Operation], reads: dict[Read, Read]
) -> None:
    """reads: what was read so far. A long history reads a record dozens of times, and holds it once."""
    proc, kind, step = event["proc"], event["f"], event["type"]
    if kind not in KINDS:
        raise ValueError(f"unknown operation {kind}")
    if step == "invoke":
        under_way.pop(proc, None)
        operation = Operation(len(operations), proc, kind, INFO, event["t_ns"])
        _add(operation, event, reads)
        operations.append(operation)
        under_way[proc] = operation
        return
    operation = under_way[proc]
    if operation.kind != kind:
        raise ValueError(f"{kind} ends what began as {operation.kind}")
    if step == "progress":
        _add(operation, event, reads)
        return
    if step not in (OK, FAIL, INFO):
        raise ValueError(f"unknown type {step}")
    del under_way[proc]
    operation.outcome = step
    operation.completed_ns = NEVER_NS if step == INFO else event["t_ns"]
    operation.sends, operation.reads, operation.commits = [], [], []
    operation.deliveries, operation.acknowledgements = [], []
    _add(operation, event, reads)


def _add(operation: Operation, event: dict[str, Any], reads: dict[Read, Read]) -> None:
    for mop in event.get("mops", ()):
        match mop:
            case ["send", str(key), [int() | None as offset, value]]:
                operation.sends.append(Send(key, offset, _hashable(value)))
            case ["poll"]:
                pass
            case ["poll", dict(found)]:
                for key, records in found.items():
                    found_here = [Read(key, offset, _hashable(value)) for offset, value in records]
                    operation.reads += [reads.setdefault(each, each) for each in found_here]
            case ["deliver", str(group), str(key), list(records)]:
                operation.deliveries += [Delivery(group, key, int(offset), int(count)) for offset, count in records]
            case ["acknowledge", str(group), str(key), str(kind), str(outcome), list(records)]:
                if kind not in ACKNOWLEDGEMENTS or outcome not in (OK, FAIL, INFO):
                    raise ValueError(f"unknown acknowledgement: {kind}, {outcome}")
                operation.acknowledgements += [
                    Acknowledgement(group, key, int(offset), int(count), kind, outcome) for offset, count in records
                ]
            case ["commit", str(group), dict(offsets)]:
                operation.commits += [Commit(group, key, offset) for key, offset in offsets.items()]
            case _:
                raise ValueError(f"unknown part of an operation: {mop}")
    for name in ("start", "lso", "hw"):
        operation.marks += [Mark(name, key, offset) for key, offset in event.get(name, {}).items()]
    operation.rebalanced = frozenset(event.get("rebalance", ()))
    operation.isolation = event.get("isolation", operation.isolation)
    operation.is_final = event.get("final", False)
    operation.decided_ns = event.get("decide_ns", operation.decided_ns)
    if event.get("producer") is not None:
        operation.producer = Producer(*event["producer"])
    operation.keys = tuple(event.get("keys", operation.keys))
    operation.details.update({name: value for name, value in event.items() if name not in _ATTRIBUTES})


def _hashable(value: Any) -> Value:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def format_history(operations: Iterable[Operation]) -> Iterator[str]:
    """Lines in the order of time, such as `parse_history` reads."""
    events: list[tuple[int, int, int, dict[str, Any]]] = []
    for operation in operations:
        begin = {"proc": operation.proc, "type": "invoke", "f": operation.kind, "t_ns": operation.invoked_ns}
        events.append((operation.invoked_ns, 1, operation.number, begin))
        ended_ns = operation.completed_ns
        if operation.outcome == INFO:
            # What it knows is written at once; that it has no end is what counts.
            ended_ns = operation.invoked_ns
        events.append((ended_ns, 2 if ended_ns == operation.invoked_ns else 0, operation.number, _end(operation)))
    events.sort(key=lambda event: event[:3])
    for number, (_, _, _, event) in enumerate(events):
        yield json.dumps({"i": number, **event}, separators=(",", ":"))


def _end(operation: Operation) -> dict[str, Any]:
    mops: list[Any] = [["send", key, [offset, value]] for key, offset, value in operation.sends]
    for read in operation.reads:
        mops.append(["poll", {read.key: [[read.offset, read.value]]}])
    mops += [["commit", group, {key: offset}] for group, key, offset in operation.commits]
    mops += [["deliver", group, key, [[offset, count]]] for group, key, offset, count in operation.deliveries]
    mops += [
        ["acknowledge", group, key, kind, outcome, [[offset, count]]]
        for group, key, offset, count, kind, outcome in operation.acknowledgements
    ]
    event: dict[str, Any] = {
        "proc": operation.proc,
        "type": operation.outcome,
        "f": operation.kind,
        "mops": mops,
        "t_ns": operation.completed_ns,
        **operation.details,
    }
    for mark in operation.marks:
        event.setdefault(mark.kind, {})[mark.key] = mark.offset
    optional = {
        "rebalance": sorted(operation.rebalanced),
        "isolation": operation.isolation if not operation.reads_committed else None,
        "final": operation.is_final,
        "decide_ns": operation.decided_ns,
        "producer": operation.producer,
        "keys": operation.keys,
    }
    return event | {name: value for name, value in optional.items() if value or (value == 0 and name == "decide_ns")}
