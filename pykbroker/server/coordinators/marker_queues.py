"""Marker queues bring markers to the brokers that lead partitions of decided transactions: a queue for each of these
brokers.

What waits in a queue goes in one WriteTxnMarkers request, as much as it may hold, and few requests to a broker are in
flight, each on a connection of its own: the answer comes when all of its markers are replicated. So a broker that is
slow or dead has the transactions wait that have partitions there, and no others. Kafka's counterpart is the queues of
`TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from pykbroker.client.errors import ClientError
from pykbroker.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from ..network.inter_broker import InterBroker
from ..runtime.deferred_answer import DeferredAnswer
from ..runtime.signal import Signal

_log = logging.getLogger(__name__)

REQUESTS_IN_FLIGHT = 3
"""To one broker; a marker whose replication takes long keeps one of them."""
MOST_PARTITIONS = 1_000
"""Of one request, but for a single transaction that has more there."""


@dataclass(eq=False, slots=True)
class _Queued:
    """A queued marker waits to be sent and answered. answer: None where it is not known what became of the marker."""

    marker: WritableTxnMarker
    answer: DeferredAnswer[WritableTxnMarkerResult | None] = field(default_factory=DeferredAnswer)

    @property
    def size(self) -> int:
        return sum(len(topic.partition_indexes) for topic in self.marker.topics)


class _Queue:
    def __init__(self) -> None:
        self.waiting: dict[_Queued, None] = {}
        self._more = Signal()

    def put(self, queued: _Queued) -> None:
        self.waiting[queued] = None
        self._more.set()

    async def take(self) -> list[_Queued]:
        """Return what goes in the next request, when there is anything."""
        while not (taken := self._take_now()):
            await self._more.next()
        return taken

    def _take_now(self) -> list[_Queued]:
        """Take markers in their order. A producer has one marker in a request, since its answer names nothing else."""
        taken: list[_Queued] = []
        producer_ids: set[int] = set()
        room = MOST_PARTITIONS
        for queued in list(self.waiting):
            if queued.marker.producer_id in producer_ids:
                continue
            if taken and queued.size > room:
                break
            room -= queued.size
            producer_ids.add(queued.marker.producer_id)
            taken.append(queued)
            del self.waiting[queued]
        return taken


class MarkerQueues:
    """The queues of this node begin when a broker is asked first, and last as long as `run`."""

    def __init__(self, inter_broker: InterBroker) -> None:
        self._inter_broker = inter_broker
        self._queues: dict[int, _Queue] = {}
        self._nursery: trio.Nursery | None = None
        self._is_over = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what is asked for until the surrounding scope is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    task_status.started()
                    await trio.sleep_forever()
                finally:  # others have turns still while the tasks end, and may begin none
                    self._nursery = None
                    self._is_over = True
        finally:
            for queue in self._queues.values():
                for queued in list(queue.waiting):
                    queued.answer.complete(None)

    async def ask(self, node_id: int, marker: WritableTxnMarker) -> WritableTxnMarkerResult | None:
        """Return what the broker says of the marker; None where nobody knows what became of it, or this node ends."""
        if self._is_over:
            await trio.lowlevel.checkpoint()
            return None
        queue = self._queue(node_id)
        queued = _Queued(marker)
        queue.put(queued)
        try:
            return await queued.answer.wait()
        finally:
            queue.waiting.pop(queued, None)

    def _queue(self, node_id: int) -> _Queue:
        queue = self._queues.get(node_id)
        if queue is None:
            assert self._nursery is not None, "nothing is coordinated before `run`"
            queue = self._queues[node_id] = _Queue()
            for number in range(REQUESTS_IN_FLIGHT):
                self._nursery.start_soon(self._send_all, node_id, queue, f"markers {number}")
        return queue

    async def _send_all(self, node_id: int, queue: _Queue, purpose: str) -> None:
        while True:
            await self._send(node_id, await queue.take(), purpose)

    async def _send(self, node_id: int, taken: Sequence[_Queued], purpose: str) -> None:
        request = WriteTxnMarkersRequest(markers=[queued.marker for queued in taken])
        try:
            response = await self._inter_broker.request(node_id, request, WriteTxnMarkersResponse, purpose=purpose)
        except ClientError as error:
            _log.info(
                "the markers of %d transactions have not reached broker %d, and are sent again: %s",
                len(taken),
                node_id,
                error,
            )
        else:
            results = {result.producer_id: result for result in response.markers}
            for queued in taken:
                queued.answer.complete(results.get(queued.marker.producer_id))
        finally:
            for queued in taken:
                queued.answer.complete(None)
