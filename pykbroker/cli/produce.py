"""`pykbroker produce`: lines of standard input to records, with the flags of `kafka-console-producer`."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import click
import trio

from pykbroker.client.producer import Producer, open_producer
from pykbroker.protocol.records.compression import Compression

from .command import ClientCommand, CommandFailed, bootstrap_options, key_values, run
from .connect import open_cluster, read_client_properties, whole_number
from .interrupt import run_until_signal
from .line_reader import InvalidLine, LineReader

READ_BYTES = 256 * 1024
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    acks: int
    idempotent: bool
    compression: Compression
    linger_ms: int
    batch_size_bytes: int
    delivery_timeout_ms: int

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Kafka's names and defaults. Raises CommandFailed."""
        acks = properties.get("acks", "all")
        if acks not in ACKS:
            raise CommandFailed(f"acks must be one of all, -1, 0, 1, not '{acks}'")
        codec = properties.get("compression.type", "none")
        if codec.upper() not in Compression.__members__:
            known = ", ".join(one.name.lower() for one in Compression)
            raise CommandFailed(f"The compression codec must be one of {known}, not '{codec}'")
        # As in Kafka, weaker acks switch idempotence off unless it was asked for.
        default = "true" if ACKS[acks] == -1 else "false"
        return cls(
            acks=ACKS[acks],
            idempotent=properties.get("enable.idempotence", default).lower() == "true",
            compression=Compression[codec.upper()],
            linger_ms=whole_number(properties, "linger.ms", 0),
            batch_size_bytes=whole_number(properties, "batch.size", 16_384),
            delivery_timeout_ms=whole_number(properties, "delivery.timeout.ms", 120_000),
        )


@click.command("produce", cls=ClientCommand)
@bootstrap_options
@click.option("--topic", required=True, metavar="NAME", help="The topic to write to.")
@click.option(
    "--reader-property",
    "--property",
    "reader_properties",
    multiple=True,
    metavar="K=V",
    help="parse.key, parse.headers, key.separator, headers.delimiter, headers.separator, headers.key.separator, "
    "null.marker, ignore.error.",
)
@click.option("--reader-config", type=click.Path(path_type=Path), metavar="FILE", help="Reader properties in a file.")
@click.option(
    "--command-property",
    "--producer-property",
    "producer_properties",
    multiple=True,
    metavar="K=V",
    help="acks, enable.idempotence, compression.type, linger.ms, batch.size, delivery.timeout.ms, client.id.",
)
@click.option("--acks", "--request-required-acks", "acks", metavar="ACKS", help="all (the default), 1 or 0.")
@click.option(
    "--compression-codec",
    is_flag=False,
    flag_value="gzip",
    metavar="[CODEC]",
    help="none, gzip, snappy, lz4 or zstd; gzip when no codec is named.",
)
@click.option("--batch-size", metavar="BYTES", help="The size that a batch may reach.")
@click.option("--timeout", metavar="MS", help="How long a record may wait for its batch to fill.")
@click.option("--sync", is_flag=True, help="Wait for each record's acknowledgement before the next.")
def command(
    bootstrap_server: str,
    command_config: Path | None,
    topic: str,
    reader_properties: tuple[str, ...],
    reader_config: Path | None,
    producer_properties: tuple[str, ...],
    acks: str | None,
    compression_codec: str | None,
    batch_size: str | None,
    timeout: str | None,
    sync: bool,
) -> None:
    """Write the lines of standard input to a topic, one record a line."""
    flags = {"acks": acks, "compression.type": compression_codec, "batch.size": batch_size, "linger.ms": timeout}
    properties = {
        **read_client_properties(command_config),
        **{name: value for name, value in flags.items() if value is not None},
        **key_values(producer_properties, "--command-property"),
    }
    settings = ProducerSettings.from_properties(properties)
    try:
        reader = LineReader.from_properties(
            {**read_client_properties(reader_config), **key_values(reader_properties, "--reader-property")}
        )
    except InvalidLine as error:
        raise CommandFailed(str(error)) from None

    async def work() -> int:
        async with (
            open_cluster(bootstrap_server, properties, client_id="console-producer") as cluster,
            open_producer(
                cluster,
                acks=settings.acks,
                idempotent=settings.idempotent,
                compression=settings.compression,
                linger_ms=settings.linger_ms,
                batch_size_bytes=settings.batch_size_bytes,
                delivery_timeout_ms=settings.delivery_timeout_ms,
            ) as producer,
        ):
            await cluster.topic(topic, allow_auto_topic_creation=True)
            return await run_until_signal(lambda: _send_lines(producer, topic, reader, sync))

    exit_code = run(work)
    if exit_code:
        raise SystemExit(exit_code)


async def _send_lines(producer: Producer, topic: str, reader: LineReader, sync: bool) -> None:
    number = 0
    async with aclosing(stdin_lines()) as lines:
        async for line in lines:
            number += 1
            try:
                parsed = reader.parse(line, number)
            except InvalidLine as error:
                await producer.flush()
                raise CommandFailed(str(error)) from None
            delivery = await producer.send(topic, parsed.value, key=parsed.key, headers=parsed.headers)
            if sync:
                await delivery.wait()


async def stdin_lines() -> AsyncGenerator[bytes, None]:
    r"""Lines as they come, without `\n` or `\r\n`; a last line may lack its end."""
    if sys.stdin is None:
        return
    prompt = sys.stdin.isatty()
    rest = b""
    while True:
        if prompt:
            click.echo(">", nl=False)
        data = await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), READ_BYTES, abandon_on_cancel=True)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest
