"""The rights on what has a configuration: those on the topic or the group, and on the cluster for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pykbroker.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode

from .authorization import is_allowed, is_allowed_on_cluster

_ResourceT = TypeVar(
    "_ResourceT", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource
)

_STEPS_OF_RESOURCE = 5


def check_resource(context: RequestContext[ClusterNode], operation: Operation, resource_type: int, name: str) -> None:
    """Raises ApiError where the client may not do that with the resource's configuration."""
    if resource_type == TOPIC_RESOURCE:
        may, denial = is_allowed(context, operation, ResourceType.TOPIC, name), ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif resource_type == GROUP_RESOURCE:
        may, denial = is_allowed(context, operation, ResourceType.GROUP, name), ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        may, denial = is_allowed_on_cluster(context, operation), ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not may:
        raise ApiError(denial, denial.description)


async def take_out_denied(
    context: RequestContext[ClusterNode], resources: list[_ResourceT]
) -> Sequence[AlterConfigsResourceResponse]:
    """Take the resources out whose configuration the client may not alter; return their rows of the response."""
    if context.node.authorizer is None:
        return ()
    rows, allowed = [], []
    for resource in resources:
        try:
            check_resource(context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
            allowed.append(resource)
        except ApiError as error:
            rows.append(
                AlterConfigsResourceResponse(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        await context.turn.took(_STEPS_OF_RESOURCE)
    resources[:] = allowed
    return rows
