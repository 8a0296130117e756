"""IncrementalAlterConfigs (key 44): single keys of topics and brokers are set, deleted, added to (KIP-339).

Served are versions 0 and 1, which differ in their encoding only. The rules are the controller's (`metadata.configs`);
here it is refused to speak for another broker, as Kafka's brokers do.
"""

from __future__ import annotations

from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from pykbroker.server.dispatch import RequestContext, handles


@handles(IncrementalAlterConfigsRequest)
async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    node_id = context.broker.node_id
    foreign = [each for each in request.resources if _is_foreign(each, node_id)]
    request.resources = [each for each in request.resources if not _is_foreign(each, node_id)]
    response: IncrementalAlterConfigsResponse = await context.broker.controller.submit(request)
    response.responses += [
        AlterConfigsResourceResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"Unexpected broker id, expected {node_id}, but received {each.resource_name}",
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each in foreign
    ]
    return response


def _is_foreign(resource: IncrementalAlterConfigsRequestAlterConfigsResource, node_id: int) -> bool:
    name = resource.resource_name
    return resource.resource_type == BROKER_RESOURCE and name.isdecimal() and int(name) != node_id
