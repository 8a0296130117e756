"""The address at which a client finds a broker: of this node, on a listener with `auto`, the one that it reached."""

from __future__ import annotations

from dataclasses import replace

from pykbroker.metadata.registrations import BrokerRegistration, Endpoint
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.transport import Address
from pykbroker.server.node.broker import ClusterNode


def broker_endpoint(context: RequestContext[ClusterNode], broker: BrokerRegistration) -> Endpoint | None:
    """Return where the client's listener is on that broker; None where the broker has none of that name.

    Other brokers are where they have registered: which of their addresses the client would reach, nobody here knows.
    """
    endpoint, reached = broker.endpoint(context.listener_name), context.connection.reached
    if endpoint is None or reached is None or broker.id != context.node.node_id:
        return endpoint
    return replace(endpoint, host=reached.host, port=reached.port)


def note_question(context: RequestContext[ClusterNode], broker_id: int, endpoint: Endpoint) -> None:
    """Note that the client was told where to go with what it wants to do (`SeekingClients`).

    Of several brokers nobody knows to which one the client goes next.
    """
    node, seeking = context.node, context.connection.seeking
    if seeking is not None and broker_id == node.node_id and len(node.image.brokers) == 1:
        where = Address(endpoint.host, endpoint.port)
        seeking.was_told(context.client_address, context.header.client_id, context.listener_name, where)
