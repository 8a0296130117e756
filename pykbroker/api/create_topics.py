"""CreateTopics (key 19): topics, by numbers of partitions and replicas or by an explicit assignment.

Served are versions 2 to 7: 4 lets -1 stand for the broker's defaults (KIP-464), 5 returns the configuration (KIP-525),
7 the topic id (KIP-516).

The rules are the controller's (`metadata.topics`). The answer comes when this node's image and its replicas have the
change, so that every later request on any connection sees it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit
from .created_topics import wait_until_known
from .topic_rights import hide_configs, take_out_uncreatable


@handles_on_all_nodes(
    CreateTopicsRequest,
    needs=names(
        (Operation.CREATE, ResourceType.CLUSTER),
        (Operation.CREATE, ResourceType.TOPIC),
        (Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    ),
    most_entries=MANY_ENTRIES,
)
async def create_topics(context: RequestContext[ClusterNode], request: CreateTopicsRequest) -> CreateTopicsResponse:
    refused = await take_out_uncreatable(context, request)
    response: CreateTopicsResponse = await submit(context, request)
    response.topics += refused
    await hide_configs(context, response)
    if context.listener.kind == "broker" and not request.validate_only:
        await wait_until_known(context.node, response)
    return response
