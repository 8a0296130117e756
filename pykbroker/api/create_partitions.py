"""CreatePartitions (key 37): topics get more partitions, never fewer (KIP-195).

Served are versions 0 to 3, which do not differ in what they say.

The rules are the controller's (`metadata.topics`). The answer comes when this node's image and its replicas have the
change, so that every later request on any connection sees it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit
from .topic_rights import take_out_unalterable


@handles_on_all_nodes(
    CreatePartitionsRequest, needs=names((Operation.ALTER, ResourceType.TOPIC)), most_entries=MANY_ENTRIES
)
async def create_partitions(
    context: RequestContext[ClusterNode], request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    refused = await take_out_unalterable(context, request)
    response: CreatePartitionsResponse = await submit(context, request)
    response.results += refused
    return response
