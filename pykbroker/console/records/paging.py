"""A page of records of one partition, or of several in the order of their timestamps, and the edges of the page.

A page is read from edges on, an offset in each partition: forwards to younger records, or backwards to older ones. What
it covers lies between two edges, so that the pages beside it begin where it ends, whatever comes meanwhile. A log can
only be read forwards: the way back takes windows of offsets, smaller ones where records are large, and larger ones
where compaction or transactions have left holes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from pykbroker.client.errors import ClientError
from pykbroker.client.spans import Span
from pykbroker.console.failures import name_of
from pykbroker.protocol.topic_partition import TopicPartition

from .fetching import PIECE_BYTES, Reader
from .unpacking import Entry, Part, entries_of

MOST_BYTES: Final = 128 * 1024 * 1024
"""Of what is fetched for one page."""
LONGEST_S: Final = 8.0
_WINDOW_BYTES: Final = 4 * 1024 * 1024
_AT_ONCE: Final = 8
_MOST_WINDOW: Final = 1_000_000


@dataclass(slots=True)
class Budget:
    """The bytes and the time that reading may still take. ends_s: by trio's clock."""

    bytes_left: int
    ends_s: float

    @property
    def is_over(self) -> bool:
        return self.bytes_left <= 0 or trio.current_time() >= self.ends_s


@dataclass(frozen=True, slots=True)
class PageOfRecords:
    """A page. low, high: its edges. errors: Kafka's names by partition; is_short: reading ended at its bounds."""

    entries: list[Entry]
    low: Mapping[int, int]
    high: Mapping[int, int]
    errors: Mapping[int, str]
    is_short: bool


@dataclass(slots=True)
class _Run:
    """One partition's part of a page. ready: entries in the order of the page; position: where they were read up to."""

    at: TopicPartition
    span: Span
    position: int
    window: int
    ready: deque[Entry] = field(default_factory=deque)
    error: ClientError | None = None


async def read_page(
    reader: Reader, topic: str, spans: Mapping[int, Span], edges: Mapping[int, int], size: int, *, backwards: bool
) -> PageOfRecords:
    """Return the records behind the edges, or before them, of the partitions that have edges. Entries stand in the
    order in which they were read. Raises what a partition fails with where it is the only one.
    """
    budget = Budget(MOST_BYTES, trio.current_time() + LONGEST_S)
    share = max(8, min(size, 4 * size // max(1, len(edges))))
    runs = [
        _Run(TopicPartition(topic, partition), spans[partition], spans[partition].inside(edge), share)
        for partition, edge in edges.items()
    ]
    fill = partial(_fill_backwards if backwards else _fill_forwards, reader, budget, share)
    entries = await _merge(runs, size, budget, fill, backwards=backwards)
    if len(runs) == 1 and runs[0].error is not None:
        raise runs[0].error
    begun = {partition: spans[partition].inside(edge) for partition, edge in edges.items()}
    ended = {run.at.partition: _edge(run, backwards=backwards) for run in runs}
    return PageOfRecords(
        entries=entries,
        low=ended if backwards else begun,
        high=begun if backwards else ended,
        errors={run.at.partition: name_of(run.error) for run in runs if run.error is not None},
        is_short=len(entries) < size and any(_has_more(run, backwards=backwards) for run in runs),
    )


Fill = Callable[[_Run], Awaitable[None]]


async def _merge(runs: list[_Run], size: int, budget: Budget, fill: Fill, *, backwards: bool) -> list[Entry]:
    """Return the first entries of all runs in the order of the page."""
    heads: list[tuple[int, int, int]] = []
    entries: list[Entry] = []
    hungry = list(range(len(runs)))
    while len(entries) < size:
        if hungry:
            await _fill_all([runs[index] for index in hungry], budget, fill, backwards=backwards)
            for index in hungry:
                _push(heads, runs[index], index, backwards=backwards)
            hungry = []
        if not heads:
            break
        index = heapq.heappop(heads)[2]
        entries.append(runs[index].ready.popleft())
        if runs[index].ready:
            _push(heads, runs[index], index, backwards=backwards)
        elif not budget.is_over and _has_more(runs[index], backwards=backwards):
            hungry.append(index)
    return entries


def _push(heads: list[tuple[int, int, int]], run: _Run, index: int, *, backwards: bool) -> None:
    if run.ready:
        sign = -1 if backwards else 1
        heapq.heappush(heads, (sign * run.ready[0].timestamp, sign * run.at.partition, index))


async def _fill_all(runs: list[_Run], budget: Budget, fill: Fill, *, backwards: bool) -> None:
    at_once = trio.Semaphore(_AT_ONCE)

    async def fill_one(run: _Run) -> None:
        async with at_once:
            try:
                while not run.ready and not budget.is_over and _has_more(run, backwards=backwards):
                    await fill(run)
            except ClientError as error:
                run.error = error

    async with trio.open_nursery() as nursery:
        for run in runs:
            nursery.start_soon(fill_one, run)


def _has_more(run: _Run, *, backwards: bool) -> bool:
    if run.error is not None:
        return False
    return bool(run.ready) or (run.position > run.span.first if backwards else run.position < run.span.end)


def _edge(run: _Run, *, backwards: bool) -> int:
    """Return where the neighbour of the page begins."""
    if not run.ready:
        return run.position
    return run.ready[0].next_offset if backwards else run.ready[0].offset


async def _fill_forwards(reader: Reader, budget: Budget, share: int, run: _Run) -> None:
    part = Part(run.at.partition, run.position, run.span.end, share)
    piece = await reader.read(run.at, run.position, PIECE_BYTES, partial(entries_of, part=part))
    budget.bytes_left -= piece.size_bytes
    run.ready.extend(piece.entries)
    if piece.next_offset == run.position and not piece.entries:  # the end that a reader gets has moved
        run.span = Span(run.span.first, run.position)
    run.position = piece.next_offset


async def _fill_backwards(reader: Reader, budget: Budget, share: int, run: _Run) -> None:
    """Read one window that ends at the position; a smaller one where that takes too many bytes."""
    while True:
        start = max(run.span.first, run.position - run.window)
        entries = await _window(reader, budget, 4 * share, run, start)
        if entries is not None:
            break
        run.window = 1 if budget.is_over else max(1, (run.position - start) // 8)
    if not entries:
        run.window = min(_MOST_WINDOW, 4 * run.window)
    run.ready.extend(reversed(entries))
    run.position = start


async def _window(reader: Reader, budget: Budget, most: int, run: _Run, start: int) -> list[Entry] | None:
    """Return the entries from `start` to the position; None where they are too many, or take too many bytes."""
    entries: list[Entry] = []
    position, read_bytes = start, 0
    while position < run.position:
        is_too_much = len(entries) >= most or read_bytes > _WINDOW_BYTES or budget.is_over
        if is_too_much and run.position - start > 1:
            return None
        part = Part(run.at.partition, position, run.position, most)
        piece = await reader.read(run.at, position, PIECE_BYTES, partial(entries_of, part=part))
        budget.bytes_left -= piece.size_bytes
        read_bytes += piece.size_bytes
        entries += piece.entries
        if piece.next_offset == position:
            break
        position = piece.next_offset
    return entries
