"""Blocks of producer ids for brokers (KIP-730): Kafka's `ProducerIdControlManager`."""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pykbroker.protocol.messages.metadata_records import ProducerIdsRecord
from pykbroker.protocol.schema import Message

from .brokers import check_epoch
from .controller_state import ControllerState

BLOCK_SIZE: Final = 1000
_LAST_PRODUCER_ID: Final = (1 << 63) - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest
) -> tuple[list[Message], AllocateProducerIdsResponse]:
    """An id of a block that was lost with its broker is never given out again."""
    try:
        check_epoch(state, request.broker_id, request.broker_epoch)
    except ApiError as error:
        return [], AllocateProducerIdsResponse(error_code=error.code)
    start = state.image.next_producer_id
    if start > _LAST_PRODUCER_ID - BLOCK_SIZE:
        return [], AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    return [record], AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
