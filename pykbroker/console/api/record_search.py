"""`GET /api/topics/{name}/records/search`: the records with a key, looked for from the oldest on, as live events.

A search reads partition by partition up to the ends that they have when it begins. It ends at bounds of time, bytes
and hits, says where, and can go on from there. Half of the time it rests: the broker has other clients.

Events: `found` with rows, `progress`, and one `done` with the reason and the place to go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from pykbroker.client.errors import BadInput, ClientError
from pykbroker.client.spans import Span
from pykbroker.console.endpoint import Arguments, Asking, Events
from pykbroker.console.failures import name_of
from pykbroker.console.records.content import bytes_of_hex
from pykbroker.console.records.cursor import cursor_text, parse_cursor
from pykbroker.console.records.fetching import PIECE_BYTES, Reader
from pykbroker.console.records.unpacking import Part, entries_of
from pykbroker.protocol.topic_partition import TopicPartition

from .record_rows import bounded_spans, isolation_asked, partition_asked, row_of
from .record_spans import spans_of

LONGEST_S: Final = 60.0
MOST_BYTES: Final = 2 * 1024 * 1024 * 1024
MOST_FOUND: Final = 200
_LONGEST_KEY: Final = 10_000
_PROGRESS_EVERY_S: Final = 0.25
_LONGEST_REST_S: Final = 1.0


@dataclass(slots=True)
class _Search:
    """The state of a search. ends_s: by trio's clock; offsets: to look at in all."""

    ends_s: float
    offsets: int
    passed: int = 0
    looked_at: int = 0
    size_bytes: int = 0
    found: int = 0
    partitions: int = 0
    told_s: float = 0.0
    errors: dict[int, str] = field(default_factory=dict)

    def bound(self) -> str | None:
        """Return the name of the bound that is reached."""
        if self.found >= MOST_FOUND:
            return "found"
        if self.size_bytes >= MOST_BYTES:
            return "bytes"
        return "time" if trio.current_time() >= self.ends_s else None

    def told(self) -> Mapping[str, object]:
        return {
            "offsets": self.offsets,
            "passed": self.passed,
            "looked_at": self.looked_at,
            "size_bytes": self.size_bytes,
            "found": self.found,
            "partitions": self.partitions,
        }


async def search(asking: Asking, given: Arguments, events: Events) -> None:
    """Raises UnknownTopic, BadInput, KafkaError, ClientError."""
    name, key, isolation_level = given.text("name"), _key(given), isolation_asked(given)
    topic = await spans_of(asking, name, partition_asked(given), isolation_level)
    spans = _from_cursor(given, await bounded_spans(asking, given, name, topic, isolation_level))
    state = _Search(trio.current_time() + LONGEST_S, sum(span.end - span.first for span in spans.values()))
    state.errors.update(topic.errors)
    await events.send("progress", state.told())
    rest = [(partition, span) for partition, span in spans.items() if span.first < span.end]
    async with asking.new_cluster() as cluster:
        reader = Reader(asking, cluster, isolation_level)
        for partition, span in rest:
            at = TopicPartition(name, partition)
            try:
                stopped = await _look_through(reader, at, span, key, state, events)
            except ClientError as error:
                state.errors[partition] = name_of(error)
                continue
            state.partitions += 1
            if stopped is not None:
                reason, offset = stopped
                after = cursor_text({partition: offset})
                await events.send("done", {**state.told(), "reason": reason, "after": after, "errors": state.errors})
                return
    await events.send("done", {**state.told(), "reason": "end", "after": None, "errors": state.errors})


async def _look_through(
    reader: Reader, at: TopicPartition, span: Span, key: bytes, state: _Search, events: Events
) -> tuple[str, int] | None:
    """Look at one partition, and return the bound that stopped it with the next offset; None at its end."""
    position = span.first
    while position < span.end:
        reason = state.bound()
        if reason is not None:
            return reason, position
        began_s = trio.current_time()
        part = Part(at.partition, position, span.end, MOST_FOUND - state.found)
        piece = await reader.read(at, position, PIECE_BYTES, partial(entries_of, part=part, key=key))
        took_s = trio.current_time() - began_s
        state.passed += piece.next_offset - position
        state.looked_at += piece.looked_at
        state.size_bytes += piece.size_bytes
        hits = [each for each in piece.entries if each.problem is None]
        state.found += len(hits)
        if hits:
            await events.send("found", [row_of(each) for each in hits])
        if piece.next_offset == position:
            return None
        position = piece.next_offset
        if trio.current_time() >= state.told_s + _PROGRESS_EVERY_S:
            state.told_s = trio.current_time()
            await events.send("progress", state.told())
        await trio.sleep(min(took_s, _LONGEST_REST_S))
    return None


def _key(given: Arguments) -> bytes:
    text = given.text("key", longest=_LONGEST_KEY)
    if given.one_of("key_kind", ("text", "hex"), "text") == "text":
        return text.encode()
    try:
        return bytes_of_hex(text)
    except ValueError:
        raise BadInput("the key is not hex: pairs of 0-9 and a-f, such as 00 ff 1a") from None


def _from_cursor(given: Arguments, spans: Mapping[int, Span]) -> dict[int, Span]:
    """Leave out what a search before this one has looked through: the partitions before the cursor's one."""
    text = given.text("after", "")
    if not text:
        return dict(spans)
    ((first, offset), *_) = sorted(parse_cursor(text, "after").items())
    return {
        partition: Span(span.inside(offset), span.end) if partition == first else span
        for partition, span in spans.items()
        if partition >= first
    }
