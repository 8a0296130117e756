"""ListConfigResources (key 74): the names of what has a configuration (KIP-1142).

Served are versions 0 and 1: 0 asks for client metrics subscriptions alone (KIP-1000); 1 asks for some types
of resources, or for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

_TYPES_SINCE: Final = 1
_KNOWN_TYPES: Final = (BROKER_RESOURCE, TOPIC_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)


@handles(ListConfigResourcesRequest, needs=cluster(Operation.DESCRIBE_CONFIGS))
async def list_config_resources(
    context: RequestContext[Broker], request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    types: Sequence[int] = request.resource_types or _KNOWN_TYPES
    if context.header.api_version < _TYPES_SINCE:
        types = (CLIENT_METRICS_RESOURCE,)
    if any(each not in _KNOWN_TYPES for each in types):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.node.image
    resources = []
    if BROKER_RESOURCE in types:
        resources += [
            ConfigResource(resource_type=BROKER_RESOURCE, resource_name=str(each)) for each in sorted(image.brokers)
        ]
    if BROKER_LOGGER_RESOURCE in types:
        resources += [
            ConfigResource(resource_type=BROKER_LOGGER_RESOURCE, resource_name=str(each))
            for each in sorted(image.brokers)
        ]
    if TOPIC_RESOURCE in types:
        for names in portions(list(image.topics)):
            resources += [ConfigResource(resource_type=TOPIC_RESOURCE, resource_name=name) for name in names]
            await context.turn.took(len(names))
    named = {GROUP_RESOURCE, CLIENT_METRICS_RESOURCE}.intersection(types)
    if named:
        for configured in portions(list(context.node.image.configs)):
            resources += [
                ConfigResource(resource_type=type_, resource_name=name) for type_, name in configured if type_ in named
            ]
            await context.turn.took(len(configured))
    return ListConfigResourcesResponse(config_resources=resources)
