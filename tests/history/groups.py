"""Groups: a committed offset is a register, and a partition has one owner in each generation.

What OffsetFetch tells must have been written by a commit that may have been the last one: it had begun, and no other
one came for certain between it and the question. Offsets of a transaction count as its records do. -1 is none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from .findings import Anomaly
from .index import History
from .operations import NEVER_NS, Operation

Place = tuple[str, str]
"""A group and a partition."""

NO_OFFSET = -1


def check_groups(history: History) -> Iterator[Anomaly]:
    yield from _committed_offsets(history)
    yield from _owners(history)


class _Register:
    """The commits of one place."""

    def __init__(self) -> None:
        self.by_offset: dict[int, list[Operation]] = defaultdict(list)
        self.aborted: dict[int, Operation] = {}
        self._written: list[tuple[int, int, Operation]] = []
        self._completed: list[int] = []
        self._latest: list[tuple[int, Operation]] = []

    def add(self, offset: int, operation: Operation) -> None:
        if operation.is_without_effect:
            self.aborted[offset] = operation
            return
        self.by_offset[offset].append(operation)
        if operation.completed_ns != NEVER_NS and operation.outcome == "ok":
            self._written.append((operation.completed_ns, len(self._written), operation))

    def arrange(self) -> None:
        """When all are added: for each end of a commit, which of those that ended by then began last."""
        self._written.sort()
        latest: tuple[int, Operation] | None = None
        for completed_ns, _, operation in self._written:
            begun_ns = _effective_ns(operation)
            if latest is None or begun_ns > latest[0]:
                latest = begun_ns, operation
            self._completed.append(completed_ns)
            self._latest.append(latest)

    def last_before(self, time_ns: int) -> tuple[int, Operation] | None:
        """The commit that began last, of those that certainly ended before."""
        count = bisect_left(self._completed, time_ns)
        return self._latest[count - 1] if count else None


def _effective_ns(operation: Operation) -> int:
    """The earliest time at which its offsets may count."""
    return operation.invoked_ns if operation.decided_ns is None else operation.decided_ns


def _committed_offsets(history: History) -> Iterator[Anomaly]:
    registers: dict[Place, _Register] = defaultdict(_Register)
    for operation in history.operations:
        if operation.kind in ("commit", "txn"):
            for group, key, offset in operation.commits:
                registers[group, key].add(offset, operation)
    for register in registers.values():
        register.arrange()
    for operation in history.operations:
        if operation.kind == "committed" and operation.outcome == "ok":
            for group, key, offset in operation.commits:
                yield from _told(registers[group, key], (group, key), offset, operation)


def _told(register: _Register, place: Place, offset: int, reader: Operation) -> Iterator[Anomaly]:
    last = register.last_before(reader.invoked_ns)
    candidates = [
        writer for writer in register.by_offset.get(offset, ()) if _effective_ns(writer) <= reader.completed_ns
    ]
    if last is None and offset == NO_OFFSET:
        return
    if any(last is None or writer.completed_ns >= last[0] or writer is last[1] for writer in candidates):
        return
    name = f"offset {offset} of {place[0]} for {place[1]}"
    if candidates or offset == NO_OFFSET:
        assert last is not None
        witness = (*candidates[-1:], last[1], reader)
        yield Anomaly("commit-regression", f"{name} was told after another was committed", witness)
    elif offset in register.aborted:
        yield Anomaly("aborted-offset", f"{name} was told, and not committed", (register.aborted[offset], reader))
    else:
        witness = (*register.by_offset.get(offset, ())[:1], reader)
        yield Anomaly("phantom-offset", f"{name} was told before anybody committed it", witness)


def _owners(history: History) -> Iterator[Anomaly]:
    owners: dict[tuple[str, int, str], tuple[str, Operation]] = {}
    for operation in history.operations:
        if operation.kind == "own" and operation.outcome == "ok":
            group, member, epoch = (operation.details[name] for name in ("group", "member", "epoch"))
            for key in operation.keys:
                owner = owners.setdefault((group, epoch, key), (member, operation))
                if owner[0] != member:
                    message = f"{owner[0]} and {member} of {group} both own {key} in epoch {epoch}"
                    yield Anomaly("dual-owner", message, (owner[1], operation))
