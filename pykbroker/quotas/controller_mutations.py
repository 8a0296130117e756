"""Quotas on changes of the metadata: how many partitions a client may create and delete (KIP-599).

A request of a version that knows THROTTLING_QUOTA_EXCEEDED is strict: of its topics those get it that come when the
bucket is overdrawn. An older one does all that it asks for, and is throttled. Kafka's counterpart is
`ControllerMutationQuotaManager`.
"""

from __future__ import annotations

import math
from functools import partial

from .entities import ClientQuotaEntity
from .rate import QuotaWindows
from .token_bucket import TokenBucket
from .tracked import MOST_SENSORS
from .tracked_clients import Told, TrackedClients


class _BucketSensor:
    __slots__ = ("bucket", "limit", "told", "used_ms")

    def __init__(self, windows: QuotaWindows) -> None:
        self.bucket = TokenBucket(windows)
        self.told = Told()
        self.limit = math.inf
        self.used_ms = 0


class ControllerMutationQuota:
    """The quota as one request has it; `throttle_ms` says what became of it."""

    __slots__ = ("_is_strict", "_recorded_ms", "_sensor", "_throttle_ms")

    def __init__(self, sensor: _BucketSensor, *, is_strict: bool) -> None:
        self._sensor = sensor
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._recorded_ms = 0

    def admits(self, partitions: int, now_ms: int) -> bool:
        """Count the partitions of one topic. Where they may not be, nothing is counted."""
        bucket, limit = self._sensor.bucket, self._sensor.limit
        told = self._sensor.told
        if not self._is_strict:
            bucket.take(partitions, limit, now_ms)
            told.total += partitions
        throttle_ms = bucket.throttle_ms(limit, now_ms)
        if throttle_ms > 0:
            told.throttles += not self._throttle_ms
            told.throttled_ms += max(throttle_ms - self._throttle_ms, 0)
            self._throttle_ms, self._recorded_ms = throttle_ms, now_ms
            return not self._is_strict
        if self._is_strict:
            bucket.take(partitions, limit, now_ms)
            told.total += partitions
        return True

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long the client has to be throttled, less the time that has gone by meanwhile."""
        return max(0, self._throttle_ms - (now_ms - self._recorded_ms))


class ControllerMutations:
    """The quotas of all clients. is_set: whether there is any."""

    def __init__(self, windows: QuotaWindows, *, most_clients: int = MOST_SENSORS) -> None:
        self.is_set = False
        self._clients: TrackedClients[_BucketSensor] = TrackedClients(
            partial(_BucketSensor, windows), most=most_clients
        )

    def set_limit(self, entity: ClientQuotaEntity, limit: float | None) -> None:
        self._clients.set_limit(entity, limit)
        self.is_set = self._clients.is_set

    def told(self, now_ms: int) -> list[Told]:
        """Return what metrics tell of the clients that are measured."""
        return self._clients.told(now_ms)

    def throttle_ms(self, user: str, client_id: str, now_ms: int) -> int | None:
        """Return for how long the client's bucket stays overdrawn; None where nothing was measured yet."""
        sensor = self._clients.look(user, client_id)
        return None if sensor is None else sensor.bucket.throttle_ms(sensor.limit, now_ms)

    def quota_of(self, user: str, client_id: str, now_ms: int, *, is_strict: bool) -> ControllerMutationQuota | None:
        """The quota for one request of a client; None where nothing limits it."""
        sensor = self._clients.sensor(user, client_id, now_ms)
        return None if sensor is None else ControllerMutationQuota(sensor, is_strict=is_strict)
