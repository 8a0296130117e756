"""Changes of a listener's stores and log-ins are tried before they are forwarded, by the broker whose they are.

Kafka's `DynamicBrokerConfig.validate` does the same for stores, which are files of this broker, so that the controller
cannot read them. Kafka stores any JAAS line and makes no use of it; here it takes effect at once, and so it is checked.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from pykbroker.config import ConfigurationError, broker_keys, is_of_a_listener
from pykbroker.metadata.configs import changed_keys
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
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


async def refused_of_listeners(
    context: RequestContext[ClusterNode], resources: list[_ResourceT]
) -> list[AlterConfigsResourceResponse]:
    """Take the resources out of `resources` with which this broker could not go on, and return their rows.

    At most one is this broker's: those that are named twice have been taken out.
    """
    node = context.node
    if context.listener.kind != "broker" or (node.tls is None and node.sasl is None):
        return []
    for resource in resources:
        if resource.resource_type != BROKER_RESOURCE or resource.resource_name != str(node.node_id):
            continue
        try:
            changes = _changes(node, resource)
        except ApiError:
            break  # the controller says the same
        reason = await _refusal(node, changes)
        if reason is not None:
            resources.remove(resource)
            return [_row(resource, reason)]
        break
    return []


async def _refusal(node: ClusterNode, changes: dict[str, str | None]) -> str | None:
    """Return why these changes cannot be made; None where they can."""
    if node.tls is not None and any(map(is_of_a_listener, changes)):
        try:
            await node.threads.run(node.tls.check_changes, node.image, changes)
        except ConfigurationError as error:
            return (
                "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of "
                f"SSLFactory failed: {kafka_text(error)} for configuration Invalid dynamic configuration"
            )
    if node.sasl is None:
        return None
    from pykbroker.server.node.node_sasl import changes_sasl

    if changes_sasl(changes):
        try:
            await node.threads.run(node.sasl.check_changes, node.image, changes)
        except ConfigurationError as error:
            return str(error)
    return None


def _changes(node: ClusterNode, resource: _Resource) -> dict[str, str | None]:
    """The new value of each key that changes, None where it is deleted. Raises ApiError."""
    current = node.image.configs.get((BROKER_RESOURCE, resource.resource_name), {})
    if isinstance(resource, AlterConfigsRequestAlterConfigsResource):
        kept = {config.name: config.value for config in resource.configs}
        return {**dict.fromkeys(current), **kept}
    defaults = {each.name: node.config.text(each.name) or "" for each in resource.configs if each.name in broker_keys()}
    return changed_keys(resource, broker_keys(), current, defaults)


def _row(resource: _Resource, reason: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
