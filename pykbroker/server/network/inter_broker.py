"""This broker sends requests to others of its cluster, which it finds by their ids in the metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from pykbroker.client.errors import NoBrokerReachable
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.schema import Message

from .node_connections import NodeAddress, NodeConnections

ResponseT = TypeVar("ResponseT", bound=Message)


class BrokerRequests(Protocol):
    """The way of requests to other brokers, by their ids: `InterBroker`.

    Those of one purpose have a connection of their own.
    """

    async def request(
        self,
        node_id: int,
        request: Message,
        response_type: type[ResponseT],
        *,
        purpose: str = "",
        timeout_ms: int | None = None,
    ) -> ResponseT: ...

    async def close(self, node_id: int, purpose: str = "") -> None: ...


class InterBroker:
    """The way to other brokers is by their id. listener_name: `inter.broker.listener.name`, on which brokers talk to
    each other.
    """

    def __init__(self, connections: NodeConnections, *, image: Callable[[], MetadataImage], listener_name: str) -> None:
        self._connections = connections
        self._image = image
        self._listener_name = listener_name

    async def request(
        self,
        node_id: int,
        request: Message,
        response_type: type[ResponseT],
        *,
        purpose: str = "",
        timeout_ms: int | None = None,
    ) -> ResponseT:
        """Send the request in the newest version that both know, and return the response. Raises ClientError; whether
        the request arrived is not known then.

        purpose: requests of one purpose share a connection, and are answered one by one.
        """
        return await self._connections.request(
            self._destination(node_id), request, response_type, purpose=purpose, timeout_ms=timeout_ms
        )

    def _destination(self, node_id: int) -> NodeAddress:
        broker = self._image().brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None:
            raise NoBrokerReachable(f"Broker {node_id} is not registered", retriable=True)
        return NodeAddress(_name(node_id), endpoint.host, endpoint.port)

    async def close(self, node_id: int, purpose: str = "") -> None:
        """Close the connection of this purpose; a request that still waits for its answer there gets ConnectionLost."""
        await self._connections.close(_name(node_id), purpose)

    async def aclose(self) -> None:
        await self._connections.aclose()


def _name(node_id: int) -> str:
    return f"broker {node_id}"
