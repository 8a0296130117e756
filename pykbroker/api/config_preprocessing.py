"""The checks that a broker makes before it forwards changes of configurations to the controller.

Kafka's `ConfigAdminManager.preprocess` does the same: a controller leaves the checks of brokers' keys, of keys that are
named twice and of keys without a value to brokers, so a broker makes them whichever node is the controller. A node's
loggers are changed by the node that gets the request; this software has no such setting, so the broker answers them
with INVALID_REQUEST, where Kafka's controller would take the change for its own loggers.
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


def preprocess(resources: list[_ResourceT], node_id: int) -> list[AlterConfigsResourceResponse]:
    """Take the resources out of `resources` that are not to be forwarded, and return their rows of the response."""
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
