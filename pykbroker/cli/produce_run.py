"""The run of `pykbroker produce`: records from their source to the cluster, and the count of what became of them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing

import click

from pykbroker.client.producer import Producer, open_producer

from .command import CommandFailed, run
from .connect import open_cluster, suggesting_topics
from .interrupt import run_until_signal
from .line_reader import InvalidLine
from .output import is_terminal, say_at_once
from .produce_flags import ProduceFlags
from .producer_settings import ProducerSettings
from .records.input_lines import lines_of, opened, whole_file
from .records.outgoing import Outgoing, Parse
from .records.pace import Pace
from .records.progress import progress_to


class Sending:
    """The records of one run, on their way. `described` says at any time how many there are and what became of them."""

    def __init__(self, flags: ProduceFlags, settings: ProducerSettings) -> None:
        self._flags = flags
        self._settings = settings
        self._parse: Parse = flags.parse()
        self._producer: Producer | None = None
        self._sent = 0

    @property
    def has_begun(self) -> bool:
        """True once there was a broker."""
        return self._producer is not None

    def described(self) -> str:
        """Return `2 records acknowledged`, with the others where there are some."""
        acknowledged = 0 if self._producer is None else self._producer.acknowledged
        if self._settings.acks == 0:
            return (
                f"{_records(acknowledged)} sent, which acks=0 leaves without acknowledgement{self._rest(acknowledged)}"
            )
        return f"{_records(acknowledged)} acknowledged{self._rest(acknowledged)}"

    def _rest(self, acknowledged: int) -> str:
        rest = self._sent - acknowledged
        return f", {_records(rest)} not" if rest else ""

    async def run(self) -> None:
        """Raises CommandFailed, ClientError."""
        flags, settings = self._flags, self._settings
        async with (
            open_cluster(flags.bootstrap_server, flags.properties, client_id="console-producer") as cluster,
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
            self._producer = producer
            async with suggesting_topics(cluster):
                await cluster.topic(flags.topic, allow_auto_topic_creation=True)
            try:
                await self._send_all(producer)
            except InvalidLine as error:
                await producer.flush()
                raise CommandFailed(f"{error}; that and what follows is not sent") from None

    async def _send_all(self, producer: Producer) -> None:
        flags = self._flags
        if flags.is_one_tombstone:
            await self._send(producer, Outgoing(flags.line_format.key, None, *self._constants()))
        elif flags.file is None:
            if sys.stdin is not None:
                lines = lines_of(sys.stdin.fileno(), prompts=is_terminal(sys.stdin) and is_terminal(sys.stdout))
                await self._send_lines(producer, lines)
        else:
            descriptor = await opened(flags.file)
            try:
                await self._send_file(producer, descriptor)
            finally:
                os.close(descriptor)

    def _constants(self) -> tuple[tuple[tuple[str, bytes | None], ...], None, int | None]:
        return self._flags.line_format.extra_headers, None, self._flags.partition

    async def _send_file(self, producer: Producer, descriptor: int) -> None:
        flags = self._flags
        assert flags.file is not None
        if flags.is_whole_file:
            value = await whole_file(flags.file, descriptor)
            try:
                value = flags.value_codec.from_line(value)
            except InvalidLine as error:
                raise CommandFailed(f"{flags.file}: {error}") from None
            await self._send(producer, Outgoing(flags.line_format.key, value, *self._constants()))
            return
        with progress_to(os.fstat(descriptor).st_size, "bytes") as advance:
            await self._send_lines(producer, lines_of(descriptor, advance=advance))

    async def _send_lines(self, producer: Producer, lines: AsyncGenerator[bytes, None]) -> None:
        pace = None if self._flags.rate is None else Pace(self._flags.rate)
        number = 0
        async with aclosing(lines):
            async for line in lines:
                number += 1
                outgoing = self._parse(line, number)
                if pace is not None:
                    await pace.wait()
                await self._send(producer, outgoing)

    async def _send(self, producer: Producer, outgoing: Outgoing) -> None:
        delivery = await producer.send(
            self._flags.topic,
            outgoing.value,
            key=outgoing.key,
            headers=outgoing.headers,
            partition=outgoing.partition,
            timestamp_ms=outgoing.timestamp_ms,
        )
        self._sent += 1
        if self._flags.sync:
            await delivery.wait()


def produce(flags: ProduceFlags) -> None:
    """Raises CommandFailed, or SystemExit with the exit code of the command."""
    sending = Sending(flags, ProducerSettings.from_properties(flags.properties))
    try:
        exit_code = run(run_until_signal, sending.run)
    except CommandFailed as error:
        if not sending.has_begun:
            raise
        raise CommandFailed(f"{error.message} ({sending.described()})") from None
    if exit_code:
        say_at_once(f"Interrupted: {sending.described()}")
        raise SystemExit(exit_code)
    click.echo(sending.described(), err=True)


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
