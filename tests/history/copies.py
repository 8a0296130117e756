"""Exactly once: a copy has what its source has, each record once and in its order, when all is quiet.

`copy` declares which partition is whose copy. A copied value is (source's value, something unique), for whoever is
interrupted writes it again; where no sends were recorded, it may be the source's. `consume-counts` is about the same
from the other side: of one group's committed transactions one at most has read a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .findings import Anomaly
from .index import History
from .operations import Operation, Value


def check_copies(history: History) -> Iterator[Anomaly]:
    for source, target in history.copies.items():
        yield from _copy(history, source, target)
    yield from _consume_counts(history)


def _copy(history: History, source: str, target: str) -> Iterator[Anomaly]:
    wanted, copies = _final_values(history, source), _final_values(history, target)
    if wanted is None or copies is None:
        return
    found = [_original(value) for value in copies]
    counted_wanted, counted_found = Counter(wanted), Counter(found)
    for value in counted_wanted - counted_found:
        yield Anomaly("eos", f"{value!r} of {source} is missing in {target}", _who(history, source, value))
    for value in counted_found - counted_wanted:
        message = f"{target} has {value!r} {counted_found[value]} times, {source} {counted_wanted[value]} times"
        yield Anomaly("eos", message, _who(history, source, value, *_copies_of(value, copies)))
    if counted_wanted == counted_found and wanted != found:
        at = next(i for i, pair in enumerate(zip(wanted, found, strict=True)) if pair[0] != pair[1])
        message = f"record {at} of {target} is {found[at]!r}, that of {source} is {wanted[at]!r}"
        yield Anomaly("eos", message, _who(history, source, found[at], *_copies_of(found[at], copies)))


def _final_values(history: History, key: str) -> list[Value] | None:
    """What the last reader of all found; None where nobody read it to the end."""
    final = None
    for operation in history.operations:
        if operation.is_final and operation.outcome == "ok" and operation.reads_committed and key in operation.keys:
            final = [read.value for read in operation.reads if read.key == key]
    return final


def _original(copied: Value) -> Value:
    return copied[0] if isinstance(copied, tuple) else copied


def _copies_of(value: Value, copies: list[Value]) -> list[Value]:
    return [copied for copied in copies if _original(copied) == value]


def _who(history: History, source: str, value: Value, *copies: Value) -> tuple[Operation, ...]:
    writers = [history.logs[source].writers.get(value)] if source in history.logs else []
    target = history.logs.get(history.copies[source])
    writers += [target.writers.get(copied) for copied in copies] if target is not None else []
    return tuple(dict.fromkeys(writer for writer in writers if writer is not None))


def _consume_counts(history: History) -> Iterator[Anomaly]:
    consumed: dict[tuple[str, str, Value], Operation] = {}
    for operation in history.operations:
        if operation.kind != "txn" or operation.outcome != "ok" or not operation.commits:
            continue
        groups = dict.fromkeys(commit.group for commit in operation.commits)
        for key, _, value in operation.reads:
            for group in groups:
                first = consumed.setdefault((group, key, value), operation)
                if first is not operation:
                    message = f"{group} consumed {value!r} of {key} in two committed transactions"
                    name = "consume-counts" if key in history.copies else "consume-counts-unpaired"
                    yield Anomaly(name, message, (first, operation))
