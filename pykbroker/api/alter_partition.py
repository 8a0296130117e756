"""AlterPartition (key 56): a partition's leader proposes new in-sync replicas to the controller.

Served are versions 2 and 3: 3 sends the epoch of each broker along (KIP-903). The rules stand in
`metadata.alter_partition`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import AlterPartitionRequest, AlterPartitionResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_controllers

from .controller_requests import submit


@handles_on_controllers(AlterPartitionRequest, needs=cluster(Operation.CLUSTER_ACTION), most_entries=MANY_ENTRIES)
async def alter_partition(
    context: RequestContext[ClusterNode], request: AlterPartitionRequest
) -> AlterPartitionResponse:
    response: AlterPartitionResponse = await submit(context, request)
    return response
