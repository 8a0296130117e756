"""The run of `pykbroker consume`: what the flags ask for, read from the cluster and printed."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.consumer import MAX_WAIT_MS, Consumer
from pykbroker.client.errors import UnknownTopic
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.client.group_consumer import HEARTBEAT_INTERVAL_MS, open_group_consumer
from pykbroker.client.membership import SESSION_TIMEOUT_MS
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pykbroker.client.places import Anchor, Place
from pykbroker.client.spans import Span
from pykbroker.client.topics import list_topics
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, key_values, run
from .connect import open_cluster, read_client_properties, suggesting_topics, whole_number
from .consume_flags import ConsumeFlags
from .interrupt import run_until_signal
from .line_reader import InvalidLine
from .output import say_at_once, stdout_is_terminal, warn
from .printable import printable
from .record_format import RecordFormat
from .records.bounded import BoundedRead
from .records.codec_options import CodecOptions
from .records.codecs import TEXT, Codec
from .records.envelope import EnvelopeFormat
from .records.failing import FailingPartitions
from .records.filters import Test, document_fulfils, has_header, kept, key_matches, value_matches
from .records.places import offsets_at, spans_of
from .records.printer import Printer, Watched, terminal_safe
from .records.progress import progress_to
from .topic_filter import topic_filter

if TYPE_CHECKING:
    from pykbroker.client.share_consumer import ShareConsumer

RECORDS_PER_WRITE = 5_000
Poll = Callable[[int], Awaitable[list[ConsumedRecord]]]


def _never_ends() -> bool:
    return False


@dataclass(slots=True)
class Reading:
    """An open read. is_group: what was polled is committed, so no record may be polled that is not printed.

    done: is told of records that went through the printer, and which of them it left out, since they cannot be printed.
    """

    poll: Poll
    is_finished: Callable[[], bool] = _never_ends
    advance: Callable[[], None] = field(default=lambda: None)
    is_group: bool = False
    done: Callable[[Sequence[ConsumedRecord], Sequence[ConsumedRecord]], None] = field(
        default=lambda printed, left: None
    )


def consume(flags: ConsumeFlags) -> None:
    """Raises CommandFailed, or SystemExit with the exit code of the command."""
    is_terminal = stdout_is_terminal() if sys.stdout is not None else False
    key, value = _codecs(flags, is_terminal)
    tests = _tests(flags, value)
    printer = _printer(flags, key, value, is_terminal)
    if sys.stdout is None:
        raise CommandFailed("Standard output is closed")

    async def read() -> None:
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                open_cluster(flags.bootstrap_server, flags.properties, client_id=_client_id(flags))
            )
            async with suggesting_topics(cluster):
                reading = await _open(stack, cluster, flags)
            batches = await stack.enter_async_context(aclosing(_batches(reading, flags, tests)))
            async for records in batches:
                before = printer.printed
                left_out: list[ConsumedRecord] = []
                try:
                    left_out = await printer.print(records)
                except CommandFailed:
                    reading.done(records[: printer.printed - before], ())
                    raise
                reading.done(records, left_out)
                reading.advance()

    exit_code = run(run_until_signal, read)
    total = f"Processed a total of {printer.printed} messages"
    if exit_code:
        say_at_once(total)
    else:
        click.echo(total, err=True)
    if flags.enable_systest_events:
        click.echo("shutdown_complete")
    if exit_code or (flags.strict and printer.has_complained):
        raise SystemExit(exit_code or 1)


def _client_id(flags: ConsumeFlags) -> str:
    return "console-share-consumer" if flags.share else "console-consumer"


# ---- what is printed


def _codecs(flags: ConsumeFlags, is_terminal: bool) -> tuple[Codec, Codec]:
    key = CodecOptions("key", flags.key_format, flags.key_schema, flags.key_message)
    value = CodecOptions("value", flags.value_format, flags.value_schema, flags.value_message)
    return key.codec(), value.codec(is_pretty=is_terminal and not flags.as_json)


def _tests(flags: ConsumeFlags, value: Codec) -> list[Test]:
    tests = [] if flags.key is None else [key_matches(flags.key)]
    tests += [] if flags.grep is None else [value_matches(flags.grep)]
    tests += [has_header(each) for each in flags.headers]
    return tests if flags.where is None else [*tests, document_fulfils(flags.where, value)]


def _printer(flags: ConsumeFlags, key: Codec, value: Codec, is_terminal: bool) -> Printer:
    watched = {side: Watched(codec, side) for side, codec in (("key", key), ("value", value)) if codec is not TEXT}
    if flags.as_json:
        make_line = EnvelopeFormat(watched.get("key", key), watched.get("value", value)).line
    else:
        make_line = _record_format(flags, {f"{side}.deserializer": each.shown for side, each in watched.items()}).line
    return Printer(
        (lambda record: terminal_safe(make_line(record), is_json=flags.as_json)) if is_terminal else make_line,
        watched=tuple(watched.values()),
        skips_on_error=flags.skip_message_on_error or flags.reject_message_on_error,
        is_abandoned=flags.group_id is None,
    )


def _record_format(flags: ConsumeFlags, codecs: dict[str, Callable[[bytes], bytes]]) -> RecordFormat:
    named = {"key.deserializer": flags.key_deserializer, "value.deserializer": flags.value_deserializer}
    properties = {
        **read_client_properties(flags.formatter_config),
        **{name: value for name, value in named.items() if value is not None},
        **key_values(flags.formatter_properties, "--formatter-property"),
    }
    for name in codecs:
        if name in properties:
            raise CommandFailed(f"The property {name} cannot be given with a format or schema")
    if "key.deserializer" in codecs:
        properties.setdefault("print.key", "true")
    try:
        return RecordFormat.from_properties(properties, codecs)
    except InvalidLine as error:
        raise CommandFailed(str(error)) from None


# ---- what is read


async def _open(stack: AsyncExitStack, cluster: Cluster, flags: ConsumeFlags) -> Reading:
    topics = await _topics(cluster, flags)
    reset_to = EARLIEST_TIMESTAMP if flags.resets_to_earliest else LATEST_TIMESTAMP
    max_wait_ms = MAX_WAIT_MS if flags.timeout_ms is None else min(MAX_WAIT_MS, flags.timeout_ms)
    if flags.share:
        return await _open_share(stack, cluster, flags, topics, max_wait_ms)
    if flags.group_id is not None:
        member = await stack.enter_async_context(
            open_group_consumer(
                cluster,
                flags.group_id,
                topics,
                reset_to=reset_to,
                isolation_level=flags.isolation,
                max_wait_ms=max_wait_ms,
                heartbeat_interval_ms=whole_number(flags.properties, "heartbeat.interval.ms", HEARTBEAT_INTERVAL_MS),
                session_timeout_ms=whole_number(flags.properties, "session.timeout.ms", SESSION_TIMEOUT_MS),
            )
        )
        return Reading(member.poll, is_group=True)
    consumer = Consumer(
        cluster,
        isolation_level=flags.isolation,
        reset_to=reset_to,
        resets_to_nearest=flags.is_bounded,
        max_wait_ms=max_wait_ms,
    )
    partitions = await _partitions(cluster, topics, flags.partitions)
    if flags.is_bounded:
        return await _open_bounded(stack, cluster, consumer, partitions, flags)
    if flags.start.anchor is Anchor.OFFSET:
        consumer.assign(dict.fromkeys(partitions, flags.start.number))
    else:
        await consumer.assign_at(dict.fromkeys(partitions, reset_to))
    return Reading(consumer.poll)


async def _open_share(
    stack: AsyncExitStack, cluster: Cluster, flags: ConsumeFlags, topics: Sequence[str], max_wait_ms: int
) -> Reading:
    """Read as a member of a share group. Records are acknowledged once they are printed."""
    from pykbroker.client.share_acknowledgements import AcknowledgeType
    from pykbroker.client.share_consumer import AcquireMode, open_share_consumer

    assert flags.group_id is not None
    opened: list[ShareConsumer] = []

    def tell() -> None:
        for of, why in sorted((of, why) for each in opened for of, why in each.refused.items()):
            say_at_once(f"WARN: {printable(str(of))}: records may be delivered again: {printable(why)}")

    stack.callback(tell)  # behind the end of the consumer, which acknowledges once more
    consumer = await stack.enter_async_context(
        open_share_consumer(
            cluster, flags.group_id, topics, acquire_mode=AcquireMode.RECORD_LIMIT, max_wait_ms=max_wait_ms
        )
    )
    opened.append(consumer)
    kind = AcknowledgeType.ACCEPT
    if flags.reject or flags.release:
        kind = AcknowledgeType.REJECT if flags.reject else AcknowledgeType.RELEASE
    refused = AcknowledgeType.REJECT if flags.reject_message_on_error else kind

    def done(records: Sequence[ConsumedRecord], left_out: Sequence[ConsumedRecord]) -> None:
        consumer.acknowledge(left_out, refused)
        consumer.acknowledge(records, kind)  # those that are acknowledged already stay as they are

    return Reading(consumer.poll, is_group=True, done=done)


async def _open_bounded(
    stack: AsyncExitStack,
    cluster: Cluster,
    consumer: Consumer,
    partitions: Sequence[TopicPartition],
    flags: ConsumeFlags,
) -> Reading:
    """Read from a place, or up to one."""
    failing = FailingPartitions(cluster, flags.isolation)
    async with failing.watched(partitions):
        spans = await spans_of(cluster, partitions, flags.isolation)
        starts = await offsets_at(cluster, flags.start, spans, flags.isolation)
    _warn_of_starts(flags.start, starts, spans)
    consumer.assign({of: spans[of].inside(offset) for of, offset in starts.items()})
    if not flags.has_end:
        return Reading(consumer.poll)
    ends = {of: span.end for of, span in spans.items()}
    if flags.stop is not None:
        stops = await offsets_at(cluster, flags.stop, spans, flags.isolation)
        ends = {of: min(stops[of], ends[of]) if flags.exit_at_end else stops[of] for of in stops}
    is_of_now = flags.exit_at_end or (flags.stop is not None and flags.stop.anchor is not Anchor.OFFSET)
    read = BoundedRead(consumer, ends, failing=failing, is_of_now=is_of_now)
    advance = stack.enter_context(progress_to(read.offsets_in_all, "offsets"))
    reading = Reading(read.poll, lambda: read.is_finished)
    if advance is not None:
        reading.advance = lambda: advance(read.offsets_read)
    return reading


def _warn_of_starts(place: Place, starts: dict[TopicPartition, int], spans: dict[TopicPartition, Span]) -> None:
    """One line, whatever the number of partitions that do not have the offset which was asked for."""
    outside = [of for of, offset in starts.items() if spans[of].inside(offset) != offset]
    if place.anchor is Anchor.OFFSET and outside:
        of = min(outside)
        more = f", nor have {len(outside) - 1} more partitions" if len(outside) > 1 else ""
        warn(f"{of} has no offset {place.number}, its offsets are {spans[of].first} to {spans[of].end}{more}")


async def _partitions(cluster: Cluster, topics: Sequence[str], wanted: tuple[int, ...] | None) -> list[TopicPartition]:
    """Raises UnknownTopic for a partition that the topic does not have."""
    found = []
    for name in topics:
        numbers = (await cluster.topic(name)).partitions
        for number in wanted or ():
            if number not in numbers:
                raise UnknownTopic(f"Topic '{name}' has no partition {number}")
        found += [TopicPartition(name, number) for number in (numbers if wanted is None else wanted)]
    return found


async def _topics(cluster: Cluster, flags: ConsumeFlags) -> list[str]:
    if flags.topic is not None:
        await cluster.topic(flags.topic)
        return [flags.topic]
    matches = topic_filter(flags.include)
    names = [topic.name for topic in await list_topics(cluster) if matches(topic.name) and not topic.is_internal]
    if not names:
        raise CommandFailed(f"No topic matches '{flags.include}'")
    return names


async def _batches(
    reading: Reading, flags: ConsumeFlags, tests: Sequence[Test]
) -> AsyncGenerator[list[ConsumedRecord], None]:
    """Records to print; ends after so many of them, at their end, or when none came for so long.

    The time is counted once the first poll is back.
    """
    left = flags.max_messages
    deadline: float | None = None
    while left and not reading.is_finished():
        exact = left > 0 and (reading.is_group or not tests)
        records = await reading.poll(min(left, RECORDS_PER_WRITE) if exact else RECORDS_PER_WRITE)
        shown = records
        if records and flags.where is not None:  # which may take long, and nothing else waits for it
            shown = await trio.to_thread.run_sync(kept, records, tests, abandon_on_cancel=not reading.is_group)
        elif tests:
            shown = kept(records, tests)
        if left > 0:
            shown = shown[:left]
            left -= len(shown)
        if records:
            yield shown
        if flags.timeout_ms is not None and (records or deadline is None):
            deadline = trio.current_time() + flags.timeout_ms / 1000
        elif deadline is not None and trio.current_time() >= deadline:
            return
