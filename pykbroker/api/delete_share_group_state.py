"""DeleteShareGroupState (key 86): the group coordinator has the state of share partitions end (KIP-932).

Served is version 0.
"""

from __future__ import annotations

from pykbroker.protocol.messages.share_state import DeleteShareGroupStateRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.server.coordinators.share_state_questions import DELETE
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .share_state_requests import answer_question


@handles(DeleteShareGroupStateRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def delete_share_group_state(context: RequestContext[Broker], request: DeleteShareGroupStateRequest) -> Message:
    return await answer_question(context, DELETE, request)
