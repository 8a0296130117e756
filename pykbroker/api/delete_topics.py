"""DeleteTopics (key 20): topics go, with their records and configurations.

Served are versions 1 to 6: 6 takes topic ids beside names (KIP-516).

The rules are the controller's (`metadata.topics`). The answer comes when this node's image and its replicas have the
change, so that every later request on any connection sees it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit
from .topic_rights import take_out_undeletable


@handles_on_all_nodes(
    DeleteTopicsRequest,
    needs=names(
        (Operation.DELETE, ResourceType.CLUSTER),
        (Operation.DELETE, ResourceType.TOPIC),
        (Operation.DESCRIBE, ResourceType.TOPIC),
    ),
    most_entries=MANY_ENTRIES,
)
async def delete_topics(context: RequestContext[ClusterNode], request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    refused = await take_out_undeletable(context, request)
    response: DeleteTopicsResponse = await submit(context, request)
    response.responses += refused
    return response
