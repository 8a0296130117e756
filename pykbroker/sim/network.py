"""A network in memory: bounded streams with a delay, cut into pieces as the seed decides.

It knows hosts by name and keeps the order of bytes, as TCP does. What was sent before a close still arrives; after a
`reset` nothing does. Each host has its own view of the network (`SimulatedNetwork.of`), and between any two hosts the
links can be cut, slow or lossy (`links`). A port that nobody listens on refuses; a host that is cut off or has no power
lets whoever connects wait, as SYN packets that nobody answers do.
"""

from __future__ import annotations

import errno
import random
from collections import deque
from collections.abc import Iterable, Sequence

import trio

from pykbroker.server.network.socket_transport import LISTEN_BACKLOG
from pykbroker.server.network.transport import Address, NextTurn, Part

from .links import Link
from .pipe import Pipe

_FIRST_FREE_PORT = 49152
_CONNECT_TIMEOUT_S = 127.0
"""Linux with its six retransmissions of a SYN."""

_FIRST_SYN_RETRANSMISSION_S = 1.0

OUTSIDE = ""
"""The host of whoever uses the network itself, not one host's view of it."""


class SimulatedTransport:
    def __init__(self, incoming: Pipe, outgoing: Pipe, peer: Address, local: Address) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self.peer = peer
        self.local = local

    @property
    def waits_for_peer(self) -> int:
        return self._outgoing.waits

    def receive_now(self, view: memoryview) -> int | None:
        return self._incoming.read_now(view)

    async def wait_readable(self) -> None:
        await self._incoming.wait_readable()

    def has_peer_left(self) -> bool:
        return self._incoming.is_end_in_sight

    def peek(self, size: int) -> bytes | None:
        return self._incoming.peek(size)

    def half_close(self) -> None:
        """Close the sending side, as shutdown(SHUT_WR) does: the peer reads the end, and may go on to answer."""
        self._outgoing.close_writer()

    async def receive_into(self, view: memoryview) -> int:
        while (count := self.receive_now(view)) is None:
            await self.wait_readable()
        return count

    async def send(self, parts: Sequence[Part], next_turn: NextTurn = trio.lowlevel.checkpoint) -> None:
        for part in parts:
            data = part if isinstance(part, (bytes, bytearray, memoryview)) else part.read()
            await self._outgoing.write(data)

    def send_now(self, data: bytes) -> int:
        return self._outgoing.write_now(data)

    @property
    def is_closed(self) -> bool:
        return self._incoming.is_reader_closed

    def close(self) -> None:
        self._incoming.close_reader()
        self._outgoing.close_writer()

    def reset(self) -> None:
        """Both ends lose the connection, and what was under way."""
        for pipe in (self._incoming, self._outgoing):
            pipe.reset_reader()
            pipe.reset_writer()

    def abort(self) -> None:
        """This end has died with its process; the other end hears of it where it can be told."""
        self._outgoing.abort_writer()

    def forget(self) -> None:
        """This end's machine has no power."""
        self._outgoing.forget_writer()


class SimulatedAcceptor:
    def __init__(self, host: SimulatedHost, address: Address) -> None:
        self._host = host
        self._arrived: deque[SimulatedTransport] = deque()
        self._changed = trio.lowlevel.ParkingLot()
        self._closed = False
        self.address = address

    async def accept(self) -> SimulatedTransport:
        await trio.lowlevel.checkpoint()
        while (accepted := self.accept_now()) is None:
            await self._changed.park()
        return accepted

    def accept_now(self) -> SimulatedTransport | None:
        if self._closed:
            raise trio.ClosedResourceError
        return self._arrived.popleft() if self._arrived else None

    @property
    def is_full(self) -> bool:
        """Another SYN is dropped: so many have knocked and were not accepted."""
        return len(self._arrived) >= LISTEN_BACKLOG

    def arrive(self, transport: SimulatedTransport) -> None:
        self._arrived.append(transport)
        self._changed.unpark_all()

    def close(self) -> None:
        """Close the port; connections that were not accepted yet are reset."""
        self._closed = True
        self._host.forget(self)
        self._changed.unpark_all()
        for transport in self._arrived:
            transport.abort()


class SimulatedHost:
    """One machine's view of the network; a `server.network.transport.Network`."""

    def __init__(self, network: SimulatedNetwork, name: str) -> None:
        self._network = network
        self._acceptors: dict[Address, SimulatedAcceptor] = {}
        self._transports: list[SimulatedTransport] = []
        self.name = name
        self.has_power = True

    async def listen(self, host: str, port: int) -> SimulatedAcceptor:
        await trio.lowlevel.checkpoint()
        address = self._network.claim(Address(host, port), self)
        self._acceptors[address] = acceptor = SimulatedAcceptor(self, address)
        return acceptor

    async def connect(self, host: str, port: int) -> SimulatedTransport:
        return await self._network.connect_from(self, Address(host, port))

    def acceptor(self, address: Address) -> SimulatedAcceptor | None:
        return self._acceptors.get(address)

    def keep(self, transport: SimulatedTransport) -> None:
        self._transports = [each for each in self._transports if not each.is_closed] + [transport]

    def forget(self, acceptor: SimulatedAcceptor) -> None:
        if self._acceptors.get(acceptor.address) is acceptor:
            del self._acceptors[acceptor.address]

    def die(self) -> None:
        """The process that uses it: its connections end, and its ports refuse new ones."""
        for acceptor in list(self._acceptors.values()):
            acceptor.close()
        for transport in self._transports:
            transport.abort()
        self._transports = []

    def lose_power(self) -> None:
        """Cut the machine's power: its connections hang, and are reset for senders once the machine runs again."""
        self.has_power = False
        self._network.refresh()
        for transport in self._transports:
            transport.forget()
        self._transports = []
        for acceptor in list(self._acceptors.values()):
            acceptor.close()

    def gain_power(self) -> None:
        self.has_power = True
        self._network.refresh()


class SimulatedNetwork:
    """All hosts of one simulation; their names are not resolved, just compared.

    It is itself the view of whoever is `OUTSIDE` of the hosts that have names.
    """

    def __init__(self, rng: random.Random, *, longest_delay_ms: float = 2.0, pipe_bytes: int = 64 * 1024) -> None:
        self._rng = rng
        self._longest_delay_s = longest_delay_ms / 1000
        self._pipe_bytes = pipe_bytes
        self._hosts: dict[str, SimulatedHost] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._owners: dict[Address, SimulatedHost] = {}
        """Who listens on an address, or did so last."""
        self._cuts: set[tuple[str, str]] = set()
        self._next_port = _FIRST_FREE_PORT

    def of(self, name: str) -> SimulatedHost:
        if name not in self._hosts:
            self._hosts[name] = SimulatedHost(self, name)
        return self._hosts[name]

    async def listen(self, host: str, port: int) -> SimulatedAcceptor:
        return await self.of(OUTSIDE).listen(host, port)

    async def connect(self, host: str, port: int) -> SimulatedTransport:
        return await self.of(OUTSIDE).connect(host, port)

    # Faults

    def cut(self, one: str, other: str) -> None:
        """Cut both links between two hosts."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, source: str, target: str) -> None:
        """Cut the link from source to target; what the target sends arrives, and it never learns that it did."""
        self._cuts.add((source, target))
        self.refresh()

    def split(self, *parts: Iterable[str]) -> None:
        """Two hosts reach each other where one of the parts has both; whoever is in two parts is a bridge."""
        together = {(one, other) for part in map(list, parts) for one in part for other in part}
        names = list(dict.fromkeys(name for part in parts for name in part))
        self._cuts |= {(one, other) for one in names for other in names} - together
        self.refresh()

    def heal(self) -> None:
        """No link is cut any more."""
        self._cuts.clear()
        self.refresh()

    def slow(self, source: str, target: str, *, delay_ms: float = 0.0, loss: float = 0.0) -> None:
        """Make a link slow: each packet takes so much longer, and this share of them has to be sent again."""
        link = self.link(source, target)
        link.added_delay_s = delay_ms / 1000
        link.loss = loss

    def is_cut(self, source: str, target: str) -> bool:
        return self.link(source, target).is_cut

    def refresh(self) -> None:
        """Set which links are cut, after a change of the cuts or of a machine's power."""
        for (source, target), link in self._links.items():
            link.set_cut(self._is_cut(source, target))

    def _is_cut(self, source: str, target: str) -> bool:
        has_power = self.of(source).has_power and self.of(target).has_power
        return not has_power or (source, target) in self._cuts

    def link(self, source: str, target: str) -> Link:
        link = self._links.get((source, target))
        if link is None:
            self._links[source, target] = link = Link(self._rng, self._longest_delay_s)
            link.set_cut(self._is_cut(source, target))
        return link

    # Addresses and connections

    def claim(self, address: Address, host: SimulatedHost) -> Address:
        """The address with a port. Raises OSError where somebody listens on it."""
        if not address.port:
            self._next_port += 1
            address = Address(address.host, self._next_port)
        owner = self._owners.get(address)
        if owner is not None and owner.acceptor(address) is not None:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._owners[address] = host
        return address

    async def connect_from(self, source: SimulatedHost, address: Address) -> SimulatedTransport:
        await trio.sleep(self._delay_s())
        target = self._owners.get(address)
        if target is not None:
            await self._shake_hands(source, target)
        acceptor = None if target is None else target.acceptor(address)
        retransmission_s = _FIRST_SYN_RETRANSMISSION_S
        while target is not None and acceptor is not None and acceptor.is_full:
            await trio.sleep(retransmission_s)
            retransmission_s *= 2
            if retransmission_s > _CONNECT_TIMEOUT_S:
                raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
            acceptor = target.acceptor(address)
        if target is None or acceptor is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        there, back = self._pipe(source, target), self._pipe(target, source)
        there.twin, back.twin = back, there
        self._next_port += 1
        client = Address(address.host, self._next_port)
        served = SimulatedTransport(there, back, client, address)
        opened = SimulatedTransport(back, there, address, client)
        target.keep(served)
        source.keep(opened)
        acceptor.arrive(served)
        return opened

    def _delay_s(self) -> float:
        return self._rng.uniform(0, self._longest_delay_s)

    async def _shake_hands(self, source: SimulatedHost, target: SimulatedHost) -> None:
        """Wait until a packet gets there and one back. Raises OSError after the time-out of a connect."""
        ways = self.link(source.name, target.name), self.link(target.name, source.name)
        with trio.move_on_after(_CONNECT_TIMEOUT_S) as waiting:
            while any(link.is_cut for link in ways):
                await next(link for link in ways if link.is_cut).mended.park()
            if added_delay_s := sum(link.added_delay_s for link in ways):
                await trio.sleep(added_delay_s)
        if waiting.cancelled_caught:
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    def _pipe(self, source: SimulatedHost, target: SimulatedHost) -> Pipe:
        way, back = self.link(source.name, target.name), self.link(target.name, source.name)
        return Pipe(self._rng, way, back, self._pipe_bytes)
