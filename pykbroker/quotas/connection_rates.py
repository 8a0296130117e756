"""Rates at which connections are let in: of a broker, of a listener, and of an address (KIP-402, KIP-612).

Kafka's counterpart is this part of `ConnectionQuotas`. Who counts connections that are there is not here.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from .rate import QuotaWindows, Rate
from .tracked import MOST_SENSORS, TrackedSensors

UNLIMITED: Final = 2**31 - 1


class ConnectionRate:
    """The rate of new connections and its limit, which may change while it is measured."""

    __slots__ = ("_rate", "_windows", "limit", "used_ms")

    def __init__(self, windows: QuotaWindows, limit: float = UNLIMITED) -> None:
        self._rate = Rate(windows)
        self._windows = windows
        self.limit = limit
        self.used_ms = 0

    def record(self, now_ms: int) -> int:
        """Count a connection, and return how many milliseconds the next one has to wait: one window at most."""
        if self.limit >= UNLIMITED:
            return 0
        return min(self._rate.record_against(self.limit, 1, now_ms), self._windows.size_ms)

    def take_back(self, now_ms: int) -> None:
        """Uncount a connection that was refused."""
        if self.limit < UNLIMITED:
            self._rate.record(-1, now_ms)


class AddressConnectionRates:
    """The rates of addresses, by their own quotas or by the default one."""

    def __init__(self, windows: QuotaWindows, *, most_addresses: int = MOST_SENSORS) -> None:
        self._default: float = math.inf
        self._limits: dict[str, float] = {}
        self._tracked: TrackedSensors[str, ConnectionRate] = TrackedSensors(
            partial(ConnectionRate, windows), most=most_addresses
        )

    @property
    def is_set(self) -> bool:
        return bool(self._limits) or self._default < UNLIMITED

    def set_limit(self, address: str | None, limit: float | None) -> None:
        """Set the quota of an address, or that of all others where none is given; a limit of None is no quota."""
        if address is None:
            self._default = math.inf if limit is None else limit
        elif limit is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = limit

    def record(self, address: str, now_ms: int) -> int:
        """Count a connection, and return for how long it is to be held before it is closed; 0 lets it in.

        Where it is not let in, it does not count.
        """
        limit = self._limits.get(address, self._default)
        if limit >= UNLIMITED:
            return 0
        rate = self._tracked.get(address, now_ms)
        rate.limit = limit
        throttle_ms = rate.record(now_ms)
        if throttle_ms > 0:
            rate.take_back(now_ms)
        return throttle_ms
