"""A node connects to other nodes of the cluster once for each purpose, when the connection is needed first.

Who is asked for what is decided by others: `InterBroker` knows brokers by their ids, `ControllerChannel` the active
controller by raft's word. Kafka's counterpart is the `NetworkClient` of a `NodeToControllerChannelManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import trio

from pykbroker.client.connection import Connection
from pykbroker.client.errors import AuthenticationRefused, ConnectionRefused, NoBrokerReachable
from pykbroker.client.sasl import authenticate
from pykbroker.config.keys import ConfigurationError
from pykbroker.protocol.schema import Message

from ..runtime.threads import Threads
from .transport import Network, Transport

if TYPE_CHECKING:
    from pykbroker.security.sasl.credentials import Credentials

ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """The address of a node. node: its name in log lines, such as "broker 2"."""

    node: str
    host: str
    port: int


class NodeConnections:
    """The connections of this node to others are kept by destination and purpose.

    threads: for answers of many entries; where there are none, they are unpacked on the event loop. credentials: gives
    those with which this node authenticates, on listeners with SASL, and raises ConfigurationError where it has none.
    """

    def __init__(
        self,
        network: Network,
        *,
        client_id: str,
        request_timeout_ms: int,
        threads: Threads | None = None,
        credentials: Callable[[], Credentials] | None = None,
    ) -> None:
        self._credentials = credentials
        self._network = network
        self._threads = threads
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._open: dict[tuple[str, str], tuple[NodeAddress, Connection]] = {}
        self._connecting: dict[tuple[str, str], trio.Lock] = {}

    async def request(
        self,
        destination: NodeAddress,
        request: Message,
        response_type: type[ResponseT],
        *,
        purpose: str = "",
        timeout_ms: int | None = None,
    ) -> ResponseT:
        """Send the request in the newest version that both know, and return the response. Raises ClientError; whether
        the request arrived is not known then.

        purpose: a peer answers the requests of one connection one by one, so what waits long has one of its own.
        """
        connection = await self.connection(destination, purpose)
        return await connection.request(request, response_type, timeout_ms=timeout_ms)

    async def connection(self, destination: NodeAddress, purpose: str = "") -> Connection:
        """The open one, or a new one that knows the peer's versions. Raises ClientError."""
        key = destination.node, purpose
        connecting = self._connecting.setdefault(key, trio.Lock())
        try:
            async with connecting:
                return await self._connected(key, destination)
        finally:
            self._forget(key)

    async def _connected(self, key: tuple[str, str], destination: NodeAddress) -> Connection:
        known = self._open.get(key)
        if known is not None:
            if known[0] == destination and not known[1].is_closed and not known[1].is_outlived:
                return known[1]
            # The node has moved, or a new process stands in its place. Out first: it may be closed by others, too.
            del self._open[key]
            await known[1].aclose()
        connection = await self._connect(destination)
        self._open[key] = destination, connection
        return connection

    async def close(self, node: str, purpose: str = "") -> None:
        """Close the connection; a request that still waits for its answer there gets ConnectionLost."""
        known = self._open.pop((node, purpose), None)
        self._forget((node, purpose))
        if known is not None:
            await known[1].aclose()

    def _forget(self, key: tuple[str, str]) -> None:
        """Names of nodes come from outside: nothing is kept of one to which there is no connection."""
        connecting = self._connecting.get(key)
        if key not in self._open and connecting is not None and not connecting.locked():
            del self._connecting[key]

    async def _connect(self, destination: NodeAddress) -> Connection:
        node = destination.node
        with trio.move_on_after(self._request_timeout_ms / 1000):
            try:
                transport = await self._network.connect(destination.host, destination.port)
            except ConnectionRefusedError as error:
                raise ConnectionRefused(f"Cannot reach {node}: {error}", retriable=True) from None
            except OSError as error:
                raise NoBrokerReachable(f"Cannot reach {node}: {error}", retriable=True) from None
            return await self._negotiated(transport, node)
        raise NoBrokerReachable(f"Cannot reach {node}: no connection in {self._request_timeout_ms} ms", retriable=True)

    async def _negotiated(self, transport: Transport, node: str) -> Connection:
        connection = Connection(
            TransportStream(transport),
            peer=node,
            client_id=self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            threads=self._threads,
        )
        try:
            await connection.negotiate()
            if self._credentials is not None:
                await _authenticate(connection, self._credentials)
        except BaseException:
            with trio.CancelScope(shield=True):
                await connection.aclose()
            raise
        return connection

    async def aclose(self) -> None:
        for _, connection in list(self._open.values()):
            await connection.aclose()
        self._open.clear()


async def _authenticate(connection: Connection, credentials: Callable[[], Credentials]) -> None:
    """Raises AuthenticationRefused, also where this node has no name of its own; ClientError."""
    try:
        connection.lives_for(await authenticate(connection, credentials()))
    except ConfigurationError as error:
        raise AuthenticationRefused(f"Cannot authenticate with {connection.peer}: {error}") from None


class TransportStream(trio.abc.Stream):
    """The stream is the node's network as the client package knows one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._transport.send([data])

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = bytearray(max_bytes or 65_536)
        count = await self._transport.receive_into(memoryview(data))
        return bytes(data[:count])

    async def receive_into(self, view: memoryview) -> int:
        return await self._transport.receive_into(view)

    async def aclose(self) -> None:
        self._transport.close()
        await trio.lowlevel.checkpoint()
