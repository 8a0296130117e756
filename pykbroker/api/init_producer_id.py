"""InitProducerId (key 22): a producer id for an idempotent producer (KIP-98).

Served are versions 0 to 5. A producer that has an id already (KIP-360, version 3) and no transactional id gets a new
one, as in Kafka. Transactions are not offered: a transactional id is answered with UNSUPPORTED_VERSION, which
producers take as final.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.server.dispatch import RequestContext, handles

_NONE = -1


@handles(InitProducerIdRequest)
async def init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    error_code = _refusal(context, request)
    if error_code:
        return _failed(error_code)
    producer_id = await context.broker.producer_ids.generate()
    if isinstance(producer_id, ErrorCode):
        return _failed(producer_id)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(context: RequestContext, request: InitProducerIdRequest) -> ErrorCode:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    longest_ms = context.broker.config.int("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= longest_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.UNSUPPORTED_VERSION


def _failed(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error_code, producer_id=_NONE, producer_epoch=_NONE)
