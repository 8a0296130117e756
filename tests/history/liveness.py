"""Whether all goes on: after `heal` each partition is written and read, each group commits, share groups have records
accepted, and readers keep up.
"""

from __future__ import annotations

from collections.abc import Iterator

from .findings import Anomaly
from .index import History, KeyLog
from .operations import NEVER_NS, Operation

LONGEST_SILENCE_NS = 30_000_000_000
LONGEST_LAG_NS = 10_000_000_000


def check_liveness(history: History, figures: dict[str, int]) -> Iterator[Anomaly]:
    if history.healed_ns is not None:
        yield from _stuck(history, history.healed_ns)
    yield from _lag(history, figures)


def _stuck(history: History, healed_ns: int) -> Iterator[Anomaly]:
    """In time: a write, a read and a commit that began after all was healed. Of a log whose records are all deleted
    there is none to read: a reader that was told so has read it.
    """
    written: set[str] = set()
    read: set[str] = set()
    groups: dict[str, None] = {}
    committing: set[str] = set()
    heal = next(operation for operation in history.operations if operation.kind == "heal")
    shared: dict[str, None] = {}
    accepting: set[str] = set()
    for operation in history.operations:
        if operation.kind in ("commit", "txn"):
            groups.update(dict.fromkeys(commit.group for commit in operation.commits))
        if operation.kind == "shared":
            shared[operation.details["group"]] = None
        is_in_time = operation.completed_ns <= healed_ns + LONGEST_SILENCE_NS
        if operation.outcome != "ok" or operation.invoked_ns < healed_ns or not is_in_time:
            continue
        written.update(send.key for send in operation.sends)
        accepting.update(each.group for each in operation.acknowledgements if each.outcome == "ok")
        if not operation.deliveries:
            read.update(found.key for found in operation.reads)
        if operation.kind == "poll":
            starts = {key: offset for kind, key, offset in operation.marks if kind == "start"}
            read.update(key for key, start in starts.items() if not history.logs[key].has_any_from(start))
        if operation.kind in ("commit", "txn"):
            committing.update(commit.group for commit in operation.commits)
    for key in history.logs:
        if key not in written:
            yield Anomaly("stuck", f"nobody wrote to {key} for 30 s after all was healed", (heal,))
        if key not in read:
            yield Anomaly("stuck", f"nobody read from {key} for 30 s after all was healed", (heal,))
    for group in groups:
        if group not in committing:
            yield Anomaly("stuck", f"{group} committed nothing for 30 s after all was healed", (heal,))
    for group in shared:
        if group not in accepting:
            yield Anomaly("stuck", f"{group} had nothing accepted for 30 s after all was healed", (heal,))


def _lag(history: History, figures: dict[str, int]) -> Iterator[Anomaly]:
    """How long a record was there for a reader when a poll that was due to see it came back without it.

    A reader that begins late has all that was written before to catch up with: its time counts from its beginning.
    """
    existed = {key: _existed_ns(log) for key, log in history.logs.items()}
    largest_ns = 0
    for operations in history.by_process.values():
        last: dict[str, int] = {}
        is_assigned, began_ns = False, 0
        for operation in operations:
            if operation.kind in ("assign", "subscribe", "crash"):
                last.clear()
                is_assigned, began_ns = operation.kind == "assign", operation.completed_ns
            elif operation.kind != "poll" or operation.outcome != "ok" or not operation.reads_committed:
                continue
            last.update((read.key, read.offset) for read in operation.reads)
            if not is_assigned:
                continue
            for key, offset in last.items():
                log = history.logs[key]
                place = log.counted_below(offset + 1)
                if place < len(log.order) and existed[key][place] < operation.invoked_ns and not log.is_compacted:
                    lag_ns = operation.invoked_ns - max(existed[key][place], began_ns)
                    largest_ns = max(largest_ns, lag_ns)
                    if _is_too_late(history, operation, lag_ns):
                        message = f"{key} was read up to {offset}, what follows was there for {lag_ns // 10**6} ms"
                        yield Anomaly("realtime-lag", message, (operation,))
    figures["realtime-lag-ms"] = largest_ns // 1_000_000


def _is_too_late(history: History, operation: Operation, lag_ns: int) -> bool:
    """All was healed for so long already."""
    if history.healed_ns is None:
        return False
    return lag_ns > LONGEST_LAG_NS and operation.invoked_ns - history.healed_ns > LONGEST_LAG_NS


def _existed_ns(log: KeyLog) -> list[int]:
    """By place: when somebody knew of this record or of one behind it."""
    times = []
    for value in log.order:
        writer = log.writers[value]
        times.append(min([writer.completed_ns, *(reader.completed_ns for reader in log.readers.get(value, ())[:3])]))
    earliest = NEVER_NS
    for place in range(len(times) - 1, -1, -1):
        earliest = times[place] = min(earliest, times[place])
    return times
