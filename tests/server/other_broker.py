"""Broker 2 of a cluster, as node 1 meets it: markers are written there, and transactions are coordinated there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykbroker.server.network.handlers import HandlerTable, RequestContext
from pykbroker.server.network.listener import Listener
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.receive_buffer import BufferPool
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.network import SimulatedNetwork

from .serving import connection_quotas, dispatcher_of, limits, refusals_log

_SERVED = {18: (0, 4), 24: (0, 5), 27: (1, 2)}


class OtherBroker:
    """Answers each request with the next of `told`, and when there is none left that all is well.

    asked: epochs of the coordinators that sent markers, and where to; verified: whether partitions were only verified.
    takes_s: how long it takes until markers are written; before_verdict: what happens while partitions are verified.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[int, list[int]]] = []
        self.verified: list[tuple[bool, list[int]]] = []
        self.told: list[ErrorCode] = []
        self.takes_s = 0.0
        self.before_verdict: Callable[[], None] = lambda: None

    def _next(self) -> ErrorCode:
        return self.told.pop(0) if self.told else ErrorCode.NONE

    def handlers(self) -> HandlerTable:
        table = HandlerTable("broker")

        @table.handles(ApiVersionsRequest, needs=NOTHING)
        async def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
            rows = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in _SERVED.items()]
            return ApiVersionsResponse(api_keys=rows)

        @table.handles(WriteTxnMarkersRequest, needs=NOTHING)
        async def write(context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
            (marker,) = request.markers
            (topic,) = marker.topics
            self.asked.append((marker.coordinator_epoch, topic.partition_indexes))
            await trio.sleep(self.takes_s)
            error_code = self._next()
            results = [
                WritableTxnMarkerPartitionResult(partition_index=each, error_code=error_code)
                for each in topic.partition_indexes
            ]
            named = WritableTxnMarkerTopicResult(name=topic.name, partitions=results)
            return WriteTxnMarkersResponse(
                markers=[WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[named])]
            )

        @table.handles(AddPartitionsToTxnRequest, needs=NOTHING)
        async def add(context: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
            (transaction,) = request.transactions
            (topic,) = transaction.topics
            self.verified.append((transaction.verify_only, topic.partitions))
            self.before_verdict()
            error_code = self._next()
            results = [
                AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=error_code)
                for each in topic.partitions
            ]
            named = AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)
            result = AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=[named])
            return AddPartitionsToTxnResponse(results_by_transaction=[result])

        return table

    @asynccontextmanager
    async def serving(self, network: SimulatedNetwork) -> AsyncIterator[None]:
        acceptor = await network.listen("there", 9093)
        dispatcher = dispatcher_of(self.handlers())
        clock = SimulatedClock()
        refusals = RateLimitedLog(refusals_log, clock)
        quotas = connection_quotas("PLAINTEXT", clock)
        listener = Listener("PLAINTEXT", acceptor, dispatcher, limits(), BufferPool(), refusals, quotas)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve)
            yield
            listener.stop()
            nursery.cancel_scope.cancel()
