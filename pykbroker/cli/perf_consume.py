"""`pykbroker perf consume`: the flags and lines of `kafka-consumer-perf-test`.

Without `--group` the partitions are read directly and nothing is committed, where Kafka's tool makes a group for
itself, and waits for it to form.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import click
import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.consumer import PARTITION_MAX_BYTES, Consumer
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.client.group_consumer import open_group_consumer
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED, READ_UNCOMMITTED
from pykbroker.client.topics import list_topics
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, run
from .connect import whole_number
from .examples import examples
from .output import Column, print_table, stdout_is_terminal
from .perf_dates import date_text
from .perf_options import (
    MOST_RECORDS,
    PerfCommand,
    Target,
    interval_option,
    json_option,
    line_options,
    print_metrics_option,
    socket_buffer_option,
    target_options,
    timeout_option,
)
from .perf_receiving import RATE_COLUMNS, TOTAL_HEADER, WINDOW_HEADER, ReceiveMeter
from .perf_run import Ending, existing_topic, reporting, run_measurement
from .topic_filter import topic_filter

EMPTY_POLL_PAUSE_S = 0.02
"""A fetch that waits for records would hold back those of other leaders, so that none waits."""
MAX_BYTES = 8 * 1024 * 1024
"""Of a fetch: its records are all in memory at once, as objects that are many times as large as small records."""
RECORDS_PER_POLL = 10_000
_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
_TITLES = ("REBALANCE S", "FETCH RECORDS/S", "FETCH MB/S")
_COLUMNS = (*RATE_COLUMNS, *(Column(title, 9, right=True) for title in _TITLES))
Poll = Callable[[int], Awaitable[list[ConsumedRecord]]]


@dataclass(frozen=True, slots=True)
class Reading:
    """The records that are read, and how. start: a timestamp of ListOffsets."""

    topic: str | None
    include: str | None
    records: int
    group: str | None
    timeout_ms: int
    start: int
    isolation_level: int
    partition_max_bytes: int
    max_bytes: int
    interval_ms: int
    shows_details: bool
    hides_header: bool


@click.command(
    "consume",
    cls=PerfCommand,
    epilog=examples(
        (
            "A million records",
            "pykbroker perf consume --topic t --messages 1000000",
        ),
        (
            "A line each second",
            "pykbroker perf consume --topic t --messages 1000000 --show-detailed-stats --reporting-interval 1000",
        ),
        (
            "As a member of a group",
            "pykbroker perf consume --topic t --messages 1000000 --group perf --timeout 5000 --json",
        ),
    ),
)
@target_options
@click.option("--topic", metavar="NAME", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="Read every topic whose whole name matches.")
@click.option(
    "--messages",
    "--num-records",
    "messages",
    type=click.IntRange(1, MOST_RECORDS),
    required=True,
    metavar="N",
    help="How many records to read.",
)
@click.option("--group", metavar="NAME", help="Join this group, and commit offsets. Default: no group.")
@timeout_option
@click.option("--from-latest", is_flag=True, help="Begin behind the last record, where the group has no offset.")
@click.option("--show-detailed-stats", is_flag=True, help="Print a line at each interval instead of one at the end.")
@line_options
@click.option(
    "--fetch-size",
    type=click.IntRange(1, 2**31 - 1),
    default=PARTITION_MAX_BYTES,
    show_default=True,
    metavar="BYTES",
    help="The most that a fetch brings of one partition.",
)
@socket_buffer_option
@interval_option
@print_metrics_option
@json_option
def command(
    target: Target,
    topic: str | None,
    include: str | None,
    messages: int,
    group: str | None,
    timeout: int,
    from_latest: bool,
    show_detailed_stats: bool,
    hide_header: bool,
    date_format: str,
    fetch_size: int,
    socket_buffer_size: int | None,
    reporting_interval: int,
    print_metrics: bool,
    as_json: bool,
) -> None:
    """Read records, and say how many a second.

    The lines are those of Kafka's tool. A failure of the cluster or a signal ends the run with the results so far.
    """
    properties = target.properties
    if (topic is None) == (include is None):
        raise CommandFailed("Exactly one of the following arguments is required: --topic, --include")
    level = properties.get("isolation.level", "read_uncommitted")
    if level not in _LEVELS:
        raise CommandFailed(f"isolation.level must be one of {', '.join(_LEVELS)}, not '{level}'")
    date_text(datetime.now(), date_format)
    reading = Reading(
        topic=topic,
        include=include,
        records=messages,
        group=group or properties.get("group.id"),
        timeout_ms=timeout,
        start=LATEST_TIMESTAMP if from_latest else EARLIEST_TIMESTAMP,
        isolation_level=_LEVELS[level],
        partition_max_bytes=fetch_size,
        max_bytes=min(whole_number(properties, "fetch.max.bytes", MAX_BYTES), 2**31 - 1),
        interval_ms=reporting_interval,
        shows_details=show_detailed_stats and not as_json,
        hides_header=hide_header or as_json,
    )
    run(_run, reading, ReceiveMeter(date_format), target, as_json)


async def _run(reading: Reading, meter: ReceiveMeter, target: Target, as_json: bool) -> None:
    async def measure() -> None:
        async with target.open("perf-consumer-client") as cluster:
            topics = await _topics(cluster, reading)
            if not reading.hides_header:
                click.echo(WINDOW_HEADER if reading.shows_details else TOTAL_HEADER)
            meter.start()
            async with (
                reporting(
                    total=reading.records,
                    done=lambda: meter.records,
                    state=lambda: f"{meter.records / meter.elapsed_s:,.0f} records/s",
                    line=meter.window_line if reading.shows_details else None,
                    interval_ms=reading.interval_ms,
                ),
                _opened(cluster, reading, topics, meter) as poll,
            ):
                await _read(reading, poll, meter)
                meter.stop()

    ending = await run_measurement(measure)
    meter.stop()
    if meter.is_started:
        _print(reading, meter, ending, as_json=as_json)
    ending.exit()


async def _topics(cluster: Cluster, reading: Reading) -> list[str]:
    if reading.topic is not None:
        await existing_topic(cluster, reading.topic)
        return [reading.topic]
    matches = topic_filter(reading.include)
    names = [topic.name for topic in await list_topics(cluster) if matches(topic.name) and not topic.is_internal]
    if not names:
        raise CommandFailed(f"No topic matches '{reading.include}'")
    return names


@asynccontextmanager
async def _opened(cluster: Cluster, reading: Reading, topics: list[str], meter: ReceiveMeter) -> AsyncIterator[Poll]:
    if reading.group is None:
        consumer = Consumer(
            cluster,
            isolation_level=reading.isolation_level,
            reset_to=reading.start,
            max_wait_ms=0,
            max_bytes=reading.max_bytes,
            partition_max_bytes=reading.partition_max_bytes,
        )
        found = [TopicPartition(name, index) for name in topics for index in (await cluster.topic(name)).partitions]
        await consumer.assign_at(dict.fromkeys(found, reading.start))
        yield consumer.poll
        return
    async with open_group_consumer(
        cluster,
        reading.group,
        topics,
        reset_to=reading.start,
        isolation_level=reading.isolation_level,
        max_wait_ms=0,
        max_bytes=reading.max_bytes,
        partition_max_bytes=reading.partition_max_bytes,
    ) as member:

        async def poll(most: int) -> list[ConsumedRecord]:
            records = await member.poll(most)
            meter.rebalancing_s = member.rebalancing_s
            return records

        yield poll


async def _read(reading: Reading, poll: Poll, meter: ReceiveMeter) -> None:
    """Read until there are enough, or nothing came for the time-out (counted once the first poll is back)."""
    deadline: float | None = None
    while meter.records < reading.records:
        records = await poll(min(RECORDS_PER_POLL, reading.records - meter.records))
        if records:
            meter.add(records)
            # What was fetched is handed out without a wait; signals and lines have their turn between two portions.
            await trio.lowlevel.checkpoint()
        if records or deadline is None:
            deadline = trio.current_time() + reading.timeout_ms / 1000
        elif trio.current_time() >= deadline:
            return
        else:
            await trio.sleep(EMPTY_POLL_PAUSE_S)


def _print(reading: Reading, meter: ReceiveMeter, ending: Ending, *, as_json: bool) -> None:
    is_complete = meter.records >= reading.records
    if as_json:
        click.echo(json.dumps({**meter.as_json(), "complete": is_complete, "error": ending.error}))
        return
    if not is_complete:
        ending.print_timed_out(reading.timeout_ms)
    click.echo(meter.window_line() if reading.shows_details else meter.total_line())
    if stdout_is_terminal():
        figures = meter.as_json()
        print_table(
            _COLUMNS,
            [
                (
                    *meter.rate_cells(),
                    f"{meter.rebalancing_s:,.3f}",
                    f"{figures['fetch_records_per_s']:,.0f}",
                    f"{figures['fetch_mb_per_s']:,.2f}",
                )
            ],
        )
