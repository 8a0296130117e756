"""Producer ids for clients come out of blocks that the controller gives this broker: Kafka's `RPCProducerIdManager`."""

from __future__ import annotations

from collections.abc import Callable

import trio

from pykbroker.client.errors import code_of
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse

from ..quorum.controller_channel import ControllerChannel
from ..runtime.signal import Signal

_RETRY_S = 1.0


class ProducerIds:
    """The producer ids that are left of a block are lost when the node ends, so that no id is given out twice."""

    def __init__(self, controller: ControllerChannel, image: Callable[[], MetadataImage], node_id: int) -> None:
        self._controller = controller
        self._image = image
        self._node_id = node_id
        self._next = 0
        self._end = 0
        self._allocating = trio.Lock()
        self._wanted = Signal()

    async def generate(self) -> int | ErrorCode:
        """Return a new id, or why there is none now."""
        while True:
            producer_id = self.take()
            if producer_id is not None:
                return producer_id
            error_code = await self.stock()
            if error_code:
                return error_code

    def take(self) -> int | None:
        """Return a new id; None where the block is used up, which `run` sees to."""
        if self._next == self._end:
            self._wanted.set()
            return None
        self._next += 1
        return self._next - 1

    async def stock(self) -> ErrorCode:
        """Return when there is an id to take, or what stands in the way."""
        async with self._allocating:
            return ErrorCode.NONE if self._next < self._end else await self._allocate()

    async def run(self) -> None:
        """Get a new block for those who took and found none, until the surrounding scope is cancelled."""
        while True:
            await self._wanted.wait()
            error_code = await self.stock()
            if error_code:
                await trio.sleep(_RETRY_S)
                self._wanted.set()

    async def _allocate(self) -> ErrorCode:
        registration = self._image().brokers.get(self._node_id)
        if registration is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=registration.epoch)
        response: AllocateProducerIdsResponse = await self._controller.submit(request)
        if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if response.error_code:
            return code_of(response.error_code)
        self._next = response.producer_id_start
        self._end = response.producer_id_start + response.producer_id_len
        return ErrorCode.NONE
