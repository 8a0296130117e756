"""Dead letters: records that a share group rejected, or got too often, in a topic of their own (KIP-1191).

A letter has headers that say which record it is about, in which group, and why; key and value of the record where the
group wants copies, and its own time. Letters of a partition go to the partition of the dead letter topic with the same
number, modulo how many that has. The rules are those of Kafka's `ShareGroupDLQStateManager` and
`ShareGroupDLQRecordFetcher`; when letters are written, and again, is said in `server.sharing.dead_letter_queues`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pykbroker.config.dead_letters import DeadLetterSettings
from pykbroker.protocol.records.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD_BYTES,
    Record,
    RecordBatch,
    assemble_batch,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import Header
from pykbroker.protocol.records.varints import encode_zigzag

from .partition.values import DeadLetters

TOPIC: Final = "__dlq.errors.topic"
PARTITION: Final = "__dlq.errors.partition"
OFFSET: Final = "__dlq.errors.offset"
GROUP: Final = "__dlq.errors.group"
DELIVERY_COUNT: Final = "__dlq.errors.delivery.count"
MESSAGE: Final = "__dlq.errors.message"

MOST_LETTERS: Final = 100
"""Of one batch: a millisecond's work."""

MOST_FAILURES: Final = 5
"""In a row; what was there before the first of them is given up then."""
_FIRST_BACKOFF_MS: Final = 1000
_MOST_BACKOFF_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Source:
    """The share partition whose records the letters are about. topic: its name, or its id as text where it has none."""

    topic: str
    partition: int
    group_id: str


def backoff_ms(failures: int) -> int:
    """Return how long to wait behind so many failures in a row."""
    return int(min(_FIRST_BACKOFF_MS << max(failures - 1, 0), _MOST_BACKOFF_MS))


def refusal(settings: DeadLetterSettings, group_id: str, *, is_there: bool, is_enabled: bool) -> str | None:
    """Return why letters of the group cannot be written, in Kafka's words; None where they can.

    is_there: the topic exists. is_enabled: it is one for dead letters.
    """
    topic = settings.topic
    if not topic:
        return f"Configured DLQ topic name in share group: {group_id} is empty."
    if topic.startswith("__"):
        return f"Configured DLQ topic name in share group: {group_id} cannot start with __, topic: {topic}."
    if is_there and not is_enabled:
        return f"DLQ is not enabled on configured DLQ topic for share group: {group_id}, topic: {topic}."
    if not is_there and not settings.creates_topic:
        return (
            f"DLQ topic does not exist and auto create is disabled on cluster for share group: {group_id}, "
            f"topic: {topic}."
        )
    if not topic.startswith(settings.prefix):
        return (
            f"Configured DLQ topic name does not comply with the DLQ topic prefix in share group: {group_id}, "
            f"topic: {topic}, prefix: {settings.prefix}."
        )
    return None


def headers(source: Source, offset: int, letters: DeadLetters) -> list[Header]:
    """Return the headers of one letter."""
    texts = (
        (TOPIC, source.topic),
        (PARTITION, str(source.partition)),
        (OFFSET, str(offset)),
        (GROUP, source.group_id),
        (DELIVERY_COUNT, str(letters.delivery_count)),
        (MESSAGE, letters.cause.value),
    )
    return [(name, text.encode()) for name, text in texts]


# Copies of records


@dataclass(slots=True)
class Copies:
    """The copies of some records. of: key and value by the record's offset.

    until: everything below it was looked for; what has no copy is not there, or too large.
    """

    until: int
    of: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)


def find_copies(data: bytes, wanted: Iterable[DeadLetters], limit_bytes: int) -> Copies:
    """Copy the wanted records, a few, out of batches that lie in a log; the first one has the first wanted record, and
    the last one may be cut off. It may run in a thread.

    limit_bytes: of what is copied together, and of what one batch is decompressed to. A batch that has more, or is
    damaged, has no copies.
    """
    offsets = {offset for first, last, *_ in wanted for offset in range(first, last + 1)}
    copies = Copies(min(offsets))
    left = limit_bytes
    try:
        for batch in iter_batches(data, allow_partial=True):
            if copies.until > max(offsets):
                break
            for record in () if batch.header.is_control else _records(batch, limit_bytes):
                if record.offset not in offsets:
                    continue
                size = len(record.key or b"") + len(record.value or b"")
                if size > left and size <= limit_bytes:
                    copies.until = max(copies.until, record.offset)
                    return copies
                if size <= left:
                    copies.of[record.offset] = record.key, record.value
                    left -= size
            copies.until = max(copies.until, batch.header.next_offset)
    except InvalidRecords:
        copies.until = max(offsets) + 1  # nobody can read what follows
    return copies


def _records(batch: RecordBatch, limit_bytes: int) -> Iterator[Record]:
    """Iterate over the records, up to one that makes no sense: those are no producer's."""
    try:
        yield from iter_records(batch, limit_bytes=limit_bytes)
    except InvalidRecords:
        return


# Batches of letters


@dataclass(slots=True)
class LetterBatch:
    """A batch of letters. covered: which of the letters it has, entry by entry; of the last one perhaps a part."""

    records: bytes
    covered: list[DeadLetters]


class _Form:
    """The bytes that all letters of a range share: an encoder of each with its headers would take ten times as long."""

    def __init__(self, source: Source, letters: DeadLetters) -> None:
        found = headers(source, letters.first_offset, letters)
        number = next(number for number, (name, _) in enumerate(found) if name == OFFSET)
        before = b"".join(_encoded(name.encode()) + _encoded(text) for name, text in found[:number])
        self._before = encode_zigzag(len(found)) + before + _encoded(OFFSET.encode())
        self._behind = b"".join(_encoded(name.encode()) + _encoded(text) for name, text in found[number + 1 :])

    def letter(self, offset: int, offset_delta: int, key: bytes | None, value: bytes | None) -> bytes:
        """Return a record of format 2. Its time is that of its batch."""
        of_offset = _encoded(str(offset).encode())
        record = b"".join(
            (
                _NO_FLAGS,
                encode_zigzag(offset_delta),
                _encoded(key),
                _encoded(value),
                self._before,
                of_offset,
                self._behind,
            )
        )
        return encode_zigzag(len(record)) + record


_NO_FLAGS: Final = b"\x00\x00"
"""The attributes of a record, and a difference of no time."""
_NULL: Final = encode_zigzag(-1)


def _encoded(data: bytes | None) -> bytes:
    return _NULL if data is None else encode_zigzag(len(data)) + data


def first_letters(letters: Iterable[DeadLetters], most: int = MOST_LETTERS) -> list[DeadLetters]:
    """Return the letters in front, `most` of them."""
    found: list[DeadLetters] = []
    for each in letters:
        if most <= 0:
            break
        last = min(each.last_offset, each.first_offset + most - 1)
        found.append(each._replace(last_offset=last))
        most -= last - each.first_offset + 1
    return found


def encode_letters(
    source: Source, letters: Iterable[DeadLetters], copies: Copies | None, now_ms: int, limit_bytes: int
) -> LetterBatch:
    """Encode letters from the first one on: as many as the batch has room for, one at least.

    copies: letters of what was not looked for wait, unless nothing was. limit_bytes: the topic's `max.message.bytes`. A
    letter that has no room with its copy has none.
    """
    encoded: list[bytes] = []
    covered: list[DeadLetters] = []
    room = limit_bytes - RECORD_BATCH_OVERHEAD_BYTES
    for each in letters:
        form = _Form(source, each)
        for offset in range(each.first_offset, each.last_offset + 1):
            is_first = not encoded
            if copies is not None and offset >= copies.until and not is_first:
                return _assembled(encoded, covered, now_ms)
            key, value = (None, None) if copies is None else copies.of.get(offset, (None, None))
            record = form.letter(offset, len(encoded), key, value)
            if len(record) > room and is_first:
                record = form.letter(offset, 0, None, None)
            elif len(record) > room:
                return _assembled(encoded, covered, now_ms)
            room -= len(record)
            encoded.append(record)
            if offset == each.first_offset:
                covered.append(each)
            covered[-1] = each._replace(last_offset=offset)
    return _assembled(encoded, covered, now_ms)


def _assembled(encoded: list[bytes], covered: list[DeadLetters], now_ms: int) -> LetterBatch:
    records = assemble_batch(
        b"".join(encoded),
        base_offset=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        attributes=0,
        last_offset_delta=len(encoded) - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=len(encoded),
    )
    return LetterBatch(records, covered)
