"""Where a log begins: no later than somebody asked for (`trim`), or the retention of its topic permits (`trimmed`).

What stands below a log start offset that somebody was told may be missing; so a log may not begin later than it must.
A partition that nobody declared to be trimmed, nor asked to be, begins at 0 for ever.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from .findings import Anomaly
from .index import History, KeyLog
from .operations import NEVER_NS, Operation


def check_trimming(history: History) -> Iterator[Anomaly]:
    declared: dict[str, Operation] = {}
    starts: dict[tuple[str, int], Operation] = {}
    for operation in history.operations:
        if operation.kind == "trimmed":
            declared.update(dict.fromkeys(operation.keys, operation))
    for operation in history.by_completion:
        for kind, key, offset in operation.marks:
            if kind == "start" and offset > history.logs[key].may_begin_at(NEVER_NS):
                starts.setdefault((key, offset), operation)
    for (key, offset), told in starts.items():
        log, retention = history.logs[key], declared.get(key)
        if retention is None:
            yield Anomaly("trimmed", f"{key} begins at {offset}, and nothing of it may be deleted", (told,))
            continue
        first = log.may_begin_at(NEVER_NS)
        if "keeps_ms" in retention.details:
            yield from _too_early(log, first, offset, retention.details["keeps_ms"] * 1_000_000, told)
        if "keeps_bytes" in retention.details:
            yield from _too_much(log, offset, retention.details["keeps_bytes"], told)


def _too_early(log: KeyLog, first: int, start: int, keeps_ns: int, told: Operation) -> Iterator[Anomaly]:
    """The latest that was written of what is gone."""
    ends = bisect_left(log.all_offsets, first), bisect_left(log.all_offsets, start)
    gone = [log.writers.get(log.seen[offset][0]) for offset in log.all_offsets[slice(*ends)]]
    latest = max((writer for writer in gone if writer is not None), key=lambda each: each.invoked_ns, default=None)
    if latest is not None and told.completed_ns != NEVER_NS and told.completed_ns - latest.invoked_ns < keeps_ns:
        message = f"{log.key} begins at {start}, and what was before was to be kept for longer"
        yield Anomaly("trimmed", message, (latest, told))


def _too_much(log: KeyLog, start: int, keeps_bytes: int, told: Operation) -> Iterator[Anomaly]:
    """All that may be behind the start is less than what was to be kept. `bytes`: the size of a send's batch."""
    behind = 0
    for writer in dict.fromkeys(log.writers.values()):
        offsets = [offset for send in writer.sends for offset in log.offsets.get(send.value, ()) if send.key == log.key]
        if writer.outcome != "fail" and (not offsets or max(offsets) >= start):
            behind += writer.details["bytes"]
    if behind < keeps_bytes:
        message = f"{log.key} begins at {start}: {behind} bytes are left of {keeps_bytes} that were to be kept"
        yield Anomaly("trimmed", message, (told,))
