"""Records as rows of JSON, and what all pages of records ask for: partition, places, isolation.

Offsets and timestamps have 64 bits, which the numbers of a browser do not hold: they are texts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from pykbroker.client.errors import KafkaError
from pykbroker.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from pykbroker.client.places import Anchor
from pykbroker.client.spans import Span
from pykbroker.console.endpoint import Arguments, Asking, Json
from pykbroker.console.records.places import offsets_of as offsets_of_place
from pykbroker.console.records.places import parse_place
from pykbroker.console.records.unpacking import Entry
from pykbroker.protocol.errors import ErrorCode

from .record_spans import TopicSpans, offsets_at

_MOST_PARTITION: Final = 2**31 - 1


def row_of(entry: Entry) -> Json:
    return {
        "partition": entry.partition,
        "offset": str(entry.offset),
        "timestamp": str(entry.timestamp),
        "timestamp_type": entry.timestamp_type,
        "key": entry.key,
        "value": entry.value,
        "headers": entry.headers,
        "problem": entry.problem,
    }


def partition_asked(given: Arguments) -> int | None:
    """Return the partition that a request names, None for all of them. Raises BadInput."""
    if given.text("partition", "") in ("", "all"):
        return None
    return given.whole("partition", most=_MOST_PARTITION)


def isolation_asked(given: Arguments) -> int:
    return READ_COMMITTED if given.flag("committed") else READ_UNCOMMITTED


async def bounded_spans(
    asking: Asking, given: Arguments, name: str, topic: TopicSpans, isolation_level: int
) -> dict[int, Span]:
    """Return the spans between the places `from` and `to`. Raises BadInput; KafkaError for an offset that no partition
    has.
    """
    lows = await _offsets(asking, given, "from", name, topic, isolation_level)
    highs = await _offsets(asking, given, "to", name, topic, isolation_level)
    return await asking.threads.run(_between, topic.spans, lows, highs)


def _between(spans: Mapping[int, Span], lows: Mapping[int, int], highs: Mapping[int, int]) -> dict[int, Span]:
    found: dict[int, Span] = {}
    for partition, span in spans.items():
        low = lows.get(partition, span.first)
        found[partition] = Span(low, max(low, highs.get(partition, span.end)))
    return found


async def _offsets(
    asking: Asking, given: Arguments, which: str, name: str, topic: TopicSpans, isolation_level: int
) -> Mapping[int, int]:
    text = given.text(which, "", longest=100).strip()
    if not text:
        return {}
    place = parse_place(text, which, time.time_ns() // 1_000_000)
    if place.anchor is Anchor.TIME:
        return await offsets_at(asking, topic, place.number, isolation_level)
    if place.anchor is Anchor.OFFSET and topic.spans:
        _check_offset(place.number, name, topic.spans)
    return offsets_of_place(place, topic.spans)


def _check_offset(offset: int, name: str, spans: Mapping[int, Span]) -> None:
    if any(span.first <= offset <= span.end for span in spans.values()):
        return
    if len(spans) == 1:
        ((partition, span),) = spans.items()
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"Partition {partition} of {name} has {_told(span)}, not {offset}"
        )
    least, most = min(span.first for span in spans.values()), max(span.end for span in spans.values())
    told = _told(Span(least, most))
    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"The partitions of {name} have {told}, and none has {offset}")


def _told(span: Span) -> str:
    if span.first >= span.end:
        return f"no records (its next offset is {span.end})"
    return f"offsets {span.first} to {span.end - 1}"


def check_offset_of_record(offset: int, name: str, partition: int, span: Span) -> None:
    """Raises KafkaError for an offset that the partition does not have."""
    if not span.first <= offset < span.end:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"Partition {partition} of {name} has {_told(span)}, not {offset}"
        )
