"""Places in a history where something can be broken, and the list of what breaks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

from ..index import History
from ..model_broker import COMPACTED, TRIMMED
from ..operations import NEVER_NS, OK, Operation, Read, Send, Value

T = TypeVar("T")

Operations = list[Operation]
Mutation = Callable[[Operations, Random], Operations | None]

MUTATIONS: dict[str, list[Mutation]] = {}
"""By the name of the anomaly."""

SECOND_NS = 1_000_000_000


def plants(name: str) -> Callable[[Mutation], Mutation]:
    def register(mutation: Mutation) -> Mutation:
        MUTATIONS.setdefault(name, []).append(mutation)
        return mutation

    return register


def chosen(rng: Random, candidates: Sequence[T]) -> T | None:
    return rng.choice(candidates) if candidates else None


def committed_polls(operations: Operations) -> Operations:
    return [each for each in operations if each.kind == "poll" and each.reads_committed and each.outcome == OK]


def committed_sends(operations: Operations, *, in_transaction: bool | None = None) -> Iterator[tuple[Operation, Send]]:
    for operation in operations:
        if operation.outcome == OK and in_transaction in (None, operation.is_transaction):
            for send in operation.sends:
                if send.key not in (COMPACTED, TRIMMED):
                    yield operation, send


def transactions(operations: Operations, outcome: str = OK) -> Operations:
    return [each for each in operations if each.is_transaction and each.outcome == outcome and each.sends]


def own_transactions(operations: Operations) -> Operations:
    """Not those that copy."""
    return [each for each in transactions(operations) if not each.commits]


def forget(operations: Operations, key: str, value: Value, *, isolation: str | None = None) -> None:
    """Nobody read it."""
    for operation in operations:
        if isolation in (None, operation.isolation):
            operation.reads = [read for read in operation.reads if (read.key, read.value) != (key, value)]


def end_ns(operations: Operations) -> int:
    return max(each.completed_ns for each in operations if each.completed_ns != NEVER_NS)


def append(operations: Operations, kind: str, proc: int = 9_999, **attributes: object) -> Operation:
    """Another operation at the end."""
    begin = end_ns(operations) + 1
    operation = Operation(len(operations), proc, kind, OK, begin, begin + 1)
    for name, value in attributes.items():
        setattr(operation, name, value)
    operations.append(operation)
    return operation


def later_reads(operations: Operations, key: str, value: Value) -> bool:
    """Whether committed readers are beyond it."""
    log = History(operations).logs[key]
    place = log.place.get(value)
    return place is not None and any(later in log.read_committed for later in log.order[place + 1 :])


def final_read(operations: Operations, key: str) -> Operation:
    return next(each for each in operations if each.is_final and each.reads_committed and each.keys == (key,))


def as_read(send: Send) -> Read:
    assert send.offset is not None
    return Read(*send)
