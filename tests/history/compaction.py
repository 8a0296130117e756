"""Compaction: the last value of each key stays, in its place; a tombstone goes after `delete.retention.ms` at first.

Values of compacted partitions are (record key, value or None for a tombstone, something unique).
"""

from __future__ import annotations

from collections.abc import Iterator

from .findings import Anomaly
from .index import History, KeyLog
from .operations import INFO, Operation, Read, Value


def check_compaction(history: History) -> Iterator[Anomaly]:
    retention_ns: dict[str, int] = {}
    for operation in history.operations:
        if operation.kind == "compacted":
            for key in operation.keys:
                retention_ns[key] = operation.details.get("delete_retention_ms", 86_400_000) * 1_000_000
    for operation in history.operations:
        if operation.is_final and operation.outcome == "ok" and operation.reads_committed:
            for key in operation.keys:
                if key in retention_ns:
                    yield from _final_read(history.logs[key], operation, retention_ns[key])


def _final_read(log: KeyLog, reader: Operation, retention_ns: int) -> Iterator[Anomaly]:
    reads = [read for read in reader.reads if read.key == log.key]
    found = {read.value for read in reads}
    latest: dict[Value, tuple[int, Value]] = {}
    for offset, value in zip(log.counted_offsets, log.order, strict=True):
        latest[value[0]] = offset, value
    for record_key, (offset, value) in latest.items():
        if value in found:
            continue
        writer = log.writers[value]
        if writer.outcome != "ok":
            continue
        if value[1] is not None:
            if _may_be_deleted(log, reader, record_key, offset, retention_ns):
                continue
            message = f"the last value of {record_key!r} in {log.key}, {value[1]!r} at {offset}, is gone"
            yield Anomaly("compaction", message, (writer, reader))
        elif reader.completed_ns - writer.invoked_ns < retention_ns:
            yield Anomaly("compaction", f"the tombstone of {record_key!r} in {log.key} went early", (writer, reader))
        else:
            yield from _came_back(log, reader, reads, record_key, writer)


def _may_be_deleted(log: KeyLog, reader: Operation, record_key: Value, offset: int, retention_ns: int) -> bool:
    """Whether a tombstone of the key that nobody knows the end of may stand behind the offset, and be gone itself.

    Any other value that is committed there would be what the reader found.
    """
    return any(
        value[0] == record_key
        and value[1] is None
        and writer.outcome == INFO
        and not writer.is_without_effect
        and reader.completed_ns - writer.invoked_ns >= retention_ns
        and max(log.offsets.get(value, (offset + 1,))) > offset
        for value, writer in log.writers.items()
    )


def _came_back(
    log: KeyLog, reader: Operation, reads: list[Read], record_key: Value, tombstone: Operation
) -> Iterator[Anomaly]:
    for read in reads:
        if read.value[0] == record_key:
            message = f"{record_key!r} in {log.key} was deleted, and has {read.value[1]!r} again"
            yield Anomaly("compaction", message, (tombstone, reader))
            return
