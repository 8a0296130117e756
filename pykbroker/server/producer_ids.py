"""Producer ids for clients, out of blocks that the controller gives this broker: Kafka's `RPCProducerIdManager`."""

from __future__ import annotations

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse

from .controller_driver import ControllerDriver


class ProducerIds:
    """What is left of a block is lost when the node ends, so that no id is given out twice."""

    def __init__(self, controller: ControllerDriver, node_id: int) -> None:
        self._controller = controller
        self._node_id = node_id
        self._next = 0
        self._end = 0
        self._allocating = trio.Lock()

    async def generate(self) -> int | ErrorCode:
        """A new id, or why there is none now."""
        async with self._allocating:
            if self._next == self._end:
                error_code = await self._allocate()
                if error_code:
                    return error_code
            self._next += 1
            return self._next - 1

    async def _allocate(self) -> ErrorCode:
        registration = self._controller.image.brokers.get(self._node_id)
        if registration is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=registration.epoch)
        response: AllocateProducerIdsResponse = await self._controller.submit(request)
        if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if response.error_code:
            return ErrorCode(response.error_code)
        self._next = response.producer_id_start
        self._end = response.producer_id_start + response.producer_id_len
        return ErrorCode.NONE
