"""A network behind a gate (`gate`): for one node, in front of whatever network it has.

Who knocks is known by the address that it comes from, where the other nodes are in this process, else by the client id
of its first request: nodes have ids such as `broker-1`. Who speaks TLS, and comes from another process, is taken for a
client.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Final

import trio

from pykbroker.server.network.socket_transport import SocketTransport
from pykbroker.server.network.transport import Acceptor, Address, Network, NextTurn, Part, Transport

from .gate import Gate, Side

_CLIENT_ID_AT: Final = 14
"""In a request: behind its size, the API's key and version, the correlation id and the length of the client id."""
_LONGEST_ID: Final = 64
_ID_OF_NODE: Final = re.compile(rb"(broker|raft-client)-\d+(-|$)")
_TLS_HANDSHAKE: Final = b"\x16"
_LOOK_S: Final = 0.02
"""A peer that has said nothing is looked at now and then, while the gate is closed to some."""


class Peers:
    """The addresses from which the nodes of a cluster have connected to others, as far as they are in this process."""

    def __init__(self) -> None:
        self.addresses: set[Address] = set()


class GatedTransport:
    """A connection through the gate. side: None until it is known who has connected."""

    def __init__(self, inner: Transport, gate: Gate, peers: Peers, side: Side | None = None) -> None:
        self._inner = inner
        self._gate = gate
        self._peers = peers
        self._side = side
        self._is_closed = False
        self._known_as = inner.local if side is Side.NODES else None
        if self._known_as is not None:
            peers.addresses.add(self._known_as)

    @property
    def peer(self) -> Address:
        return self._inner.peer

    @property
    def local(self) -> Address | None:
        return self._inner.local

    @property
    def waits_for_peer(self) -> int:
        return self._inner.waits_for_peer

    @property
    def _is_held(self) -> bool:
        """Tell whether the gate is closed to this peer; who it is has to be known for that, if it is closed at all."""
        if not self._gate.is_closed:
            return False
        if self._side is None:
            self._side = self._find_side()
        return self._side is None or self._gate.is_closed_to(self._side)

    def _find_side(self) -> Side | None:
        if self._inner.peer in self._peers.addresses:
            return Side.NODES
        head = self._inner.peek(_CLIENT_ID_AT + _LONGEST_ID)
        if head is None:
            return None
        if not head or head.startswith(_TLS_HANDSHAKE):
            return Side.CLIENTS
        size = int.from_bytes(head[_CLIENT_ID_AT - 2 : _CLIENT_ID_AT], "big", signed=True)
        if len(head) < _CLIENT_ID_AT + min(max(size, 0), _LONGEST_ID):
            return None
        return Side.NODES if _ID_OF_NODE.match(head[_CLIENT_ID_AT : _CLIENT_ID_AT + size]) else Side.CLIENTS

    def receive_now(self, view: memoryview) -> int | None:
        if self._is_held:
            return None
        if self._side is None and self._inner.peek(1) is not None:
            self._side = self._find_side() or Side.CLIENTS  # whoever dawdles with its first bytes
        return self._inner.receive_now(view)

    async def wait_readable(self) -> None:
        await self._until_open()
        await self._inner.wait_readable()

    async def _until_open(self) -> None:
        while not self._is_closed and self._is_held:
            with trio.move_on_after(_LOOK_S if self._side is None else float("inf")):
                await self._gate.changed()

    def has_peer_left(self) -> bool:
        return not self._is_held and self._inner.has_peer_left()

    def peek(self, size: int) -> bytes | None:
        return None if self._is_held else self._inner.peek(size)

    async def receive_into(self, view: memoryview) -> int:
        while (count := self.receive_now(view)) is None:
            await self.wait_readable()
        return count

    async def send(self, parts: Sequence[Part], next_turn: NextTurn = trio.lowlevel.checkpoint) -> None:
        if self._gate.is_closed:
            await self._until_open()
        await self._inner.send(parts, partial(self._next_turn, next_turn))

    async def _next_turn(self, next_turn: NextTurn) -> None:
        """The gate may have been closed in the middle of a long answer."""
        await next_turn()
        if self._gate.is_closed:
            await self._until_open()

    def send_now(self, data: bytes) -> int:
        return 0 if self._is_held else self._inner.send_now(data)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.outlive()
        self._inner.close()
        self._gate.wake()
        if self._known_as is not None:
            self._peers.addresses.discard(self._known_as)

    def outlive(self) -> None:
        """Let the peer not hear of it when the connection is closed here, as long as the gate is closed to it."""
        if self._is_held and isinstance(self._inner, SocketTransport) and not self._inner.is_closed:
            self._gate.linger(self._side or Side.CLIENTS, self._inner.duplicate())


class GatedAcceptor:
    """A port behind the gate. While that is closed to all, the system takes connections, and nobody is there."""

    def __init__(self, inner: Acceptor, network: GatedNetwork) -> None:
        self._inner = inner
        self._network = network
        self.address = inner.address

    async def accept(self) -> Transport:
        while (accepted := self.accept_now()) is None:
            if self._network.gate.is_closed_to_all:
                await self._network.gate.changed()
            else:
                return self._network.accepted(await self._inner.accept())
        return accepted

    def accept_now(self) -> Transport | None:
        if self._network.gate.is_closed_to_all:
            return None
        accepted = self._inner.accept_now()
        return None if accepted is None else self._network.accepted(accepted)

    def close(self) -> None:
        self._inner.close()


class GatedNetwork:
    """The network of one start of a node."""

    def __init__(self, inner: Network, gate: Gate, peers: Peers) -> None:
        self.gate = gate
        self._inner = inner
        self._peers = peers
        self._transports: weakref.WeakSet[GatedTransport] = weakref.WeakSet()

    async def listen(self, host: str, port: int) -> Acceptor:
        return GatedAcceptor(await self._inner.listen(host, port), self)

    async def connect(self, host: str, port: int) -> Transport:
        """Connect to another node; nodes connect to nobody else by their network."""
        await self.gate.until_open_to(Side.NODES)
        return self._keep(GatedTransport(await self._inner.connect(host, port), self.gate, self._peers, Side.NODES))

    def accepted(self, transport: Transport) -> Transport:
        return self._keep(GatedTransport(transport, self.gate, self._peers))

    def _keep(self, transport: GatedTransport) -> GatedTransport:
        self._transports.add(transport)
        return transport

    def outlive(self) -> None:
        """Let the peers behind the closed gate not hear of the node's end."""
        for transport in list(self._transports):
            transport.outlive()
