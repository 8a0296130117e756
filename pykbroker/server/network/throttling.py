"""Clients beyond their quotas are throttled: the answer says for how long, and is sent at once; then nothing more of
the client's connection is served until that time is over (KIP-219).

The dispatcher has each request measured by its connection's `RequestMeter` where any quota is set; `Connection` does
the muting. Where no quota is set nothing here is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pykbroker.quotas.client_quotas import ClientQuotas

from ..runtime.clock import Clock
from .handlers import ConnectionState
from .request_meter import RequestMeter


class Throttling:
    """The throttling of one node's clients. nanos: the clock that tells how long the loop was held."""

    def __init__(self, quotas: ClientQuotas, clock: Clock, *, nanos: Callable[[], int] = time.perf_counter_ns) -> None:
        self.quotas = quotas
        self._clock = clock
        self._nanos = nanos

    def begin(self, connection: ConnectionState, size_bytes: int) -> RequestMeter:
        """Open the connection's meter for a request. size_bytes: of its frame."""
        meter = connection.meter
        if meter is None:
            meter = connection.meter = RequestMeter(self.quotas, self._clock, self._nanos, connection)
        meter.begin(size_bytes)
        return meter
