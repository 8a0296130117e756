"""WriteShareGroupState (key 85): a partition's leader changes the state of share partitions (KIP-932).

Served are versions 0 and 1, which says how many deliveries are complete (KIP-1226).
"""

from __future__ import annotations

from pykbroker.protocol.messages.share_state import WriteShareGroupStateRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.server.coordinators.share_state_questions import WRITE
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .share_state_requests import answer_question


@handles(WriteShareGroupStateRequest, needs=cluster(Operation.CLUSTER_ACTION), most_entries=MANY_ENTRIES)
async def write_share_group_state(context: RequestContext[Broker], request: WriteShareGroupStateRequest) -> Message:
    return await answer_question(context, WRITE, request)
