"""Changes of a listener's key and trust stores are tried before they are forwarded, by the broker whose they are.

Kafka's `DynamicBrokerConfig.validate` does the same. Stores are files of this broker, which the controller cannot read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from pykbroker.config import ConfigurationError, is_of_a_listener
from pykbroker.metadata.configs import DELETE, SET
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.security.tls.refusals import kafka_text
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode

_Resource: TypeAlias = AlterConfigsRequestAlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource
_ResourceT = TypeVar(
    "_ResourceT", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource
)


async def refused_stores(
    context: RequestContext[ClusterNode], resources: list[_ResourceT]
) -> list[AlterConfigsResourceResponse]:
    """Take the resources out of `resources` whose stores this broker could not use, and return their rows.

    At most one is this broker's: those that are named twice have been taken out.
    """
    node = context.node
    if node.tls is None or context.listener.kind != "broker":
        return []
    for resource in resources:
        if resource.resource_type != BROKER_RESOURCE or resource.resource_name != str(node.node_id):
            continue
        changes = _changes(resource, node.image.configs.get((BROKER_RESOURCE, resource.resource_name), {}))
        if not any(map(is_of_a_listener, changes)):
            break
        try:
            await node.threads.run(node.tls.check_changes, node.image, changes)
        except ConfigurationError as error:
            resources.remove(resource)
            return [_row(resource, kafka_text(error))]
        break
    return []


def _changes(resource: _Resource, current: Mapping[str, str]) -> dict[str, str | None]:
    if isinstance(resource, AlterConfigsRequestAlterConfigsResource):
        kept = {config.name: config.value for config in resource.configs}
        return {**dict.fromkeys(current), **kept}
    return {
        config.name: config.value if config.config_operation == SET else None
        for config in resource.configs
        if config.config_operation in (SET, DELETE)
    }


def _row(resource: _Resource, reason: str) -> AlterConfigsResourceResponse:
    message = (
        "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of "
        f"SSLFactory failed: {reason} for configuration Invalid dynamic configuration"
    )
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
