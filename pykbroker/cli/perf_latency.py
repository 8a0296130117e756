"""`pykbroker perf latency`: the flags and lines of `kafka-e2e-latency`.

One record at a time: sent, acknowledged, then fetched by a consumer with a connection of its own. The latency is the
time from the call that sends it to the poll that returns it, as in Kafka's tool.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from time import perf_counter_ns
from typing import Final

import click
import trio

from pykbroker.client.consumer import Consumer
from pykbroker.client.errors import TimedOut
from pykbroker.client.offsets import LATEST_TIMESTAMP
from pykbroker.client.producer import Producer, open_producer
from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed, run
from .examples import examples
from .output import Column, print_table, stdout_is_terminal
from .perf_histogram import LatencyHistogram
from .perf_options import MOST_RECORDS, PerfCommand, Target, json_option, target_options
from .perf_payloads import LARGEST_RECORD_BYTES, random_letters
from .perf_run import Ending, existing_topic, reporting, run_measurement
from .perf_sending import PERCENTILES, latencies_json
from .producer_settings import ProducerSettings

POLL_TIMEOUT_S: Final = 60
LINE_EVERY: Final = 1_000
_POSITIONAL: Final = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size", "command_config")
_TITLES: Final = ("RECORDS", "AVG MS", *(f"P{each:g} MS" for each in PERCENTILES), "MAX MS")
_COLUMNS: Final = tuple(Column(title, 9, right=True) for title in _TITLES)


class LatencyCommand(PerfCommand):
    """Kafka's older form has no flags: `HOST:PORT TOPIC RECORDS ACKS BYTES [FILE]`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if 5 <= len(args) <= 6 and not any(each.startswith("-") for each in args):
            named = zip(_POSITIONAL, args, strict=False)
            args = [each for name, value in named for each in (f"--{name.replace('_', '-')}", value)]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a record; sizes in bytes. header_value_size: -1 for a header without a value."""

    size: int
    key_size: int
    headers: int
    header_key_size: int
    header_value_size: int


@click.command(
    "latency",
    cls=LatencyCommand,
    epilog=examples(
        (
            "Ten thousand records, one by one",
            "pykbroker perf latency --topic t --num-records 10000",
        ),
        (
            "Acknowledged by the leader alone",
            "pykbroker perf latency --topic t --num-records 10000 --acks 1 --size 1000 --json",
        ),
    ),
)
@target_options
@click.option("--topic", required=True, metavar="NAME", help="The topic to write to and to read. It must exist.")
@click.option("--num-records", type=click.IntRange(1, MOST_RECORDS), required=True, metavar="N", help="How many.")
@click.option("--acks", "--producer-acks", "acks", type=click.Choice(["all", "-1", "1"]), help="Default: all.")
@click.option(
    "--size",
    "--record-size",
    "size",
    type=click.IntRange(0, LARGEST_RECORD_BYTES),
    default=100,
    show_default=True,
    metavar="BYTES",
    help="Of a value.",
)
@click.option(
    "--record-key-size",
    type=click.IntRange(0, LARGEST_RECORD_BYTES),
    default=0,
    metavar="BYTES",
    help="Of a key; 0 for no key.",
)
@click.option("--num-headers", type=click.IntRange(0, 10_000), default=0, metavar="N", help="Headers of each record.")
@click.option("--record-header-key-size", type=click.IntRange(0, 10_000), default=0, metavar="BYTES", help="Of a name.")
@click.option(
    "--record-header-size",
    type=click.IntRange(-1, 1_000_000),
    default=0,
    metavar="BYTES",
    help="Of a header's value; -1 for no value.",
)
@json_option
def command(
    target: Target,
    topic: str,
    num_records: int,
    acks: str | None,
    size: int,
    record_key_size: int,
    num_headers: int,
    record_header_key_size: int,
    record_header_size: int,
    as_json: bool,
) -> None:
    """Send records one by one, and say how long each one took to a consumer.

    The lines are those of Kafka's tool. A failure of the cluster or a signal ends the run with the results so far.
    """
    properties = target.properties
    if acks is not None:
        properties["acks"] = acks
    settings = ProducerSettings.from_properties(properties)
    if settings.acks == 0:
        raise CommandFailed("Latency testing requires synchronous acknowledgement. Please use 1 or all")
    shape = Shape(size, record_key_size, num_headers, record_header_key_size, record_header_size)
    run(_run, topic, num_records, shape, settings, target, as_json)


async def _run(
    topic: str,
    num_records: int,
    shape: Shape,
    settings: ProducerSettings,
    target: Target,
    as_json: bool,
) -> None:
    latencies = LatencyHistogram()

    async def measure() -> None:
        async with (
            target.open("perf-latency-producer") as sending,
            target.open("perf-latency-consumer") as receiving,
        ):
            await existing_topic(sending, topic)
            consumer = Consumer(receiving, reset_to=None)
            found = (await receiving.topic(topic)).partitions
            # Connections to all leaders are there before the first record.
            await consumer.assign_at({TopicPartition(topic, index): LATEST_TIMESTAMP for index in found})
            async with (
                open_producer(
                    sending,
                    acks=settings.acks,
                    idempotent=settings.idempotent,
                    compression=settings.compression,
                    delivery_timeout_ms=settings.delivery_timeout_ms,
                    allow_auto_topic_creation=False,
                ) as producer,
                reporting(
                    total=num_records,
                    done=lambda: latencies.count,
                    state=lambda: f"{latencies.mean_ms:.2f} ms on average",
                    line=None,
                    interval_ms=LINE_EVERY,
                ),
            ):
                await _send_one_by_one(topic, num_records, shape, producer, consumer, latencies, with_lines=not as_json)

    ending = await run_measurement(measure)
    if latencies.count or ending.failure is None:
        _print(latencies, ending, as_json=as_json)
    ending.exit()


async def _send_one_by_one(
    topic: str,
    num_records: int,
    shape: Shape,
    producer: Producer,
    consumer: Consumer,
    latencies: LatencyHistogram,
    *,
    with_lines: bool,
) -> None:
    rng = Random()  # noqa: S311 - nothing secret is drawn
    values, keys = random_letters(shape.size, rng), random_letters(shape.key_size, rng)
    header_value = None if shape.header_value_size < 0 else next(random_letters(shape.header_value_size, rng))
    header = (next(random_letters(shape.header_key_size, rng)).decode(), header_value)
    for number in range(num_records):
        value, key = next(values), next(keys) or None
        began_ns = perf_counter_ns()
        delivery = await producer.send(topic, value, key=key, headers=[header] * shape.headers)
        await _received(consumer, delivery.partition, await delivery.wait())
        latency_us = (perf_counter_ns() - began_ns) // 1000
        latencies.add([latency_us])
        if with_lines and number % LINE_EVERY == 0:
            click.echo(f"{number}\t{latency_us / 1000}")


async def _received(consumer: Consumer, partition: TopicPartition, offset: int) -> None:
    """Poll this partition until the record is there. Raises TimedOut."""
    consumer.assign({partition: offset})
    with trio.move_on_after(POLL_TIMEOUT_S):
        while consumer.positions[partition] <= offset:
            await consumer.poll()
        return
    raise TimedOut(f"{partition}: the record with offset {offset} did not come within {POLL_TIMEOUT_S} s")


def _print(latencies: LatencyHistogram, ending: Ending, *, as_json: bool) -> None:
    if as_json:
        figures = {"records": latencies.count, "latency_ms": latencies_json(latencies), "error": ending.error}
        click.echo(json.dumps(figures))
        return
    shown = ", ".join(f"{each:g}th = {latencies.percentile_ms(each):.0f}" for each in (50, 99, 99.9))
    click.echo(f"Avg latency: {latencies.mean_ms:.4f} ms")
    click.echo(f"Percentiles: {shown}")
    if stdout_is_terminal():
        figures_ms = [latencies.mean_ms, *map(latencies.percentile_ms, PERCENTILES), latencies.max_ms]
        print_table(_COLUMNS, [[f"{latencies.count:,}", *(f"{each:,.3f}" for each in figures_ms)]])
