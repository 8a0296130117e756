"""AlterPartitionReassignments (key 45): partitions get other replicas (KIP-455).

Served are versions 0 and 1; 1 can forbid a change of the replication factor (KIP-860). What is granted stands in
`metadata.reassignments`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(
    AlterPartitionReassignmentsRequest,
    needs=cluster(Operation.ALTER),
    most_entries=MANY_ENTRIES,
)
async def alter_partition_reassignments(
    context: RequestContext[ClusterNode], request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    response: AlterPartitionReassignmentsResponse = await submit(context, request)
    return response
