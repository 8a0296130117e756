"""What stands in a log: one value at one offset, each value once, and nothing that nobody wrote."""

from __future__ import annotations

from collections.abc import Iterator

from .findings import Anomaly
from .index import History, KeyLog
from .operations import Operation, Value


def check_values(history: History) -> Iterator[Anomaly]:
    for log in history.logs.values():
        yield from _inconsistent_offsets(log)
        yield from _duplicates(log)
        yield from _phantoms(log)


def _inconsistent_offsets(log: KeyLog) -> Iterator[Anomaly]:
    for offset, first, second in log.conflicts:
        witness = (first,) if first is second else (first, second)
        yield Anomaly("inconsistent-offsets", f"{log.key} has two values at offset {offset}", witness)


def _duplicates(log: KeyLog) -> Iterator[Anomaly]:
    for value, offsets in log.offsets.items():
        if len(offsets) > 1:
            places = " and ".join(map(str, sorted(offsets)))
            seen = [log.seen[offset][1] for offset in offsets if log.seen[offset][0] == value]
            yield Anomaly("duplicate", f"{log.key} has {value!r} at {places}", _unique(seen))


def _phantoms(log: KeyLog) -> Iterator[Anomaly]:
    for value, readers in log.readers.items():
        if value not in log.writers:
            yield Anomaly("phantom", f"nobody wrote {value!r} to {log.key}", (readers[0],))
    for value, first, second in log.second_writers:
        yield Anomaly("phantom", f"two wrote {value!r} to {log.key}: values must be unique", (first, second))


def _unique(operations: list[Operation]) -> tuple[Operation, ...]:
    return tuple(dict.fromkeys(operations))


def describe(log: KeyLog, value: Value) -> str:
    return f"{value!r} in {log.key} at {', '.join(map(str, log.offsets.get(value, ['?'])))}"
