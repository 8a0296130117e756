"""Order: how readers go through a partition, and where a producer's own records went."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from .findings import Anomaly
from .index import History, KeyLog
from .operations import Operation, Read


def check_positions(history: History) -> Iterator[Anomaly]:
    for operations in history.by_process.values():
        yield from _Reader(history).follow(operations)
        yield from _sends_of_a_process(history, operations)


class _Reader:
    """One process's places in the partitions that it reads."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._last: dict[str, tuple[int, Operation]] = {}
        """By partition: the offset that was read last, and by which operation."""
        self._is_subscribed = False

    def follow(self, operations: Iterable[Operation]) -> Iterator[Anomaly]:
        for operation in operations:
            if operation.kind in ("assign", "subscribe", "crash"):
                self._last.clear()
                self._is_subscribed = operation.kind == "subscribe"
            elif operation.deliveries:
                continue  # what a member of a share group is given has no order, and others get what is between
            elif operation.outcome != "ok":
                # A transaction that is aborted goes back to where the group was.
                self._last.clear()
            elif operation.reads:
                yield from self._polled(operation)
            elif operation.rebalanced:
                self._forget(operation)

    def _forget(self, operation: Operation) -> None:
        for key in operation.rebalanced:
            self._last.pop(key, None)

    def _polled(self, operation: Operation) -> Iterator[Anomaly]:
        self._forget(operation)
        for read in operation.reads:
            known = self._last.get(read.key)
            if known is not None and read.key not in operation.rebalanced:
                yield from self._step(known, operation, read, is_internal=known[1] is operation)
            self._last[read.key] = (read.offset, operation)

    def _step(
        self, known: tuple[int, Operation], operation: Operation, read: Read, *, is_internal: bool
    ) -> Iterator[Anomaly]:
        last, previous = known
        prefix, suffix = ("int-", "") if is_internal else ("", "-subscribed" if self._is_subscribed else "")
        witness = (operation,) if is_internal else (previous, operation)
        if read.offset <= last:
            if self._is_subscribed and operation.kind == "poll":
                suffix = "-subscribed"  # it may begin again within one call; in a transaction it must not
            message = f"{read.key} offset {read.offset} was read after {last}"
            yield Anomaly(f"{prefix}nonmonotonic-poll{suffix}", message, witness)
        elif skipped := _between(self._history.logs[read.key], last, read.offset, operation):
            message = f"{read.key} offset {read.offset} was read after {last}: {skipped} records were skipped"
            yield Anomaly(f"{prefix}poll-skip{suffix}", message, witness)


def _between(log: KeyLog, first: int, last: int, reader: Operation) -> int:
    """How many records are between two that the reader read one after the other.

    A leader may be replaced that has deleted records and told nobody where it begins.
    """
    if last == first + 1 or log.is_compacted or first < log.largest_start:
        return 0
    begin = max(first + 1, log.may_begin_at(reader.completed_ns))
    if reader.reads_committed:
        return max(log.counted_below(last) - log.counted_below(begin), 0)
    return max(log.place_among_all[last] - bisect_left(log.all_offsets, begin), 0)


def _sends_of_a_process(history: History, operations: Iterable[Operation]) -> Iterator[Anomaly]:
    last: dict[str, tuple[int, Operation]] = {}
    for operation in operations:
        for key, offset, _ in operation.sends:
            if offset is None:
                continue
            known = last.get(key)
            if known is not None:
                is_internal = known[1] is operation
                prefix = "int-" if is_internal else ""
                witness = (operation,) if is_internal else (known[1], operation)
                if offset <= known[0]:
                    message = f"{key} offset {offset} was given after {known[0]} to the same producer"
                    yield Anomaly(f"{prefix}nonmonotonic-send", message, witness)
                elif is_internal and operation.is_transaction:
                    log = history.logs[key]
                    if log.place_among_all[offset] - log.place_among_all[known[0]] > 1:
                        message = f"others wrote to {key} between {known[0]} and {offset}"
                        yield Anomaly("send-skip", message, witness)
            last[key] = (offset, operation)
