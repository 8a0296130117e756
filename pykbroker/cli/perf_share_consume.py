"""`pykbroker perf share-consume`: the flags and lines of `kafka-share-consumer-perf-test`.

Each of `--threads` is a member of the group with connections of its own. All of them are in one process, on one core.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import click
import trio

from pykbroker.client.share_consumer import MAX_BYTES, MAX_RECORDS, ShareConsumer, open_share_consumer

from .command import CommandFailed, run
from .connect import whole_number
from .examples import examples
from .output import print_table, stdout_is_terminal, warn
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
from .perf_receiving import RATE_COLUMNS, SHARE_HEADER, ReceiveMeter
from .perf_run import Ending, existing_topic, reporting, run_measurement
from .printable import printable

_CLIENT_ID = "perf-share-consumer-client"
_GROUP = "perf-share-consumer"
_MOST_THREADS = 1_000
_POLL_MS = 100
"""As Kafka's tool waits; a quiet leader must not hold back the records of a busy one for longer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The records that are read, and how."""

    topic: str
    group: str
    records: int
    timeout_ms: int
    threads: int
    max_bytes: int
    max_records: int
    interval_ms: int
    shows_details: bool
    shows_each: bool
    hides_header: bool


@dataclass(slots=True)
class Meters:
    """The counts of all members together, and of each by itself, with its client id."""

    total: ReceiveMeter
    members: list[tuple[str, ReceiveMeter]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@click.command(
    "share-consume",
    cls=PerfCommand,
    epilog=examples(
        ("A million records", "pykbroker perf share-consume --topic t --num-records 1000000"),
        (
            "By three members, with a line for each",
            "pykbroker perf share-consume --topic t --num-records 1000000 --threads 3 --show-consumer-stats",
        ),
        ("For a program", "pykbroker perf share-consume --topic t --num-records 1000 --timeout 20000 --json"),
    ),
)
@target_options
@click.option("--topic", metavar="NAME", required=True, help="The topic to read.")
@click.option(
    "--num-records",
    "--messages",
    "num_records",
    type=click.IntRange(1, MOST_RECORDS),
    required=True,
    metavar="N",
    help="How many records to read.",
)
@click.option("--group", default=_GROUP, show_default=True, metavar="NAME", help="The share group to join.")
@click.option(
    "--threads",
    type=click.IntRange(1, _MOST_THREADS),
    default=1,
    show_default=True,
    metavar="N",
    help="How many members.",
)
@timeout_option
@click.option("--show-detailed-stats", is_flag=True, help="Print a line of each member at each interval.")
@click.option("--show-consumer-stats", is_flag=True, help="Print a line of each member at the end.")
@line_options
@click.option(
    "--fetch-size",
    type=click.IntRange(1, 2**31 - 1),
    default=1024 * 1024,
    show_default=True,
    metavar="BYTES",
    help="The most that a fetch brings.",
)
@socket_buffer_option
@interval_option
@print_metrics_option
@json_option
def command(
    target: Target,
    topic: str,
    num_records: int,
    group: str,
    threads: int,
    timeout: int,
    show_detailed_stats: bool,
    show_consumer_stats: bool,
    hide_header: bool,
    date_format: str,
    fetch_size: int,
    socket_buffer_size: int | None,
    reporting_interval: int,
    print_metrics: bool,
    as_json: bool,
) -> None:
    """Read records as members of a share group, and say how many a second.

    Records are accepted. The lines are those of Kafka's tool. A failure of the cluster or a signal ends the run with
    the results so far. A new group begins behind the last record, unless its share.auto.offset.reset says earliest.
    """
    date_text(datetime.now(), date_format)
    max_records = whole_number(target.properties, "max.poll.records", MAX_RECORDS)
    if not 1 <= max_records < 2**31:
        raise CommandFailed(f"max.poll.records is a number from 1 to {2**31 - 1}, not {max_records}")
    reading = Reading(
        topic=topic,
        group=group,
        records=num_records,
        timeout_ms=timeout,
        threads=threads,
        max_bytes=min(fetch_size, MAX_BYTES),
        max_records=max_records,
        interval_ms=reporting_interval,
        shows_details=show_detailed_stats and not as_json,
        shows_each=show_consumer_stats and not as_json,
        hides_header=hide_header or as_json,
    )
    run(_run, reading, Meters(ReceiveMeter(date_format)), target, date_format, as_json)


async def _run(reading: Reading, meters: Meters, target: Target, date_format: str, as_json: bool) -> None:
    total = meters.total
    client_id = target.properties.get("client.id", _CLIENT_ID)

    async def measure() -> None:
        async with target.open(client_id) as cluster:
            await existing_topic(cluster, reading.topic)
        if not reading.hides_header:
            click.echo(SHARE_HEADER)
        total.start()
        async with (
            reporting(
                total=reading.records,
                done=lambda: total.records,
                state=lambda: f"{total.records / total.elapsed_s:,.0f} records/s",
                line=_lines(meters) if reading.shows_details else None,
                interval_ms=reading.interval_ms,
            ),
            trio.open_nursery() as nursery,
        ):
            for number in range(1, reading.threads + 1):
                own_id = client_id if reading.threads == 1 else f"{client_id}-{number}"
                meter = ReceiveMeter(date_format)
                meter.start()
                meters.members.append((own_id, meter))
                nursery.start_soon(_member, reading, meters, meter, target, own_id)

    ending = await run_measurement(measure)
    total.stop()
    if total.is_started:
        _print(reading, meters, ending, as_json=as_json)
    ending.exit()


def _lines(meters: Meters) -> Callable[[], str]:
    """Return what makes the lines on the way, one of each member."""

    def lines() -> str:
        each = enumerate(meters.members, start=1)
        return "\n".join(f"{meter.share_window_line()} for share consumer {number}" for number, (_, meter) in each)

    return lines


async def _member(reading: Reading, meters: Meters, meter: ReceiveMeter, target: Target, client_id: str) -> None:
    """Read as one member until all have enough, or nothing came to this one for the time-out."""
    async with target.open(client_id) as cluster:
        consumer: ShareConsumer | None = None
        try:
            async with open_share_consumer(
                cluster,
                reading.group,
                [reading.topic],
                max_wait_ms=_POLL_MS,
                max_bytes=reading.max_bytes,
                max_records=reading.max_records,
            ) as consumer:
                await _read(reading, consumer, meters.total, meter)
            meter.stop()
        finally:
            if consumer is not None:
                meters.refused |= {str(of): why for of, why in consumer.refused.items()}


async def _read(reading: Reading, consumer: ShareConsumer, total: ReceiveMeter, meter: ReceiveMeter) -> None:
    deadline = trio.current_time() + reading.timeout_ms / 1000
    while total.records < reading.records and trio.current_time() <= deadline:
        records = await consumer.poll(min(reading.max_records, reading.records - total.records))
        if records:
            meter.add(records)
            total.add(records)
            consumer.acknowledge(records)
            deadline = trio.current_time() + reading.timeout_ms / 1000
            # What was fetched is handed out without a wait; signals and lines have their turn between two portions.
            await trio.lowlevel.checkpoint()


def _print(reading: Reading, meters: Meters, ending: Ending, *, as_json: bool) -> None:
    total = meters.total
    is_complete = total.records >= reading.records
    for of, why in sorted(meters.refused.items()):
        warn(f"{printable(of)}: records may be delivered again: {printable(why)}")
    if as_json:
        figures = total.as_json()
        shown = {name: figures[name] for name in ("records", "bytes", "elapsed_s", "records_per_s", "mb_per_s")}
        members = [{"client_id": client_id, "records": meter.records} for client_id, meter in meters.members]
        click.echo(json.dumps({**shown, "members": members, "complete": is_complete, "error": ending.error}))
        return
    if reading.shows_each:
        for number, (client_id, meter) in enumerate(meters.members, start=1):
            line = meter.share_total_line()
            click.echo(f"Share consumer {number} having client id {client_id} consumption metrics- {line}")
    if not is_complete:
        ending.print_timed_out(reading.timeout_ms)
    click.echo(total.share_total_line())
    if stdout_is_terminal():
        print_table(RATE_COLUMNS, [total.rate_cells()])
