"""Zombies: nothing is written with an epoch once a newer one of its transactional id was handed out.

`init` operations tell the epochs, and so do the ends of transactions where the coordinator raises it with each
(KIP-890: `next_producer`). Another producer id follows where epochs are used up; it is newer for certain if it was
asked for when the older one was known.

A producer's batches stand in the order of their sequences, whichever of its requests were answered first: `sequence` is
a producer id with its epoch, and the sequence of the first record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from .findings import Anomaly
from .index import History
from .operations import NEVER_NS, Operation, Producer


def check_producers(history: History) -> Iterator[Anomaly]:
    yield from _zombies(history)
    yield from _sequences(history)


def _zombies(history: History) -> Iterator[Anomaly]:
    known: dict[str, _Incarnations] = defaultdict(_Incarnations)
    given = [(operation, producer) for operation in history.by_completion if (producer := _given(operation))]
    for operation, producer in given:
        known[producer.transactional_id].first.setdefault(producer.producer_id, operation)
    position = 0
    for operation in history.by_invocation:
        while position < len(given) and given[position][0].completed_ns < operation.invoked_ns:
            known[given[position][1].transactional_id].hand_out(*given[position])
            position += 1
        producer = operation.producer
        if operation.kind in ("send", "txn") and operation.outcome == "ok" and producer is not None:
            newer = known[producer.transactional_id].newer_than(producer)
            if newer is not None:
                message = f"{producer} was fenced, and wrote then"
                yield Anomaly("zombie-append", message, (newer, operation))


def _sequences(history: History) -> Iterator[Anomaly]:
    batches: dict[tuple[str, int, int], list[tuple[int, int, Operation]]] = defaultdict(list)
    for operation in history.operations:
        if "sequence" in operation.details and operation.sends:
            producer_id, epoch, sequence = operation.details["sequence"]
            key, offset, _ = operation.sends[0]
            if offset is not None:
                batches[key, producer_id, epoch].append((sequence, offset, operation))
    for (key, *_), found in batches.items():
        found.sort(key=lambda batch: batch[0])
        for (_, before, first), (_, after, second) in pairwise(found):
            if after <= before:
                message = f"{key} has a producer's batch at {after} that follows the one at {before}"
                yield Anomaly("nonmonotonic-sequence", message, (first, second))


class _Incarnations:
    """The producers of one transactional id."""

    def __init__(self) -> None:
        self.first: dict[int, Operation] = {}
        """By producer id: who was told it first, now or later."""
        self._newest: dict[int, tuple[int, Operation]] = {}

    def hand_out(self, operation: Operation, producer: Producer) -> None:
        known = self._newest.get(producer.producer_id)
        if known is None or known[0] < producer.epoch:
            self._newest[producer.producer_id] = producer.epoch, operation

    def newer_than(self, producer: Producer) -> Operation | None:
        """Who was told of one that is newer for certain."""
        own = self.first.get(producer.producer_id)
        for producer_id, (epoch, operation) in self._newest.items():
            if producer_id == producer.producer_id:
                if epoch > producer.epoch:
                    return operation
            elif own is not None and own.completed_ns < self.first[producer_id].invoked_ns:
                return operation
        return None


def _given(operation: Operation) -> Producer | None:
    if operation.outcome != "ok" or operation.completed_ns == NEVER_NS:
        return None
    if operation.kind == "init":
        return operation.producer
    given = operation.details.get("next_producer")
    return None if given is None else Producer(*given)
