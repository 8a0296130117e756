"""`pykbroker perf produce`: the flags and lines of `kafka-producer-perf-test`.

The latency of a record is the time from the call that sends it to its acknowledgement, with the time that it waited for
room in the producer's buffer, as in Kafka's tool. A topic that does not exist is an error here.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter_ns

import click
import trio

from pykbroker.client.errors import ClientError
from pykbroker.client.producer import BUFFER_MEMORY_BYTES, Producer, open_producer
from pykbroker.client.producer_transaction import ProducerTransaction, init_transactions

from .command import CommandFailed, run
from .connect import whole_number
from .examples import examples
from .output import print_table, stdout_is_terminal
from .perf_options import (
    MOST_RECORDS,
    PerfCommand,
    Target,
    interval_option,
    json_option,
    number_between,
    print_metrics_option,
    target_options,
)
from .perf_payloads import LARGEST_RECORD_BYTES, lines_of, monotonic, random_letters
from .perf_run import Ending, existing_topic, reporting, run_measurement
from .perf_sending import SUMMARY_COLUMNS, SendMeter
from .producer_settings import ProducerSettings
from .records.pace import Pace

TRANSACTION_DURATION_MS = 3_000
ABORT_TIMEOUT_S = 2


@dataclass(frozen=True, slots=True)
class Load:
    """The records that are sent, and how fast. transactional_id: None without transactions."""

    topic: str
    records: int
    per_second: float
    payloads: Iterator[bytes]
    warmup_records: int
    interval_ms: int
    transactional_id: str | None
    transaction_duration_ms: int


@click.command(
    "produce",
    cls=PerfCommand,
    epilog=examples(
        (
            "As fast as the cluster takes them",
            "pykbroker perf produce --topic t --num-records 1000000 --record-size 100 --throughput -1",
        ),
        (
            "A thousand a second, compressed",
            "pykbroker perf produce --topic t --num-records 60000 --record-size 1000 --throughput 1000 "
            "--command-property acks=all linger.ms=5 compression.type=zstd --json",
        ),
        (
            "Lines of a file, in transactions",
            "pykbroker perf produce --topic t --num-records 100000 --payload-file lines.txt --transactional-id perf",
        ),
    ),
)
@target_options
@click.option("--topic", required=True, metavar="NAME", help="The topic to write to. It must exist.")
@click.option(
    "--num-records",
    type=click.IntRange(1, MOST_RECORDS),
    required=True,
    metavar="N",
    help="How many records to send.",
)
@click.option("--record-size", type=click.IntRange(1, LARGEST_RECORD_BYTES), metavar="BYTES", help="Random letters.")
@click.option(
    "--payload-file", type=click.Path(path_type=Path), metavar="FILE", help="Payloads, drawn from the file's lines."
)
@click.option("--payload-delimiter", default="\\n", show_default=True, metavar="TEXT", help="What parts payloads.")
@click.option("--payload-monotonic", is_flag=True, help="Numbers from 0 on as payloads.")
@click.option(
    "--throughput",
    callback=number_between(0.001, 1e9, none=-1),
    default="-1",
    show_default=True,
    metavar="N",
    help="Records a second, sent at a steady rate; -1 for as many as possible.",
)
@click.option(
    "--warmup-records",
    type=click.IntRange(0, MOST_RECORDS),
    default=0,
    metavar="N",
    help="Leave the first N records out of a second summary, of the steady state.",
)
@click.option("--transactional-id", metavar="ID", help="Send in transactions.")
@click.option(
    "--transaction-duration-ms",
    type=click.IntRange(1, 2**31 - 1),
    metavar="MS",
    help=f"Commit after so long. Default: {TRANSACTION_DURATION_MS}.",
)
@interval_option
@print_metrics_option
@json_option
def command(
    target: Target,
    topic: str,
    num_records: int,
    record_size: int | None,
    payload_file: Path | None,
    payload_delimiter: str,
    payload_monotonic: bool,
    throughput: float,
    warmup_records: int,
    transactional_id: str | None,
    transaction_duration_ms: int | None,
    reporting_interval: int,
    print_metrics: bool,
    as_json: bool,
) -> None:
    """Write records to a topic, and say how many a second and how long each one took until it was acknowledged.

    The last line is that of Kafka's tool. A failure of the cluster or a signal ends the run with the results so far.
    """
    properties = target.properties
    if [record_size is not None, payload_file is not None, payload_monotonic].count(True) != 1:
        raise CommandFailed("Exactly one of --record-size, --payload-file and --payload-monotonic must be given")
    if warmup_records >= num_records:
        raise CommandFailed("--warmup-records must be less than --num-records")
    if transactional_id is None:
        transactional_id = properties.get("transactional.id")
    if transactional_id is None and transaction_duration_ms is not None:
        transactional_id = f"performance-producer-{uuid.uuid4()}"
    load = Load(
        topic=topic,
        records=num_records,
        per_second=throughput,
        payloads=_payloads(record_size, payload_file, payload_delimiter),
        warmup_records=warmup_records,
        interval_ms=reporting_interval,
        transactional_id=transactional_id,
        transaction_duration_ms=transaction_duration_ms or TRANSACTION_DURATION_MS,
    )
    settings = ProducerSettings.from_properties(properties)
    run(_run, load, settings, target, as_json)


def _payloads(record_size: int | None, payload_file: Path | None, delimiter: str) -> Iterator[bytes]:
    rng = Random()  # noqa: S311 - nothing secret is drawn
    if record_size is not None:
        return random_letters(record_size, rng)
    if payload_file is not None:
        return lines_of(payload_file, delimiter.replace("\\n", "\n").replace("\\t", "\t"), rng)
    return monotonic()


async def _run(load: Load, settings: ProducerSettings, target: Target, as_json: bool) -> None:
    meter = SendMeter(load.warmup_records)

    async def measure() -> None:
        async with target.open("perf-producer-client") as cluster:
            await existing_topic(cluster, load.topic)
            transaction = None
            if load.transactional_id is not None:
                timeout_ms = whole_number(target.properties, "transaction.timeout.ms", 60_000)
                transaction = await init_transactions(cluster, load.transactional_id, timeout_ms)
            try:
                async with open_producer(
                    cluster,
                    acks=settings.acks,
                    idempotent=settings.idempotent,
                    compression=settings.compression,
                    linger_ms=settings.linger_ms,
                    batch_size_bytes=settings.batch_size_bytes,
                    delivery_timeout_ms=settings.delivery_timeout_ms,
                    transaction=transaction,
                    allow_auto_topic_creation=False,
                    on_done=meter.batch_done,
                    buffer_memory_bytes=whole_number(target.properties, "buffer.memory", BUFFER_MEMORY_BYTES),
                ) as producer:
                    await _measure(load, producer, transaction, meter, with_lines=not as_json)
            except BaseException:
                # The sender has ended by now, and begins no other transaction.
                await _abort(transaction)
                raise

    ending = await run_measurement(measure)
    meter.stop()
    if meter.is_started:
        _print(meter, ending, as_json=as_json)
    ending.exit()


async def _measure(
    load: Load, producer: Producer, transaction: ProducerTransaction | None, meter: SendMeter, *, with_lines: bool
) -> None:
    if load.warmup_records and with_lines:
        click.echo(
            f"Warmup first {load.warmup_records} records. "
            "Steady state results will print after the complete test summary."
        )
    meter.start()
    async with reporting(
        total=load.records,
        done=lambda: meter.total.records,
        state=lambda: f"{meter.total.records_per_s:,.0f} records/s, {meter.total.megabytes_per_s:,.1f} MB/s",
        line=(lambda: meter.next_window().window_line()) if with_lines else None,
        interval_ms=load.interval_ms,
    ):
        await _send(load, producer, transaction, meter)
        meter.stop()


async def _abort(transaction: ProducerTransaction | None) -> None:
    """Abort what a failure or a signal left open, as far as the cluster takes it: readers would wait for it."""
    if transaction is not None:
        with trio.move_on_after(ABORT_TIMEOUT_S, shield=True), suppress(ClientError):
            await transaction.end(committed=False)


async def _send(load: Load, producer: Producer, transaction: ProducerTransaction | None, meter: SendMeter) -> None:
    # A sender that was held up catches up, so that the rate holds over the whole run, as with Kafka's tool.
    pace = Pace(load.per_second, most_behind_s=math.inf) if load.per_second >= 0 else None
    commit_at = trio.current_time() + load.transaction_duration_ms / 1000
    for _ in range(load.records):
        if pace is not None:
            await pace.wait()
        payload = next(load.payloads)
        began_ns = perf_counter_ns()
        delivery = await producer.send(load.topic, payload)
        meter.sent_at(began_ns, delivery, len(payload))
        if transaction is not None and trio.current_time() >= commit_at:
            await producer.flush()
            await transaction.end(committed=True)
            commit_at = trio.current_time() + load.transaction_duration_ms / 1000
    await producer.flush()
    if transaction is not None:
        await transaction.end(committed=True)


def _print(meter: SendMeter, ending: Ending, *, as_json: bool) -> None:
    if as_json:
        result = {
            **meter.total.as_json(),
            "failed": meter.failed,
            "steady_state": None if meter.steady is None else meter.steady.as_json(),
            "error": ending.error,
        }
        click.echo(json.dumps(result))
        return
    click.echo(meter.total.total_line())
    if meter.steady is not None:
        click.echo(meter.steady.total_line("steady state records"))
    if stdout_is_terminal():
        print_table(SUMMARY_COLUMNS, [each.cells() for each in (meter.total, meter.steady) if each is not None])
