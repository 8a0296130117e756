"""Rights of clients on the things that their requests name, for handlers that answer for each of them.

What a request needs as a whole stands where its handler is registered (`server.network.needs`). Where a node has no
authorizer, everybody may do everything, and nothing is looked up. Kafka's counterpart is `AuthHelper`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from pykbroker.security.acls.operations import SUPPORTED_OPERATIONS, Operation
from pykbroker.security.acls.resources import CLUSTER_NAME, ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode

NOT_ASKED: Final = -(1 << 31)
"""The field of authorized operations has this value if the request did not ask (KIP-430)."""

_NOBODY: Final[Collection[str]] = frozenset()
_STEPS_OF_DECISION: Final = 4


def is_allowed(
    context: RequestContext[ClusterNode],
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *,
    is_logged: bool = True,
) -> bool:
    """Tell whether the client may do that. is_logged: False where it has not asked for this very resource."""
    authorizer = context.node.authorizer
    return authorizer is None or authorizer.allows(
        context.connection, operation, resource_type, name, is_logged=is_logged
    )


def is_allowed_on_cluster(context: RequestContext[ClusterNode], *operations: Operation, is_logged: bool = True) -> bool:
    """Tell whether the client may do one of these to the cluster."""
    authorizer = context.node.authorizer
    return authorizer is None or authorizer.allows_on_cluster(context.connection, *operations, is_logged=is_logged)


async def denied(
    context: RequestContext[ClusterNode],
    operation: Operation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    is_logged: bool = True,
) -> Collection[str]:
    """Return those of the names with which the client may not do that."""
    authorizer = context.node.authorizer
    if authorizer is None:
        return _NOBODY
    refused: set[str] = set()
    for name in names:
        if name not in refused:
            if not authorizer.allows(context.connection, operation, resource_type, name, is_logged=is_logged):
                refused.add(name)
            await context.turn.took(_STEPS_OF_DECISION)
    return refused


def authorized_operations(context: RequestContext[ClusterNode], resource_type: ResourceType, name: str) -> int:
    """Return what the client may do with the resource, as a bit field (KIP-430)."""
    authorizer, supported = context.node.authorizer, SUPPORTED_OPERATIONS[resource_type]
    if authorizer is None:
        return supported
    return authorizer.allowed_operations(context.connection, supported, resource_type, name)


def authorized_operations_on_cluster(context: RequestContext[ClusterNode]) -> int:
    """Return what the client may do with the cluster; nothing where it may not describe it."""
    if not is_allowed_on_cluster(context, Operation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
