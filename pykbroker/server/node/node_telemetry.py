"""Client telemetry of a broker: its requests, the threads that read pushes, and the end of clients that are silent.

The rules are `pykbroker.telemetry`'s. One push is read at a time: a thread that runs Python all the time takes the
interpreter from the event loop, and two would be no faster.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from pykbroker.config import BrokerConfig
from pykbroker.config.own_keys import MOST_CLIENT_SERIES
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from pykbroker.protocol.records.compression import MAX_PARTS, Compression, decompress
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.telemetry.client_instances import Client, ClientInstance
from pykbroker.telemetry.client_telemetry import ClientTelemetry
from pykbroker.telemetry.otlp import Pushed, read_push
from pykbroker.telemetry.pushed_metrics import totals
from pykbroker.telemetry.series import SeriesKey, SeriesValue
from pykbroker.telemetry.wire_fields import MalformedPush

from ..network.handlers import ConnectionState, RequestContext
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog
from ..runtime.threads import Threads
from ..runtime.turns import Turn

_log = logging.getLogger(__name__)

_SWEEP_S: Final = 5


class NodeTelemetry:
    """The telemetry of one broker's clients."""

    def __init__(self, config: BrokerConfig, rng: random.Random, *, clock: Clock, threads: Threads) -> None:
        self.clients = ClientTelemetry(config.int("telemetry.max.bytes"), rng, config.int(MOST_CLIENT_SERIES))
        self._clock = clock
        self._threads = threads
        self._reading = trio.Lock()
        self._refusals = RateLimitedLog(_log, clock)

    async def run(self) -> None:
        """Forget clients that are silent, until cancelled."""
        while True:
            await trio.sleep(_SWEEP_S)
            await Turn().through(self.clients.expire(self._clock.monotonic_ms()))

    async def subscribe(
        self, context: RequestContext[object], request: GetTelemetrySubscriptionsRequest
    ) -> GetTelemetrySubscriptionsResponse:
        work = self.clients.subscribe(request, _client(context), self._clock.monotonic_ms())
        response, stands_for = await context.turn.through(work)
        self._note(context.connection, stands_for)
        return response

    async def push(self, context: RequestContext[object], request: PushTelemetryRequest) -> PushTelemetryResponse:
        work = self.clients.pushes(request, _client(context), self._clock.monotonic_ms())
        found, stands_for = await context.turn.through(work)
        self._note(context.connection, stands_for)
        if not isinstance(found, ClientInstance):
            return PushTelemetryResponse(error_code=found)
        error_code = ErrorCode.NONE
        if len(request.metrics):
            if context.admission is not None:
                context.admission.leave()  # pushes of other clients may be read first
            error_code = await self._export(request, found)
        found.last_error = error_code
        return PushTelemetryResponse(error_code=error_code)

    async def _export(self, request: PushTelemetryRequest, instance: ClientInstance) -> ErrorCode:
        """Read the push, and show what it says from now on."""
        clients, metrics, counts = self.clients, self.clients.metrics, self.clients.counts
        async with self._reading:
            began_ns = time.perf_counter_ns()
            before = metrics.series_of(instance.instance_id)
            try:
                reading = partial(_read, request, clients.max_bytes, instance, metrics.most_of_client, before)
                metrics.take(instance, await self._threads.run(reading), self._clock.monotonic_ms())
            except (InvalidRecords, MalformedPush) as error:
                counts.errors += 1
                text = uuid_to_text(instance.instance_id)
                self._refusals.warning("the push of client instance %s cannot be read: %s", text, error)
                return ErrorCode.INVALID_RECORD
            counts.exports += 1
            counts.export_ns += time.perf_counter_ns() - began_ns
        return ErrorCode.NONE

    def _note(self, connection: ConnectionState, stands_for: bytes | None) -> None:
        """The connection stands for this client: when it ends, the client has left."""
        if stands_for is not None:
            connection.telemetry_ends = partial(self._left, stands_for)

    def _left(self, instance_id: bytes) -> None:
        self.clients.left(instance_id, self._clock.monotonic_ms())


def _client(context: RequestContext[object]) -> Client:
    connection = context.connection
    return Client(
        client_id=context.header.client_id or "",
        software_name=connection.client_software_name,
        software_version=connection.client_software_version,
        address=connection.client_address,
        port=None if connection.transport is None else connection.transport.peer.port,
    )


def _read(
    request: PushTelemetryRequest,
    max_bytes: int,
    instance: ClientInstance,
    most_series: int,
    before: Mapping[SeriesKey, SeriesValue],
) -> Pushed:
    """Raises InvalidRecords, MalformedPush. before: what the client had pushed."""
    codec = Compression(request.compression_type)
    unpacked = decompress(codec, request.metrics, max_bytes, max_parts=MAX_PARTS)
    return totals(read_push(unpacked, instance.subscribed.wants, most_series), before)
