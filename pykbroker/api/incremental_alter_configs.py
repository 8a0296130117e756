"""IncrementalAlterConfigs (key 44): single keys of topics, brokers and groups are set, deleted, added to (KIP-339).

Served are versions 0 and 1, which differ in their encoding only. The rules are the controller's (`metadata.configs`);
a broker checks brokers' keys itself, and does not speak for another one, as Kafka's. Loggers are this node's own.
"""

from __future__ import annotations

from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .broker_loggers import altered_loggers
from .config_preprocessing import refused_here
from .config_resources import take_out_denied
from .controller_requests import submit
from .listener_changes import refused_of_listeners


@handles_on_all_nodes(
    IncrementalAlterConfigsRequest,
    needs=names(
        (Operation.ALTER_CONFIGS, ResourceType.TOPIC),
        (Operation.ALTER_CONFIGS, ResourceType.GROUP),
        (Operation.ALTER_CONFIGS, ResourceType.CLUSTER),
    ),
    most_entries=MANY_ENTRIES,
)
async def incremental_alter_configs(
    context: RequestContext[ClusterNode], request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    rows = await altered_loggers(context, request)
    rows += refused_here(context, request.resources)
    rows += await take_out_denied(context, request.resources)
    rows += await refused_of_listeners(context, request.resources)
    if rows and not request.resources:
        return IncrementalAlterConfigsResponse(responses=rows)  # loggers change without a controller
    response: IncrementalAlterConfigsResponse = await submit(context, request)
    response.responses += rows
    return response
