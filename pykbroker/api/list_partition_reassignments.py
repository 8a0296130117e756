"""ListPartitionReassignments (key 46): which partitions are on their way to other replicas (KIP-455).

Served is version 0. The controller answers: who has just asked it for a move finds that move.
"""

from __future__ import annotations

from pykbroker.protocol.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(
    ListPartitionReassignmentsRequest,
    needs=cluster(Operation.DESCRIBE),
    most_entries=MANY_ENTRIES,
)
async def list_partition_reassignments(
    context: RequestContext[ClusterNode], request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    response: ListPartitionReassignmentsResponse = await submit(context, request)
    return response
