"""BrokerHeartbeat (key 63): a broker lives, and may ask to be fenced or to shut down (KIP-631).

Served are versions 0 to 2, on controller listeners: 1 brought log directories that failed (KIP-858), 2 cordoned ones
(KIP-1066). The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from functools import partial

from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_controllers

from .controller_requests import submit


@handles_on_controllers(BrokerHeartbeatRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def broker_heartbeat(
    context: RequestContext[ClusterNode], request: BrokerHeartbeatRequest
) -> BrokerHeartbeatResponse:
    response: BrokerHeartbeatResponse = await submit(context, request)
    if not response.error_code:
        _watch(context, request)
    return response


def _watch(context: RequestContext[ClusterNode], request: BrokerHeartbeatRequest) -> None:
    """A connection that brings heartbeats stands for its broker."""
    watch, connection = context.node.broker_watch, context.connection
    if watch is not None:
        watch.heard_of(request.broker_id, connection)
        connection.when_closed = partial(watch.lost, request.broker_id, request.broker_epoch, connection)
