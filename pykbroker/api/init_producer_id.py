"""InitProducerId (key 22): a producer id, and for a transactional producer an epoch that fences its predecessors.

Served are versions 0 to 5: 3 lets a producer say which id and epoch it has (KIP-360), 4 may be answered with
PRODUCER_FENCED, 5 with TRANSACTION_ABORTABLE (KIP-890). Without a transactional id there is always a new producer id.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import is_allowed, is_allowed_on_cluster
from .transaction_requests import submit_with_producer_id

_NONE = -1


@handles(
    InitProducerIdRequest,
    needs=names(
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        (Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
        (Operation.WRITE, ResourceType.TOPIC),
    ),
)
async def init_producer_id(context: RequestContext[Broker], request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        if not is_allowed(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return _failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not await _may_write_somewhere(context):
        return _failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE) or request.transactional_id == "":
        return _failed(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await _init_transactional(context, request.transactional_id, request)
    producer_id = await context.node.transactions.producer_ids.generate()
    if isinstance(producer_id, ErrorCode):
        return _failed(producer_id)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _may_write_somewhere(context: RequestContext[Broker]) -> bool:
    """A client that may write to any topic may have a producer id to write with (KIP-679)."""
    authorizer = context.node.authorizer
    if authorizer is None or is_allowed_on_cluster(context, Operation.IDEMPOTENT_WRITE, is_logged=False):
        return True
    return await context.turn.through(authorizer.allows_on_any(context.connection, Operation.WRITE, ResourceType.TOPIC))


async def _init_transactional(
    context: RequestContext[Broker], transactional_id: str, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    error_code = context.node.transactions.coordinator.refusal(request)
    if error_code is not None:
        return _failed(error_code)
    try:
        response: InitProducerIdResponse = await submit_with_producer_id(context, transactional_id, request)
    except ApiError as error:
        return _failed(error.code)
    return response


def _failed(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error_code, producer_id=_NONE, producer_epoch=_NONE)
