"""`pykbroker consume`: records of a topic to standard output, with the flags of `kafka-console-consumer`.

Without `--group` the partitions are read directly and nothing is committed, where Kafka's tool joins a group of its
own that nobody else is in. A topic that does not exist is an error here; Kafka's tool waits for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.consumer import MAX_WAIT_MS, Consumer
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.client.group_consumer import HEARTBEAT_INTERVAL_MS, open_group_consumer
from pykbroker.client.membership import SESSION_TIMEOUT_MS
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED, READ_UNCOMMITTED
from pykbroker.client.topics import list_topics
from pykbroker.protocol.topic_partition import TopicPartition

from .command import ClientCommand, CommandFailed, bootstrap_options, key_values, run
from .connect import open_cluster, read_client_properties, whole_number
from .interrupt import run_until_signal
from .line_reader import InvalidLine
from .output import warn
from .record_format import RecordFormat
from .topic_filter import topic_filter

RECORDS_PER_WRITE = 5_000
ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
RESETS = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}
Poll = Callable[[int], Awaitable[list[ConsumedRecord]]]


@dataclass(frozen=True, slots=True)
class Request:
    """The request asks what to read. `start` is a timestamp of ListOffsets, `offset` an explicit one in `partition`."""

    topic: str | None
    include: str | None
    partition: int | None
    offset: int | None
    start: int
    group: str | None
    isolation_level: int
    max_wait_ms: int
    heartbeat_interval_ms: int
    session_timeout_ms: int


@click.command("consume", cls=ClientCommand)
@bootstrap_options
@click.option("--topic", metavar="NAME", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="Read every topic whose whole name matches.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Read this partition only.")
@click.option("--offset", metavar="OFFSET", help="With --partition: a number, earliest, or latest (the default).")
@click.option("--from-beginning", is_flag=True, help="Start at the earliest record, where the group has no offset.")
@click.option("--max-messages", type=click.IntRange(min=-1), default=-1, metavar="N", help="End after N records.")
@click.option("--timeout-ms", type=click.IntRange(min=0), metavar="MS", help="End when nothing came for so long.")
@click.option("--group", metavar="NAME", help="Share the topic with the group's members, and commit offsets.")
@click.option(
    "--formatter-property",
    "--property",
    "formatter_properties",
    multiple=True,
    metavar="K=V",
    help="print.timestamp, print.partition, print.offset, print.epoch, print.headers, print.key, print.value, "
    "key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer.",
)
@click.option("--formatter-config", type=click.Path(path_type=Path), metavar="FILE", help="The same in a file.")
@click.option("--key-deserializer", metavar="CLASS", help="Name of one of Kafka's deserializers.")
@click.option("--value-deserializer", metavar="CLASS", help="Name of one of Kafka's deserializers.")
@click.option(
    "--command-property",
    "--consumer-property",
    "consumer_properties",
    multiple=True,
    metavar="K=V",
    help="group.id, auto.offset.reset, isolation.level, heartbeat.interval.ms, session.timeout.ms, client.id.",
)
@click.option("--isolation-level", type=click.Choice(list(ISOLATION_LEVELS)), help="Default: read_uncommitted.")
@click.option("--skip-message-on-error", is_flag=True, help="Leave out records that cannot be formatted.")
def command(
    bootstrap_server: str,
    command_config: Path | None,
    topic: str | None,
    include: str | None,
    partition: int | None,
    offset: str | None,
    from_beginning: bool,
    max_messages: int,
    timeout_ms: int | None,
    group: str | None,
    formatter_properties: tuple[str, ...],
    formatter_config: Path | None,
    key_deserializer: str | None,
    value_deserializer: str | None,
    consumer_properties: tuple[str, ...],
    isolation_level: str | None,
    skip_message_on_error: bool,
) -> None:
    """Read the records of a topic to standard output, one a line."""
    properties = {
        **read_client_properties(command_config),
        **key_values(consumer_properties, "--command-property"),
    }
    if (topic is None) == (include is None):
        raise CommandFailed("Exactly one of the following arguments is required: --topic, --include")
    if partition is not None and include is not None:
        raise CommandFailed("--partition needs --topic")
    if offset is not None and partition is None:
        raise CommandFailed("The partition is required when offset is specified.")
    if offset is not None and from_beginning:
        raise CommandFailed("Options from-beginning and offset cannot be specified together.")
    group = group or properties.get("group.id")
    if partition is not None and group is not None:
        raise CommandFailed("Options group and partition cannot be specified together.")
    reset = properties.get("auto.offset.reset", "latest")
    if reset not in RESETS:
        raise CommandFailed(f"auto.offset.reset must be one of {', '.join(RESETS)}, not '{reset}'")
    level = isolation_level or properties.get("isolation.level", "read_uncommitted")
    if level not in ISOLATION_LEVELS:
        raise CommandFailed(f"isolation.level must be one of {', '.join(ISOLATION_LEVELS)}, not '{level}'")
    start, number = _start(offset, EARLIEST_TIMESTAMP if from_beginning else RESETS[reset])
    request = Request(
        topic=topic,
        include=include,
        partition=partition,
        offset=number,
        start=start,
        group=group,
        isolation_level=ISOLATION_LEVELS[level],
        max_wait_ms=MAX_WAIT_MS if timeout_ms is None else min(MAX_WAIT_MS, timeout_ms),
        heartbeat_interval_ms=whole_number(properties, "heartbeat.interval.ms", HEARTBEAT_INTERVAL_MS),
        session_timeout_ms=whole_number(properties, "session.timeout.ms", SESSION_TIMEOUT_MS),
    )
    deserializers = {"key.deserializer": key_deserializer, "value.deserializer": value_deserializer}
    try:
        record_format = RecordFormat.from_properties(
            {
                **read_client_properties(formatter_config),
                **{name: value for name, value in deserializers.items() if value is not None},
                **key_values(formatter_properties, "--formatter-property"),
            }
        )
    except InvalidLine as error:
        raise CommandFailed(str(error)) from None
    if sys.stdout is None:
        raise CommandFailed("Standard output is closed")
    printer = Printer(record_format, skip_message_on_error)

    async def work() -> int:
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                open_cluster(bootstrap_server, properties, client_id="console-consumer")
            )

            async def read() -> None:
                async with AsyncExitStack() as inner:
                    poll = await _open(inner, cluster, request)
                    batches = await inner.enter_async_context(aclosing(_polls(poll, max_messages, timeout_ms)))
                    async for records in batches:
                        await printer.print(records)

            return await run_until_signal(read)

    exit_code = run(work)
    click.echo(f"Processed a total of {printer.printed} messages", err=True)
    if exit_code:
        raise SystemExit(exit_code)


def _start(offset: str | None, default: int) -> tuple[int, int | None]:
    """The place by timestamp, and the explicit offset if one was given."""
    if offset is None:
        return default, None
    if offset.lower() in RESETS:
        return RESETS[offset.lower()], None
    if offset.isascii() and offset.isdigit() and int(offset) < 2**63:
        return default, int(offset)
    raise CommandFailed(
        f"The provided offset value '{offset}' is incorrect. "
        "Valid values are 'earliest', 'latest', or a non-negative long."
    )


async def _open(stack: AsyncExitStack, cluster: Cluster, request: Request) -> Poll:
    topics = await _topics(cluster, request)
    if request.group is not None:
        member = await stack.enter_async_context(
            open_group_consumer(
                cluster,
                request.group,
                topics,
                reset_to=request.start,
                isolation_level=request.isolation_level,
                max_wait_ms=request.max_wait_ms,
                heartbeat_interval_ms=request.heartbeat_interval_ms,
                session_timeout_ms=request.session_timeout_ms,
            )
        )
        return member.poll
    consumer = Consumer(
        cluster, isolation_level=request.isolation_level, reset_to=request.start, max_wait_ms=request.max_wait_ms
    )
    if request.partition is None:
        found = [(name, (await cluster.topic(name)).partitions) for name in topics]
        await consumer.assign_at(
            {TopicPartition(name, index): request.start for name, partitions in found for index in partitions}
        )
    else:
        of = TopicPartition(topics[0], request.partition)
        await cluster.leader(of)
        if request.offset is None:
            await consumer.assign_at({of: request.start})
        else:
            consumer.assign({of: request.offset})
    return consumer.poll


async def _topics(cluster: Cluster, request: Request) -> list[str]:
    if request.topic is not None:
        await cluster.topic(request.topic)
        return [request.topic]
    matches = topic_filter(request.include)
    names = [topic.name for topic in await list_topics(cluster) if matches(topic.name) and not topic.is_internal]
    if not names:
        raise CommandFailed(f"No topic matches '{request.include}'")
    return names


async def _polls(poll: Poll, max_messages: int, timeout_ms: int | None) -> AsyncGenerator[list[ConsumedRecord], None]:
    """Ends after so many records, or when none came for so long (counted once the first poll is back)."""
    left = max_messages
    deadline: float | None = None
    while left:
        records = await poll(RECORDS_PER_WRITE if left < 0 else min(left, RECORDS_PER_WRITE))
        if records:
            yield records
            left -= len(records) if left > 0 else 0
        if timeout_ms is not None and (records or deadline is None):
            deadline = trio.current_time() + timeout_ms / 1000
        elif deadline is not None and trio.current_time() >= deadline:
            return


class Printer:
    """The printer writes in a thread: a reader that pauses must not keep the member's heartbeats from being sent.

    A write is not abandoned at Ctrl-C, because the offsets of its records are committed then.
    """

    def __init__(self, record_format: RecordFormat, skip_on_error: bool) -> None:
        self.printed = 0
        self._format = record_format
        self._skip_on_error = skip_on_error

    async def print(self, records: list[ConsumedRecord]) -> None:
        lines = []
        for record in records:
            try:
                lines.append(self._format.line(record))
            except InvalidLine as error:
                message = f"Offset {record.offset} of {record.topic}-{record.partition}: {error}"
                if not self._skip_on_error:
                    await self._write(lines)
                    raise CommandFailed(message) from None
                warn(message)
        await self._write(lines)

    async def _write(self, lines: list[bytes]) -> None:
        await trio.to_thread.run_sync(_write_all, b"".join(lines))
        self.printed += len(lines)


def _write_all(data: bytes) -> None:
    """Past Python's own buffer, so that a pipe has each batch at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]
