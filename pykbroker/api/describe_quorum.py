"""DescribeQuorum (key 55): who leads the metadata quorum, how far its log is, who votes and who follows (KIP-595,
KIP-836, KIP-853).

Served are versions 0 to 2, on both kinds of listeners. The leader knows; a broker asks it, another controller says that
it does not lead.
"""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse
from pykbroker.raft.states import Role
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes
from pykbroker.server.quorum.quorum_description import NODES_SINCE, describe_quorum, leave_out_nodes

from .controller_requests import submit

_MOST_ENTRIES = 100
"""There is one partition to ask for."""


@handles_on_all_nodes(DescribeQuorumRequest, needs=cluster(Operation.DESCRIBE), most_entries=_MOST_ENTRIES)
async def handle(context: RequestContext[ClusterNode], request: DescribeQuorumRequest) -> Any:
    broker = context.node
    response: DescribeQuorumResponse
    if context.listener.kind == "broker" and broker.raft.role is not Role.LEADER:
        response = await submit(context, request)
    else:
        response = describe_quorum(broker.raft, broker.image, request, broker.clock)
    if context.header.api_version < NODES_SINCE:
        leave_out_nodes(response)
    return response
