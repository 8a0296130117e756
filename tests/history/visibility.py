"""Who sees what: nothing of what was aborted or is undecided, everything of what was committed."""

from __future__ import annotations

from collections.abc import Iterator

from .findings import Anomaly
from .index import History, KeyLog
from .operations import NEVER_NS, Operation, Value
from .values import describe


def check_visibility(history: History) -> Iterator[Anomaly]:
    for log in history.logs.values():
        yield from _aborted_reads(log)
        yield from _reads_before_the_decision(log)
        yield from _lost_writes(history, log)
    for operation in history.operations:
        if operation.is_transaction:
            yield from _precommitted_reads(operation)
            yield from _torn(history, operation)
        if operation.reads and operation.reads_committed and operation.marks:
            yield from _reads_above_the_lso(operation)
    yield from _unseen(history)


def _aborted_reads(log: KeyLog) -> Iterator[Anomaly]:
    for value, readers in log.readers.items():
        writer = log.writers.get(value)
        if writer is None or not writer.is_without_effect:
            continue
        for reader in readers:
            # Others may see records that are aborted, but never any that were not taken at all.
            if reader is not writer and (reader.reads_committed or not writer.is_transaction):
                yield Anomaly("G1a", f"{describe(log, value)} was read, and is not committed", (writer, reader))
                break


def _precommitted_reads(operation: Operation) -> Iterator[Anomaly]:
    if operation.reads and operation.sends and operation.reads_committed:
        own = {(key, value) for key, _, value in operation.sends}
        for key, _, value in operation.reads:
            if (key, value) in own:
                yield Anomaly("precommitted-read", f"a transaction reads its own {value!r} from {key}", (operation,))
                return


def _reads_before_the_decision(log: KeyLog) -> Iterator[Anomaly]:
    for value in log.read_committed:
        writer = log.writers.get(value)
        if writer is None or not writer.is_transaction or writer.decided_ns is None:
            continue
        for reader in log.readers[value]:
            if reader.completed_ns < writer.decided_ns and reader.reads_committed and reader is not writer:
                message = f"{describe(log, value)} was read while its transaction was open"
                yield Anomaly("lso-breach", message, (writer, reader))
                break


def _reads_above_the_lso(operation: Operation) -> Iterator[Anomaly]:
    bounds = {mark.key: mark.offset for mark in operation.marks if mark.kind == "lso"}
    for key, offset, _ in operation.reads:
        if offset >= bounds.get(key, NEVER_NS):
            message = f"{key} offset {offset} was read, the last stable offset is {bounds[key]}"
            yield Anomaly("lso-breach", message, (operation,))
            return


def _must_be_read(log: KeyLog, read: set[Value]) -> list[Value]:
    """Of the records that count, those before one that somebody read."""
    if log.is_compacted:
        return []
    bound = max((log.place[value] for value in read if value in log.place), default=-1)
    if bound < 0:
        return []
    last_offset = log.counted_offsets[bound]
    return [
        value
        for value in log.order[:bound]
        if min(log.offsets[value]) >= log.largest_start and max(log.offsets[value]) <= last_offset
    ]


def _lost_writes(history: History, log: KeyLog) -> Iterator[Anomaly]:
    for read in (log.read_committed, set(log.readers)):
        for value in _must_be_read(log, read):
            writer = log.writers[value]
            if value not in read and history.took_effect(writer):
                message = f"{describe(log, value)} was never read, and later ones were"
                yield Anomaly("lost-write", message, (writer, _reader_beyond(log, value)))


def _reader_beyond(log: KeyLog, value: Value) -> Operation:
    own = log.place[value]
    return next(log.readers[later][0] for later in log.order[own + 1 :] if later in log.readers)


def _torn(history: History, operation: Operation) -> Iterator[Anomaly]:
    """Of one transaction some records are there for readers of committed records and others are not."""
    seen, missing = None, None
    for send in operation.sends:
        log = history.logs[send.key]
        if send.value in log.read_committed:
            seen = log.readers[send.value][0]
        elif send.value not in log.read_committed and _is_passed(log, send.value):
            missing = send
    if seen is not None and missing is not None:
        message = f"{missing.value!r} in {missing.key} is missing, others of its transaction are there"
        yield Anomaly("torn-txn", message, (operation, seen))


def _is_passed(log: KeyLog, value: Value) -> bool:
    """Readers of committed records are beyond its offset."""
    offsets = log.offsets.get(value)
    if offsets is None or log.is_compacted or min(offsets) < log.largest_start:
        return False
    return max(offsets) < log.last_committed_read


def _unseen(history: History) -> Iterator[Anomaly]:
    final: dict[str, set[Value]] = {}
    for operation in history.operations:
        if operation.is_final and operation.reads_committed:
            for key in operation.keys:
                final.setdefault(key, set())
            for key, _, value in operation.reads:
                final.setdefault(key, set()).add(value)
    for key, found in final.items():
        log = history.logs.get(key)
        if log is None or log.is_compacted:
            continue
        for value, writer in log.writers.items():
            if writer.outcome != "ok" or value in found:
                continue
            if min(log.offsets.get(value, [NEVER_NS])) >= log.largest_start:
                message = f"{describe(log, value)} is acknowledged, and not there at the end"
                yield Anomaly("unseen", message, (writer,))
