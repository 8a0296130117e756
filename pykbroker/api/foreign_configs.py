"""What a broker does not pass on to the controller: other brokers' configurations. Kafka's `ConfigAdminManager`."""

from __future__ import annotations

from typing import TypeVar

from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

_ResourceT = TypeVar(
    "_ResourceT", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource
)


def take_out_foreign(resources: list[_ResourceT], node_id: int) -> list[AlterConfigsResourceResponse]:
    """Leaves what this broker may ask for, and answers the rest."""
    foreign = [each for each in resources if _is_foreign(each.resource_type, each.resource_name, node_id)]
    resources[:] = [each for each in resources if not _is_foreign(each.resource_type, each.resource_name, node_id)]
    return [
        AlterConfigsResourceResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"Unexpected broker id, expected {node_id}, but received {each.resource_name}",
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each in foreign
    ]


def _is_foreign(resource_type: int, name: str, node_id: int) -> bool:
    return resource_type == BROKER_RESOURCE and name.isdecimal() and int(name) != node_id
