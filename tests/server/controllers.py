"""Controllers of a test's own on a simulated network, for the channel that looks for the active one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.listener import Listener
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.node_connections import NodeAddress
from pykbroker.server.network.receive_buffer import BufferPool
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.network import SimulatedNetwork

from .serving import connection_quotas, dispatcher_of, limits, refusals_log

Answer = Callable[[Any], Awaitable[Message]]


class TestController:
    """Answers one kind of request, or some, as the test says; `asked` are the requests that came."""

    __test__ = False

    def __init__(self, node_id: int, request_type: type[Message], answer: Answer, *others: type[Message]) -> None:
        self.destination = NodeAddress(f"controller {node_id}", f"host{node_id}", 9093)
        self.asked: list[Any] = []
        self._request_types = (request_type, *others)
        self._answer = answer

    def _handlers(self) -> HandlerTable:
        table = HandlerTable("controller")
        schemas = [each.__schema__ for each in self._request_types]
        served = {18: (0, 4)} | {schema.api_key or 0: schema.versions for schema in schemas}

        @table.handles(ApiVersionsRequest, needs=NOTHING)
        async def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
            rows = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in served.items()]
            return ApiVersionsResponse(api_keys=rows)

        async def answer(context: RequestContext, request: Message) -> Message:
            self.asked.append(request)
            return await self._answer(request)

        for each in self._request_types:
            table.handles(each, needs=NOTHING)(answer)
        return table

    @asynccontextmanager
    async def serving(self, network: SimulatedNetwork) -> AsyncIterator[None]:
        acceptor = await network.listen(self.destination.host, self.destination.port)
        dispatcher = dispatcher_of(self._handlers())
        clock = SimulatedClock()
        refusals = RateLimitedLog(refusals_log, clock)
        quotas = connection_quotas("CONTROLLER", clock)
        listener = Listener("CONTROLLER", acceptor, dispatcher, limits(), BufferPool(), refusals, quotas)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve)
            yield
            listener.stop()
            nursery.cancel_scope.cancel()
