"""A history, arranged by partition: which value is where, who wrote it, who read it.

A log is known from the sends whose offset somebody was told and from all reads, those of failed transactions too.
Offsets have gaps, for markers are invisible; the dense index of a record is its place among those that count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from .operations import Operation, Value


class KeyLog:
    """What is known of one partition."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.seen: dict[int, tuple[Value, Operation]] = {}
        """By offset: the value that was seen there first, and by whom."""
        self.conflicts: list[tuple[int, Operation, Operation]] = []
        """Two who saw different values at one offset."""
        self.offsets: dict[Value, list[int]] = {}
        self.writers: dict[Value, Operation] = {}
        self.second_writers: list[tuple[Value, Operation, Operation]] = []
        self.readers: dict[Value, list[Operation]] = {}
        self.read_committed: set[Value] = set()
        self.last_committed_read = -1
        self.largest_start = 0
        """The highest log start offset that anybody was told."""
        self.trims: list[tuple[int, int]] = []
        """When each was asked for, in nanoseconds, and below which offset."""
        self.is_compacted = False

    def saw(self, offset: int, value: Value, operation: Operation) -> None:
        known = self.seen.get(offset)
        if known is None:
            self.seen[offset] = (value, operation)
            self.offsets.setdefault(value, []).append(offset)
        elif known[0] != value:
            self.conflicts.append((offset, known[1], operation))
            offsets = self.offsets.setdefault(value, [])
            if offset not in offsets:
                offsets.append(offset)

    def wrote(self, value: Value, operation: Operation) -> None:
        first = self.writers.setdefault(value, operation)
        if first is not operation:
            self.second_writers.append((value, first, operation))

    def read(self, offset: int, value: Value, operation: Operation) -> None:
        self.saw(offset, value, operation)
        readers = self.readers.setdefault(value, [])
        if not readers or readers[-1] is not operation:
            readers.append(operation)
        if operation.reads_committed:
            self.read_committed.add(value)
            self.last_committed_read = max(self.last_committed_read, offset)

    def counts(self, value: Value) -> bool:
        """Whether the record certainly is there for readers of committed records."""
        writer = self.writers.get(value)
        if writer is None or writer.is_without_effect:
            return False
        if writer.outcome == "ok":
            return True
        return value in (self.read_committed if writer.is_transaction else self.readers)

    @cached_property
    def all_offsets(self) -> list[int]:
        return sorted(self.seen)

    @cached_property
    def order(self) -> list[Value]:
        """The values that count, in the order of their first offsets."""
        return [self.seen[offset][0] for offset in self.counted_offsets]

    @cached_property
    def counted_offsets(self) -> list[int]:
        found = []
        for offset in self.all_offsets:
            value = self.seen[offset][0]
            if self.counts(value) and min(self.offsets[value]) == offset:
                found.append(offset)
        return found

    @cached_property
    def place(self) -> dict[Value, int]:
        """The dense index of each value that counts."""
        return {value: index for index, value in enumerate(self.order)}

    @cached_property
    def place_of_offset(self) -> dict[int, int]:
        return {offset: index for index, offset in enumerate(self.counted_offsets)}

    @cached_property
    def place_among_all(self) -> dict[int, int]:
        return {offset: index for index, offset in enumerate(self.all_offsets)}

    def has_any_from(self, offset: int) -> bool:
        return bool(self.seen) and self.all_offsets[-1] >= offset

    def may_begin_at(self, ns: int) -> int:
        """The largest offset below which somebody had asked to delete by then, whoever was told where it begins."""
        return max((below for asked_ns, below in self.trims if asked_ns <= ns), default=0)

    def counted_below(self, offset: int) -> int:
        """How many records that count have lower offsets."""
        return bisect_left(self.counted_offsets, offset)


class History:
    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.logs: dict[str, KeyLog] = {}
        self.copies: dict[str, str] = {}
        """Declared: which partition has at the end what another one has."""
        self.healed_ns: int | None = None
        logs = self.logs
        for operation in operations:
            for key, offset, value in operation.sends:
                log = logs.get(key) or self._new_log(key)
                log.wrote(value, operation)
                if offset is not None:
                    log.saw(offset, value, operation)
            for key, offset, value in operation.reads:
                (logs.get(key) or self._new_log(key)).read(offset, value, operation)
            for kind, key, offset in operation.marks:
                if kind == "start":
                    log = logs.get(key) or self._new_log(key)
                    log.largest_start = max(log.largest_start, offset)
            if operation.kind == "trim":
                for key, offset in operation.details["below"].items():
                    (logs.get(key) or self._new_log(key)).trims.append((operation.invoked_ns, offset))
            if operation.kind == "heal":
                self.healed_ns = operation.completed_ns
            elif operation.kind == "copy":
                self.copies.update(operation.details["pairs"])
            elif operation.kind == "compacted":
                for key in operation.keys:
                    (logs.get(key) or self._new_log(key)).is_compacted = True

    def _new_log(self, key: str) -> KeyLog:
        log = self.logs[key] = KeyLog(key)
        return log

    @cached_property
    def by_invocation(self) -> list[Operation]:
        return sorted(self.operations, key=lambda operation: (operation.invoked_ns, operation.number))

    @cached_property
    def by_completion(self) -> list[Operation]:
        return sorted(self.operations, key=lambda operation: (operation.completed_ns, operation.number))

    @cached_property
    def by_process(self) -> dict[int, list[Operation]]:
        found: dict[int, list[Operation]] = defaultdict(list)
        for operation in self.by_invocation:
            found[operation.proc].append(operation)
        return found

    def took_effect(self, operation: Operation) -> bool:
        """ok, or nobody knows but some of it was read."""
        if operation.outcome == "ok":
            return True
        return not operation.is_without_effect and any(
            send.value in self.logs[send.key].readers for send in operation.sends
        )
