"""The address at which a client finds a broker: of this node, on a listener with `auto`, the one that it reached."""

from __future__ import annotations

from dataclasses import replace

from pykbroker.metadata.registrations import BrokerRegistration, Endpoint
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode


def broker_endpoint(context: RequestContext[ClusterNode], broker: BrokerRegistration) -> Endpoint | None:
    """Return where the client's listener is on that broker; None where the broker has none of that name.

    Other brokers are where they have registered: which of their addresses the client would reach, nobody here knows.
    """
    endpoint, reached = broker.endpoint(context.listener_name), context.connection.reached
    if endpoint is None or reached is None or broker.id != context.node.node_id:
        return endpoint
    return replace(endpoint, host=reached.host, port=reached.port)
