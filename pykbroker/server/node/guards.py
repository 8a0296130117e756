"""A guard stands before a handler and lets in who has the rights on the cluster that the request needs.

On controllers' listeners, which serve before the ACLs are loaded (`early.start.listeners`), a guard also keeps those
out of whom nothing can be said yet. Without an authorizer a guard asks nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.schema import Message

from ..network.handlers import RequestContext
from ..network.needs import NOTHING, Needs
from .broker import ClusterNode
from .node_authorizer import NodeAuthorizer
from .refusals import refused

NodeT = TypeVar("NodeT", bound=ClusterNode)
_Function: TypeAlias = Callable[[RequestContext[NodeT], Any], Awaitable[Message | None]]


def guarded_on_brokers(function: _Function[NodeT], needs: Needs) -> _Function[NodeT]:
    """Brokers' listeners serve when the ACLs are loaded, and what a request names is the handler's business."""
    return _guarded(function, needs) if needs.on_cluster else function


def guarded_on_controllers(function: _Function[NodeT], needs: Needs) -> _Function[NodeT]:
    return function if needs == NOTHING else _guarded(function, needs)


def _guarded(function: _Function[NodeT], needs: Needs) -> _Function[NodeT]:
    async def look_first(context: RequestContext[NodeT], request: Message) -> Message | None:
        authorizer = context.node.authorizer
        if authorizer is not None:
            error = _objection(authorizer, context, needs)
            if error is not None:
                return await context.turn.through(refused(request, context.header.api_version, error))
        return await function(context, request)

    return look_first


def _objection(authorizer: NodeAuthorizer, context: RequestContext[NodeT], needs: Needs) -> ApiError | None:
    client = context.connection
    if not authorizer.knows(client):
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The authorizer is not ready: the ACLs are not loaded yet.")
    if not needs.on_cluster or authorizer.allows_on_cluster(client, *needs.on_cluster):
        return None
    wanted = " or ".join(each.name for each in needs.on_cluster)
    return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"This needs {wanted} on the cluster.")
