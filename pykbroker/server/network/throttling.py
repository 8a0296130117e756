"""Clients beyond their quotas are throttled: the answer says for how long, and is sent at once; then nothing more of
the client's connection is served until that time is over (KIP-219).

The dispatcher has each request measured by a `RequestMeter` where any quota is set; `Connection` does the muting. Where
no quota is set nothing here is called.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from pykbroker.protocol.schema import Message
from pykbroker.quotas.client_quotas import ClientQuotas

from ..runtime.clock import Clock
from .handlers import ConnectionState, Handler, NodeT, RequestContext
from .request_meter import RequestMeter, Timed

T = TypeVar("T")


class Throttling:
    """The throttling of one node's clients. nanos: the clock that tells how long the loop was held."""

    def __init__(self, quotas: ClientQuotas, clock: Clock, *, nanos: Callable[[], int] = time.perf_counter_ns) -> None:
        self.quotas = quotas
        self._clock = clock
        self._nanos = nanos

    async def measured(self, begin: Callable[[], Awaitable[T]], connection: ConnectionState, size_bytes: int) -> T:
        """Return what `begin` gives, with a meter at hand meanwhile. size_bytes: of the request's frame."""
        meter = connection.meter = RequestMeter(self.quotas, self._clock, self._nanos, connection, size_bytes)
        try:
            if not self.quotas.request.is_set:
                return await begin()
            answer = await Timed(begin, meter)
            meter.count_rest()
            return answer
        finally:
            connection.meter = None


def settling(handler: Handler[NodeT]) -> Handler[NodeT]:
    """The handler with its client throttled for what it has done."""
    function, api_key = handler.function, handler.api_key

    async def settled(context: RequestContext[NodeT], request: Any) -> Message | None:
        response = await function(context, request)
        meter = context.connection.meter
        if meter is not None:
            meter.settle(api_key, request, response)
        return response

    return replace(handler, function=settled)
