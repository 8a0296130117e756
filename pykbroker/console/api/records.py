"""`GET /api/topics/{name}/records`: a page of records, newest or oldest first, of one partition or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import UnknownTopic
from pykbroker.client.spans import Span
from pykbroker.console.endpoint import Arguments, Asking, Json
from pykbroker.console.records.cursor import LONGEST, MOST_PARTITIONS, cursor_text, parse_cursor
from pykbroker.console.records.fetching import Reader
from pykbroker.console.records.paging import read_page

from .record_rows import bounded_spans, isolation_asked, partition_asked, row_of
from .record_spans import spans_of

DEFAULT_SIZE: Final = 50
MOST_SIZE: Final = 200
NEWEST, OLDEST = "newest", "oldest"


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """A page of records. older, newer: cursors for the pages beside it, None where there is nothing; partitions: of the
    topic; left_out: partitions with records beyond the bound of a page; is_short: reading ended at its bounds;
    first, end: offsets of the one partition that was asked for.
    """

    rows: Sequence[Json]
    older: str | None
    newer: str | None
    partitions: int
    left_out: int
    errors: Mapping[int, str]
    is_short: bool
    first: str | None
    end: str | None


async def records(asking: Asking, given: Arguments) -> RecordsPage:
    """Raises UnknownTopic, BadInput, KafkaError, ClientError."""
    name, partition, isolation_level = given.text("name"), partition_asked(given), isolation_asked(given)
    order = given.one_of("order", (NEWEST, OLDEST), NEWEST)
    size = given.whole("size", DEFAULT_SIZE, least=1, most=MOST_SIZE)
    is_backwards, cursor = _cursor(given, order)
    topic = await spans_of(asking, name, partition, isolation_level)
    spans = await bounded_spans(asking, given, name, topic, isolation_level)
    edges, left_out = _edges(name, spans, cursor, is_backwards=is_backwards)
    async with asking.new_cluster() as cluster:
        await cluster.topic(name)  # once, for all partitions that are read at the same time
        reader = Reader(asking, cluster, isolation_level)
        page = await read_page(reader, name, spans, edges, size, backwards=is_backwards)
    is_upside_down = is_backwards != (order == NEWEST)
    entries = reversed(page.entries) if is_upside_down else page.entries
    own = topic.spans.get(partition) if partition is not None else None
    return RecordsPage(
        rows=[row_of(each) for each in entries],
        older=_further(page.low, {at: span.first for at, span in spans.items()}),
        newer=_further(page.high, {at: span.end for at, span in spans.items()}),
        partitions=topic.total,
        left_out=left_out,
        errors={**topic.errors, **page.errors},
        is_short=page.is_short,
        first=None if own is None else str(own.first),
        end=None if own is None else str(own.end),
    )


def _cursor(given: Arguments, order: str) -> tuple[bool, dict[int, int] | None]:
    """Return whether the page is read backwards, and from where; None for the beginning."""
    for name, is_backwards in (("before", True), ("after", False)):
        text = given.text(name, "", longest=LONGEST)
        if text:
            return is_backwards, parse_cursor(text, name)
    return order == NEWEST, None


def _edges(
    name: str, spans: Mapping[int, Span], cursor: Mapping[int, int] | None, *, is_backwards: bool
) -> tuple[dict[int, int], int]:
    """Return where the page begins in each of its partitions, and how many partitions with records it leaves out."""
    if cursor is not None:
        unknown = [each for each in cursor if each not in spans]
        if len(unknown) == len(cursor):
            raise UnknownTopic(f"Topic '{name}' has no partition {unknown[0]} with a leader")
        return {each: spans[each].inside(offset) for each, offset in cursor.items() if each in spans}, 0
    full = [each for each, span in spans.items() if span.first < span.end] or list(spans)[:1]
    chosen = full[:MOST_PARTITIONS]
    return {each: spans[each].end if is_backwards else spans[each].first for each in chosen}, len(full) - len(chosen)


def _further(edge: Mapping[int, int], ends: Mapping[int, int]) -> str | None:
    return cursor_text(edge) if any(ends[each] != offset for each, offset in edge.items()) else None
