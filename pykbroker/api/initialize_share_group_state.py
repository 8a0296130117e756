"""InitializeShareGroupState (key 83): the group coordinator has the state of share partitions begin (KIP-932).

Served is version 0.
"""

from __future__ import annotations

from pykbroker.protocol.messages.share_state import InitializeShareGroupStateRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.server.coordinators.share_state_questions import INITIALIZE
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .share_state_requests import answer_question


@handles(InitializeShareGroupStateRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def initialize_share_group_state(
    context: RequestContext[Broker], request: InitializeShareGroupStateRequest
) -> Message:
    return await answer_question(context, INITIALIZE, request)
