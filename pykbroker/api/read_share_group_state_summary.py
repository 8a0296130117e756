"""ReadShareGroupStateSummary (key 87): the group coordinator asks where share partitions begin (KIP-932).

Served are versions 0 and 1, which says how many deliveries are complete (KIP-1226).
"""

from __future__ import annotations

from pykbroker.protocol.messages.share_state import ReadShareGroupStateSummaryRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.server.coordinators.share_state_questions import READ_SUMMARY
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .share_state_requests import answer_question


@handles(ReadShareGroupStateSummaryRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def read_share_group_state_summary(
    context: RequestContext[Broker], request: ReadShareGroupStateSummaryRequest
) -> Message:
    return await answer_question(context, READ_SUMMARY, request)
