"""AssignReplicasToDirs (key 73): a broker tells in which log directory its replicas lie (KIP-858).

Served is version 0, on controller listeners. The rules stand in `metadata.directory_assignments`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.log_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_controllers

from .controller_requests import submit


@handles_on_controllers(AssignReplicasToDirsRequest, needs=cluster(Operation.CLUSTER_ACTION), most_entries=MANY_ENTRIES)
async def assign_replicas_to_dirs(
    context: RequestContext[ClusterNode], request: AssignReplicasToDirsRequest
) -> AssignReplicasToDirsResponse:
    response: AssignReplicasToDirsResponse = await submit(context, request)
    return response
