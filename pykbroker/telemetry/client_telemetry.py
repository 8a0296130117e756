"""The rules of GetTelemetrySubscriptions and PushTelemetry: who is asked for what, and when a push is taken.

A client gets an id of its own with its first request, asks what to push, and pushes at that interval until it says
that this push is its last. Whoever comes too early is told THROTTLING_QUOTA_EXCEEDED, unless the subscriptions have
changed meanwhile. The model is Kafka's `ClientMetricsManager`. Not here: what a push says (`otlp`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.uuids import UNASSIGNED_DIRECTORY, ZERO_UUID, random_uuid

from .client_instances import MOST_INSTANCES, Client, ClientInstance, ClientInstances
from .pushed_metrics import PushedMetrics
from .subscriptions import Subscriptions

ACCEPTED: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The compression types that clients are asked for, the best one first."""
_RESERVED: Final = frozenset((ZERO_UUID, UNASSIGNED_DIRECTORY))
_ASKS_AGAIN: Final = frozenset((ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
"""Errors behind which a client asks for its subscriptions at once."""


@dataclass(slots=True)
class TelemetryCounts:
    """Counts of what has happened since the start, over all clients."""

    unknown_subscriptions: int = 0
    throttled: int = 0
    exports: int = 0
    errors: int = 0
    export_ns: int = 0


class ClientTelemetry:
    """The telemetry of one broker's clients. max_bytes: of one push, before and behind decompression."""

    def __init__(
        self, max_bytes: int, rng: random.Random, most_series: int, *, most_instances: int = MOST_INSTANCES
    ) -> None:
        self.max_bytes = max_bytes
        self.subscriptions = Subscriptions()
        self.instances = ClientInstances(most_instances)
        self.metrics = PushedMetrics(most_series)
        self.counts = TelemetryCounts()
        self._rng = rng

    def subscribe(
        self, request: GetTelemetrySubscriptionsRequest, client: Client, now_ms: int
    ) -> LongWork[tuple[GetTelemetrySubscriptionsResponse, bytes | None]]:
        """Answer, with the id of an instance for which the client's connection stands from now on."""
        instance_id = bytes(request.client_instance_id)
        if instance_id == ZERO_UUID:
            instance_id = random_uuid(self._rng)
        instance, is_new = yield from self._instance(instance_id, client, now_ms)
        stands_for = instance_id if is_new else None
        if not instance.may_get(now_ms) and instance.last_error not in _ASKS_AGAIN:
            self.counts.throttled += 1
            return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED), stands_for
        instance.last_error = ErrorCode.NONE
        response = GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=[int(each) for each in ACCEPTED],
            push_interval_ms=instance.subscribed.interval_ms,
            telemetry_max_bytes=self.max_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.subscribed.metrics),
        )
        return response, stands_for

    def pushes(
        self, request: PushTelemetryRequest, client: Client, now_ms: int
    ) -> LongWork[tuple[ClientInstance | ErrorCode, bytes | None]]:
        """The instance whose push may be taken, or why not; and the id for which the connection stands from now on."""
        instance_id = bytes(request.client_instance_id)
        if instance_id in _RESERVED:
            return ErrorCode.INVALID_REQUEST, None
        instance, is_new = yield from self._instance(instance_id, client, now_ms)
        stands_for = instance_id if is_new else None
        try:
            self._check_push(request, instance, now_ms)
        except ApiError as error:
            instance.last_error = error.code
            return error.code, stands_for
        finally:
            instance.terminating = request.terminating
        return instance, stands_for

    def _check_push(self, request: PushTelemetryRequest, instance: ClientInstance, now_ms: int) -> None:
        """Raises ApiError, in Kafka's order."""
        if instance.terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if not instance.may_push(now_ms) and not request.terminating:
            self.counts.throttled += 1
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if request.subscription_id != instance.subscription_id:
            self.counts.unknown_subscriptions += 1
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if not 0 <= request.compression_type <= max(Compression):
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(request.metrics) > self.max_bytes:
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _instance(self, instance_id: bytes, client: Client, now_ms: int) -> LongWork[tuple[ClientInstance, bool]]:
        """The instance as of the latest subscriptions, and whether it was made for that."""
        found = self.instances.get(instance_id)
        is_new = found is None or found.version < self.subscriptions.version
        if found is None or is_new:
            client = client.cut() if found is None else found.client
            version, subscribed = yield from self.subscriptions.asked_of(client.matched_by(instance_id))
            found = self.instances.get(instance_id)
            if found is None or found.version < version:
                found = ClientInstance(instance_id, client, subscribed, version)
                self.instances.put(found)
        found.expires_ms = now_ms + found.life_ms
        return found, is_new

    def left(self, instance_id: bytes, now_ms: int) -> None:
        """Forget an instance whose connection has ended; its metrics are shown for some time more."""
        self.instances.remove(instance_id)
        self.metrics.left(instance_id, now_ms)

    def expire(self, now_ms: int) -> LongWork[None]:
        """Forget who was not heard of for too long."""
        yield from self.instances.expire(now_ms)
        yield from self.metrics.expire(now_ms)
