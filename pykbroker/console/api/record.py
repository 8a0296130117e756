"""`GET /api/topics/{name}/records/{partition}/{offset}`: one record with all that it has, and its value as a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.client.offsets import READ_UNCOMMITTED
from pykbroker.console.endpoint import Arguments, Asking, Download
from pykbroker.console.records.content import FORMS, Content, content_of
from pykbroker.console.records.fetching import ONE_BATCH, Fetched, Reader
from pykbroker.console.records.unpacking import Whole, timestamp_type_of, whole_record
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .record_rows import check_offset_of_record
from .record_spans import spans_of

T = TypeVar("T")

SHOWN_CHARACTERS: Final = 16 * 1024
MOST_CHARACTERS: Final = 1024 * 1024
"""What "show all" shows; more than that is a download."""
MOST_HEADERS: Final = 100
_HEADER_CHARACTERS: Final = 1000
_MOST_PARTITION: Final = 2**31 - 1
_NOT_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class HeaderRow:
    name: Content
    value: Content


@dataclass(frozen=True, slots=True)
class RecordShown:
    """A record. header_count: more than `headers` shows, perhaps; the rest is of its batch."""

    partition: int
    offset: str
    timestamp: str
    timestamp_type: str
    key: Content
    value: Content
    headers: Sequence[HeaderRow]
    header_count: int
    leader_epoch: int
    compression: str
    is_transactional: bool
    producer_id: str | None
    batch_first: str
    batch_last: str
    batch_bytes: int
    most_characters: int


async def record(asking: Asking, given: Arguments) -> RecordShown:
    """Raises UnknownTopic, BadInput, KafkaError, ClientError."""
    form = given.one_of("as", FORMS, "auto")
    most = MOST_CHARACTERS if given.flag("all") else SHOWN_CHARACTERS
    at, offset = _place(given)
    return await _read(asking, at, offset, partial(_shown, at.partition, most, form))


async def download(asking: Asking, given: Arguments) -> Download:
    """Return the key or the value as it is. Raises UnknownTopic, BadInput, KafkaError, ClientError."""
    part = given.one_of("part", ("key", "value"))
    at, offset = _place(given)
    content = await _read(asking, at, offset, partial(_bytes, part))
    if content is None:
        raise BadInput(f"the {part} of this record is null: there is nothing to download")
    topic = _NOT_OF_NAMES.sub("_", at.topic)[:100]
    return Download(content, f"{topic}-{at.partition}-{offset}.{part}.bin")


def _place(given: Arguments) -> tuple[TopicPartition, int]:
    return TopicPartition(given.text("name"), given.whole("partition", most=_MOST_PARTITION)), given.whole("offset")


async def _read(asking: Asking, at: TopicPartition, offset: int, make: Callable[[Whole], T]) -> T:
    """Return what `make`, in a thread, makes of a record. Raises KafkaError where there is none with this offset."""
    topic = await spans_of(asking, at.topic, at.partition, READ_UNCOMMITTED)
    span = topic.spans[at.partition]
    check_offset_of_record(offset, at.topic, at.partition, span)

    def unpack(fetched: Fetched) -> tuple[T] | int | None:
        found = whole_record(fetched, offset)
        return (make(found),) if isinstance(found, Whole) else found

    async with asking.new_cluster() as cluster:
        found = await Reader(asking, cluster, READ_UNCOMMITTED).read(at, offset, ONE_BATCH, unpack)
    if isinstance(found, tuple):
        return found[0]
    behind = "" if found is None else f"; the one behind is {found}"
    raise KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Partition {at.partition} of {at.topic} has no record at offset {offset}: "
        f"it is compacted away, or marks the end of a transaction{behind}",
    )


def _bytes(part: str, whole: Whole) -> bytes | None:
    return whole.record.value if part == "value" else whole.record.key


def _shown(partition: int, most: int, form: str, whole: Whole) -> RecordShown:
    record, batch = whole.record, whole.batch
    return RecordShown(
        partition=partition,
        offset=str(record.offset),
        timestamp=str(record.timestamp),
        timestamp_type=timestamp_type_of(batch),
        key=content_of(record.key, most, form),
        value=content_of(record.value, most, form),
        headers=[_header(name, value, form) for name, value in record.headers[:MOST_HEADERS]],
        header_count=len(record.headers),
        leader_epoch=batch.partition_leader_epoch,
        compression=batch.compression.name.lower(),
        is_transactional=batch.is_transactional,
        producer_id=str(batch.producer_id) if batch.has_producer_id else None,
        batch_first=str(batch.base_offset),
        batch_last=str(batch.last_offset),
        batch_bytes=batch.size_bytes,
        most_characters=MOST_CHARACTERS,
    )


def _header(name: str, value: bytes | None, form: str) -> HeaderRow:
    named = content_of(name.encode(errors="replace"), _HEADER_CHARACTERS, "text")
    return HeaderRow(named, content_of(value, _HEADER_CHARACTERS, form, lays_out=False))
