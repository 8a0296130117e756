"""The handlers of transaction requests share the way to the coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.state_machine import CoordinatorContext

from .authorization import is_allowed

if TYPE_CHECKING:
    from pykbroker.transactions.shard import TransactionRequest


def check_transactional_id(context: RequestContext[Broker], transactional_id: str) -> None:
    """Raises ApiError where the client may not write with the transactional id."""
    if not is_allowed(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


async def submit(context: RequestContext[Broker], transactional_id: str, request: TransactionRequest) -> Any:
    """The response of the coordinator. Raises ApiError."""
    coordinator = context.node.transactions.coordinator
    return await coordinator.submit(transactional_id, request, transaction_context(context))


async def submit_with_producer_id(
    context: RequestContext[Broker], transactional_id: str, request: TransactionRequest
) -> Any:
    """A request that may need a new producer id waits until there is one to take, if the controller has any.

    Raises ApiError.
    """
    error_code = await context.node.transactions.producer_ids.stock()
    if error_code is not ErrorCode.NONE:
        raise ApiError(error_code)
    return await submit(context, transactional_id, request)


def transaction_context(context: RequestContext[Broker]) -> CoordinatorContext:
    return CoordinatorContext(
        api_version=context.header.api_version,
        client_id=context.header.client_id or "",
        client_host=f"/{context.client_address}",
        principal=context.principal,
    )
