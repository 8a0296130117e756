"""Records that were handed out together, and in which state each of them is; Kafka's `InFlightBatch`, `InFlightState`.

A batch is what a member got in one piece. As long as all of its records have one state it is whole, and is handed out
and acknowledged as a whole; the rules for a whole batch and for single records differ a little, and clients see that in
errors and in how acquired records are cut. Kafka keeps an object for each offset of a batch that is not whole. Here
consecutive offsets in one state are a run, however many they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from .values import NOBODY, Change, RecordState

_last = attrgetter("last")
_first = attrgetter("first")


class Run:
    """Consecutive offsets in one state.

    member: who has acquired them. deadline_ms: until when, and for records in transition what it is if they go back.
    change: the transition that is being persisted; None where the state is settled.
    """

    __slots__ = ("change", "deadline_ms", "delivery_count", "first", "last", "member", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        member: str = NOBODY,
        deadline_ms: int = 0,
        change: Change | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member = member
        self.deadline_ms = deadline_ms
        self.change = change

    def __repr__(self) -> str:
        transition = "" if self.change is None else " in transition"
        return f"<{self.first}-{self.last} {self.state.name} x{self.delivery_count} {self.member}{transition}>"

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.change is None

    @property
    def is_terminal(self) -> bool:
        return self.state is RecordState.ACKNOWLEDGED or self.state is RecordState.ARCHIVED

    def is_like(self, other: Run) -> bool:
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member == other.member
            and self.deadline_ms == other.deadline_ms
            and self.change is other.change
        )

    def _part(self, first: int, last: int) -> Run:
        return Run(first, last, self.state, self.delivery_count, self.member, self.deadline_ms, self.change)


class InFlightBatch:
    """One batch: its offsets, whole or in runs. Behind the share partition's start, runs may be gone."""

    __slots__ = ("first", "is_split", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]
        self.is_split = False

    def __repr__(self) -> str:
        return f"<{self.first}-{self.last}{' split' if self.is_split else ''} {self.runs}>"

    @property
    def whole(self) -> Run:
        """The one run of a batch that is not split."""
        assert not self.is_split
        return self.runs[0]

    def lies_within(self, first: int, last: int) -> bool:
        return self.first >= first and self.last <= last

    def holds_inside(self, offset: int) -> bool:
        """Tell whether the offset is one of the batch's, and not its first."""
        return self.first < offset <= self.last

    def within(self, first: int, last: int) -> Iterator[tuple[Run, int, int]]:
        """Each run that has offsets of this range, with the first and the last of them. No run may be cut meanwhile."""
        runs = self.runs
        begin = 0 if first <= self.first else bisect_right(runs, first - 1, key=_last)
        for number in range(begin, len(runs)):
            run = runs[number]
            if run.first > last:
                return
            yield run, max(run.first, first), min(run.last, last)

    def cut(self, first: int, last: int) -> list[Run]:
        """Return runs that have the offsets of this range, and no others: to be changed, and then `joined`."""
        runs = self.runs
        begin = self.boundary(first)
        end = self.boundary(last + 1)
        return runs[begin:end]

    def boundary(self, offset: int) -> int:
        """Return the number of the run that begins at the offset, or behind it; one that goes across is cut there."""
        runs = self.runs
        number = bisect_right(runs, offset - 1, key=_last)
        if number < len(runs) and runs[number].first < offset:
            run = runs[number]
            runs.insert(number + 1, run._part(offset, run.last))
            run.last = offset - 1
            number += 1
        return number

    def join(self, first: int, last: int) -> None:
        """Make one run of neighbours that are alike, around and within this range, where something has changed."""
        runs = self.runs
        begin = max(bisect_right(runs, first, key=_first) - 2, 0)
        end = min(bisect_right(runs, last, key=_first) + 1, len(runs))
        kept: list[Run] = []
        for run in runs[begin:end]:
            before = kept[-1] if kept else None
            if before is not None and before.last + 1 == run.first and before.is_like(run):
                before.last = run.last
            else:
                kept.append(run)
        if len(kept) < end - begin:
            runs[begin:end] = kept

    def forget_until(self, offset: int) -> None:
        """Forget the runs in front that are settled for ever and below the offset; one is left at least."""
        runs = self.runs
        gone = 0
        while gone < len(runs) - 1 and runs[gone].last < offset and runs[gone].is_terminal and not runs[gone].change:
            gone += 1
        del runs[:gone]
