"""The batches of a share partition, as a write combines them: in order, and none of them overlap.

Where two batches have an offset in common, the later delivery decides: the higher delivery count and, among equals, the
higher delivery state. Neighbours of one state and one count become one batch. The outcome is batch by batch what
Kafka's `PersisterStateBatchCombiner` makes of the same batches, which leaves some neighbours apart that it meets in an
unlucky order. Two pieces are done otherwise, so that no writer can make it slow:

- Batches that the new ones do not touch stay as they are.
- New batches that overlap each other again and again are cut at all their borders at once. Every offset has the state
  that it has in Kafka; all neighbours are joined then.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ..persister import StateBatch

NO_START_OFFSET = -1
"""The start offset stays: nothing is forgotten."""

_STEPS_PER_BATCH = 4
"""More than batches need of which few overlap."""
_STEPS_OF_FEW = 1_000
"""Some milliseconds, whatever overlaps."""

Combined: TypeAlias = tuple[StateBatch, ...]


class _Piece(NamedTuple):
    """A piece is a batch in the order in which Kafka looks at them."""

    first: int
    last: int
    deliveries: int
    state: int

    @property
    def priority(self) -> tuple[int, int]:
        return self.deliveries, self.state


def combine_batches(so_far: Combined, new: Sequence[StateBatch], start_offset: int) -> Combined:
    """Return what there is after a write of `new`.

    so_far: what an earlier call returned, or what a snapshot said. new: in any order; first_offset is not above
    last_offset. start_offset: what is below is forgotten; NO_START_OFFSET forgets nothing.
    """
    so_far, new = _from(so_far, start_offset), _from(tuple(new), start_offset)
    if len(so_far) + len(new) < 2:
        return (*so_far, *new)
    if not _is_settled(so_far):
        return _settled(_combine([*so_far, *new]))
    if not new:
        return so_far
    lowest = min(batch.first_offset for batch in new)
    highest = max(batch.last_offset for batch in new)
    low = bisect_left(so_far, lowest - 1, key=lambda batch: batch.last_offset)
    high = bisect_right(so_far, highest + 1, key=lambda batch: batch.first_offset)
    combined = _combine([*so_far[low:high], *new])
    # At the borders of what the new ones touch, states are as they were: no neighbours come together there.
    whole = (*so_far[:low], *combined, *so_far[high:])
    return _Settled(whole) if _is_settled(combined) else whole


class _Settled(tuple[StateBatch, ...]):
    """Batches that are known to be in order, and no two of them can become one: nobody has to look at all of them."""

    __slots__ = ()


def _settled(batches: Combined) -> Combined:
    return _Settled(batches) if _is_settled(batches) else batches


def _from(batches: Combined, start_offset: int) -> Combined:
    """Return the batches without what is below the start offset."""
    if start_offset == NO_START_OFFSET:
        return batches
    if isinstance(batches, _Settled):
        low = bisect_left(batches, start_offset, key=lambda batch: batch.last_offset)
        if low == len(batches):
            return ()
        if low == 0 and batches[0].first_offset >= start_offset:
            return batches
        first = batches[low]
        first = first._replace(first_offset=max(first.first_offset, start_offset))
        return _Settled((first, *batches[low + 1 :]))
    return tuple(
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    )


def _is_settled(batches: Combined) -> bool:
    """Tell whether the batches are in order, and no two of them can become one."""
    if isinstance(batches, _Settled):
        return True
    previous: StateBatch | None = None
    for batch in batches:
        if previous is not None and (
            batch.first_offset <= previous.last_offset
            or (batch.first_offset == previous.last_offset + 1 and batch[2:] == previous[2:])
        ):
            return False
        previous = batch
    return True


def _combine(batches: Sequence[StateBatch]) -> Combined:
    pieces = [
        _Piece(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state) for batch in batches
    ]
    combined = _combine_in_order(pieces)
    if combined is None:
        combined = _cut_at_borders(pieces)
    return tuple(StateBatch(piece.first, piece.last, piece.state, piece.deliveries) for piece in combined)


def _combine_in_order(pieces: Sequence[_Piece]) -> list[_Piece] | None:
    """Take the first two again and again, and put back what they make together. None where that takes too long."""
    heap = list(pieces)
    heapq.heapify(heap)
    done: list[_Piece] = []
    steps_left = max(_STEPS_PER_BATCH * len(heap), _STEPS_OF_FEW)
    previous = heapq.heappop(heap)
    while heap:
        candidate = heap[0]
        steps_left -= 1
        if steps_left < 0:
            return None
        if candidate.first > previous.last + 1 or (
            candidate.first == previous.last + 1 and candidate.priority != previous.priority
        ):
            done.append(previous)
        else:
            heapq.heappop(heap)
            for piece in _together(previous, candidate):
                heapq.heappush(heap, piece)
        previous = heapq.heappop(heap)
    return [*done, previous]


def _together(previous: _Piece, candidate: _Piece) -> list[_Piece]:
    """Return the pieces that two make which overlap, or which are neighbours of one state. previous: the earlier one in
    the order of pieces.
    """
    if candidate.priority == previous.priority:
        return [previous._replace(last=max(previous.last, candidate.last))]
    if candidate.priority < previous.priority:
        if candidate.last <= previous.last:
            return [previous]
        return [previous, candidate._replace(first=previous.last + 1)]
    pieces = [candidate]
    if previous.first < candidate.first:
        pieces.append(previous._replace(last=candidate.first - 1))
    if candidate.last < previous.last:
        pieces.append(previous._replace(first=candidate.last + 1))
    return pieces


def _cut_at_borders(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Go through all borders once, with the pieces that are open there: the one of highest priority has the offsets."""
    begins = sorted(pieces)
    borders = sorted({border for piece in pieces for border in (piece.first, piece.last + 1)})
    open_: list[tuple[int, int, int]] = []
    done: list[_Piece] = []
    at = 0
    for border, next_border in pairwise(borders):
        while at < len(begins) and begins[at].first <= border:
            heapq.heappush(open_, (-begins[at].deliveries, -begins[at].state, begins[at].last))
            at += 1
        while open_ and open_[0][2] < border:
            heapq.heappop(open_)
        if not open_:
            continue
        deliveries, state = -open_[0][0], -open_[0][1]
        if done and done[-1].last + 1 == border and done[-1].priority == (deliveries, state):
            done[-1] = done[-1]._replace(last=next_border - 1)
        else:
            done.append(_Piece(border, next_border - 1, deliveries, state))
    return done
