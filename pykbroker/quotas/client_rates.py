"""Quotas on rates of clients: bytes of producers and of consumers, and the time that requests take.

Kafka's counterparts are `ClientQuotaManager` and `ClientRequestQuotaManager`.
"""

from __future__ import annotations

import math
from functools import partial

from .entities import ClientQuotaEntity
from .rate import MOST_THROTTLE_MS, QuotaWindows, Rate
from .tracked import MOST_SENSORS
from .tracked_clients import Told, TrackedClients


class _RateSensor:
    __slots__ = ("limit", "rate", "told", "used_ms")

    def __init__(self, windows: QuotaWindows) -> None:
        self.rate = Rate(windows)
        self.told = Told()
        self.limit = math.inf
        self.used_ms = 0


class ClientRates:
    """The rates of one key. is_set: whether it limits anybody, to be asked before anything else.

    most_throttle_ms: clients are throttled no longer than this at a time.
    """

    def __init__(
        self, windows: QuotaWindows, *, most_throttle_ms: int = MOST_THROTTLE_MS, most_clients: int = MOST_SENSORS
    ) -> None:
        self.is_set = False
        self._windows = windows
        self._most_throttle_ms = most_throttle_ms
        self._clients: TrackedClients[_RateSensor] = TrackedClients(partial(_RateSensor, windows), most=most_clients)

    def told(self, now_ms: int) -> list[Told]:
        """Return what metrics tell of the clients that are measured."""
        return self._clients.told(now_ms)

    @property
    def tracked_count(self) -> int:
        return len(self._clients)

    def set_limit(self, entity: ClientQuotaEntity, limit: float | None) -> None:
        self._clients.set_limit(entity, limit)
        self.is_set = self._clients.is_set

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count what a client has had, and return for how many milliseconds it has to be throttled."""
        sensor = self._clients.sensor(user, client_id, now_ms)
        if sensor is None:
            return 0
        told = sensor.told
        told.total += value
        throttle_ms = sensor.rate.record_against(sensor.limit, value, now_ms)
        if throttle_ms:
            throttle_ms = min(throttle_ms, self._most_throttle_ms)
            told.throttles += 1
            told.throttled_ms += throttle_ms
        return throttle_ms

    def take_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Uncount a value that the client did not get after all: a throttled Fetch is empty."""
        sensor = self._clients.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.rate.record(-value, now_ms)
            sensor.told.total -= value

    def look(self, user: str, client_id: str, now_ms: int) -> tuple[float, int] | None:
        """Return the client's rate, and for how long it would have to be throttled now; None where nothing was
        measured yet."""
        sensor = self._clients.look(user, client_id)
        if sensor is None:
            return None
        throttle_ms = min(sensor.rate.throttle_ms(sensor.limit, now_ms), self._most_throttle_ms)
        return sensor.rate.measure(now_ms), throttle_ms

    def most_at_once(self, user: str, client_id: str, now_ms: int) -> float:
        """Return what a client may get at once if it had nothing lately; more would be throttled for ever."""
        sensor = self._clients.sensor(user, client_id, now_ms)
        if sensor is None:
            return math.inf
        return sensor.limit * (self._windows.count - 1) * self._windows.size_ms / 1000
