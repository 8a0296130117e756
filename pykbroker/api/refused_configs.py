"""What a broker does not pass on to the controller: other brokers' configurations, and what it would not take itself.

Kafka's `ConfigAdminManager`: its controller leaves the checks of brokers' keys, and of what is named twice or has no
value, to brokers, so a broker makes them whoever is the controller. A node's loggers are changed by the node that is
asked, which Kafka's controller would take for itself: a broker without such settings refuses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeVar

from pykbroker.metadata.configs import DELETE, SET, check_broker_configs, check_keys, check_named_once
from pykbroker.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

_ResourceT = TypeVar(
    "_ResourceT", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource
)

_TYPES_OF_THE_CLUSTER: Final = {TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE}


def take_out_refused(resources: list[_ResourceT], node_id: int) -> list[AlterConfigsResourceResponse]:
    """Leaves what this broker may ask for, and answers the rest."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    rows: list[AlterConfigsResourceResponse] = []
    passed_on = []
    for resource in resources:
        try:
            check_named_once(times[resource.resource_type, resource.resource_name])
            changes = _changes(resource)
            check_keys(changes)
            if resource.resource_type not in _TYPES_OF_THE_CLUSTER:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
            if resource.resource_type == BROKER_RESOURCE:
                _check_broker(resource.resource_name, changes, node_id)
            passed_on.append(resource)
        except ApiError as error:
            rows.append(
                AlterConfigsResourceResponse(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
    resources[:] = passed_on
    return rows


def _changes(
    resource: AlterConfigsRequestAlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource,
) -> list[tuple[str, int, str | None]]:
    if isinstance(resource, AlterConfigsRequestAlterConfigsResource):
        return [(config.name, SET, config.value) for config in resource.configs]
    return [(config.name, config.config_operation, config.value) for config in resource.configs]


def _check_broker(name: str, changes: Sequence[tuple[str, int, str | None]], node_id: int) -> None:
    if name.isdecimal() and int(name) != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    set_values = {key: value for key, operation, value in changes if operation == SET and value is not None}
    unset = [key for key, operation, _ in changes if operation == DELETE]
    check_broker_configs(set_values, [*set_values, *unset], cluster_wide=name == "")
