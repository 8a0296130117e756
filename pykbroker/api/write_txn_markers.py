"""WriteTxnMarkers (key 27): another broker's coordinator, or an administrator, has decided a transaction.

Served are versions 1 and 2, which says the transaction version (KIP-1228). The answer comes when the markers are
replicated.
"""

from __future__ import annotations

import trio

from pykbroker.long_work import LongWork, each_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykbroker.replication.partition import Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.server.coordinators.marker import Marker
from pykbroker.server.coordinators.marker_appends import AppendedMarker
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.delayed_operation import PartitionChanges

APPENDED_AT_ONCE = 128
"""Markers in one turn of the event loop."""


@handles(WriteTxnMarkersRequest, needs=cluster(Operation.ALTER, Operation.CLUSTER_ACTION))
async def write_txn_markers(
    context: RequestContext[Broker], request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    writing = _Writing(context)
    if any(writing.is_of_nobody(each) for each in request.markers):
        return await context.turn.through(_failed(request))
    for each in request.markers:
        await writing.write(each)
    await writing.wait_until_replicated(context.node.config.int("request.timeout.ms"))
    return WriteTxnMarkersResponse(markers=writing.results())


def _failed(request: WriteTxnMarkersRequest) -> LongWork[WriteTxnMarkersResponse]:
    """Every partition has the error; of two markers of one producer the latter counts (`WriteTxnMarkersRequest`)."""
    markers: dict[int, WritableTxnMarkerResult] = {}
    for marker in request.markers:
        result = markers[marker.producer_id] = WritableTxnMarkerResult(producer_id=marker.producer_id)
        named: dict[str, dict[int, None]] = {}
        for topic in marker.topics:
            named.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        for name, indexes in named.items():
            rows = yield from each_of(
                list(indexes),
                lambda index: WritableTxnMarkerPartitionResult(
                    partition_index=index, error_code=ErrorCode.UNKNOWN_SERVER_ERROR
                ),
            )
            if rows:
                result.topics.append(WritableTxnMarkerTopicResult(name=name, partitions=rows))
    return WriteTxnMarkersResponse(markers=list(markers.values()))


class _Writing:
    def __init__(self, context: RequestContext[Broker]) -> None:
        self._appends = context.node.transactions.marker_appends
        self._partitions = context.node.partitions
        self._asked = 0
        self._unreplicated: list[tuple[AppendedMarker, WritableTxnMarkerPartitionResult]] = []
        self._written: dict[int, dict[str, dict[int, WritableTxnMarkerPartitionResult]]] = {}

    def is_of_nobody(self, asked: WritableTxnMarker) -> bool:
        """Tell whether a marker for partitions that are here is of no producer: Kafka fails to build such a batch."""
        return (asked.producer_id < 0 or asked.producer_epoch < 0) and any(
            isinstance(self._partitions.get_partition(topic.name, index), Partition)
            for topic in asked.topics
            for index in topic.partition_indexes
        )

    def results(self) -> list[WritableTxnMarkerResult]:
        """Return one result for each producer, topic and partition that had a marker, as Kafka's response has them."""
        return [
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(name=name, partitions=list(partitions.values()))
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in self._written.items()
        ]

    async def write(self, asked: WritableTxnMarker) -> None:
        marker = Marker(
            producer_id=asked.producer_id,
            producer_epoch=asked.producer_epoch,
            coordinator_epoch=asked.coordinator_epoch,
            is_commit=asked.transaction_result,
            transaction_version=asked.transaction_version,
        )
        for topic in asked.topics:
            for index in topic.partition_indexes:
                result = await self._append(topic.name, index, marker)
                of_producer = self._written.setdefault(asked.producer_id, {})
                of_producer.setdefault(topic.name, {})[index] = result

    async def _append(self, topic: str, index: int, marker: Marker) -> WritableTxnMarkerPartitionResult:
        self._asked += 1
        if self._asked % APPENDED_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        appended = self._appends.append(topic, index, marker)
        if isinstance(appended, ErrorCode):
            return WritableTxnMarkerPartitionResult(partition_index=index, error_code=appended)
        result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=ErrorCode.REQUEST_TIMED_OUT)
        if not _settle(appended, result):
            self._unreplicated.append((appended, result))
        return result

    async def wait_until_replicated(self, timeout_ms: int) -> None:
        """Results say REQUEST_TIMED_OUT until it is known better."""
        if not self._unreplicated:
            return
        await self._appends.flush(appended for appended, _ in self._unreplicated)
        partitions = [appended.partition for appended, _ in self._unreplicated]
        with PartitionChanges(partitions, timeout_ms=timeout_ms) as changes:
            while True:
                self._unreplicated = [each for each in self._unreplicated if not _settle(*each)]
                if not self._unreplicated or not await changes.next():
                    return


def _settle(appended: AppendedMarker, result: WritableTxnMarkerPartitionResult) -> bool:
    error_code = appended.settled()
    if error_code is None:
        return False
    result.error_code = error_code
    return True
