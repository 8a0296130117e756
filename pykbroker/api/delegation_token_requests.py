"""Rules that the requests for delegation tokens share."""

from __future__ import annotations

from pykbroker.server.network.handlers import ANONYMOUS, RequestContext
from pykbroker.server.node.broker import Broker, ClusterNode

_WITHOUT_SASL = ("PLAINTEXT", "SSL")


def allows_token_requests(context: RequestContext[ClusterNode]) -> bool:
    """Tell whether such a connection may ask for tokens at all: Kafka's `allowTokenRequests`.

    A token makes no further tokens, and whoever has not authenticated has nobody for whom one could speak. What a
    broker has passed on it has looked at before.
    """
    connection = context.connection
    if connection.by_token:
        return False
    if context.is_forwarded or connection.principal != ANONYMOUS:
        return True
    return _security_protocol(context) not in _WITHOUT_SASL


def _security_protocol(context: RequestContext[ClusterNode]) -> str:
    """Return the protocol of the listener that the connection has come by."""
    node, name = context.node, context.connection.listener_name
    if isinstance(node, Broker) and node.listeners is not None:
        return node.listeners.security_protocol(name)
    return node.config.listeners.security_protocol(name)
