"""A network in memory: bounded streams with a delay, cut into pieces as the seed decides.

It knows hosts by name and keeps the order of bytes, as TCP does. What was sent before a close still arrives; after a
`reset` nothing does.
"""

from __future__ import annotations

import errno
import random
from collections import deque
from collections.abc import Sequence

import trio

from pykbroker.server.transport import Address, Part

_FIRST_FREE_PORT = 49152


class _Pipe:
    """One direction of a connection."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network
        self._pieces: deque[tuple[float, memoryview]] = deque()
        self._held_bytes = 0
        self._last_arrival = 0.0
        self._changed = trio.lowlevel.ParkingLot()
        self._reader_closed = False
        self._writer_closed = False
        self._reset = False
        self.waits = 0

    def read_now(self, view: memoryview) -> int | None:
        if self._reader_closed:
            raise trio.ClosedResourceError
        if self._reset:
            raise trio.BrokenResourceError
        if not self._pieces:
            return 0 if self._writer_closed else None
        arrival, piece = self._pieces[0]
        if arrival > trio.current_time():
            return None
        count = min(len(piece), len(view))
        view[:count] = piece[:count]
        self._held_bytes -= count
        if count == len(piece):
            self._pieces.popleft()
        else:
            self._pieces[0] = (arrival, piece[count:])
        self._changed.unpark_all()
        return count

    async def wait_readable(self) -> None:
        if self._reader_closed:
            raise trio.ClosedResourceError
        if self._reset or (self._writer_closed and not self._pieces):
            await trio.lowlevel.checkpoint()
        elif self._pieces:
            await trio.sleep_until(self._pieces[0][0])
        else:
            await self._changed.park()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(bytes(data))
        await trio.lowlevel.checkpoint()
        while len(rest):
            if self._writer_closed:
                raise trio.ClosedResourceError
            if self._reset or self._reader_closed:
                raise trio.BrokenResourceError
            room = self._network.pipe_bytes - self._held_bytes
            if room <= 0:
                await self._changed.park()
                self.waits += 1
                continue
            size = self._network.piece_size(min(room, len(rest)))
            self._last_arrival = max(self._last_arrival, trio.current_time() + self._network.delay_s())
            self._pieces.append((self._last_arrival, rest[:size]))
            self._held_bytes += size
            rest = rest[size:]
            self._changed.unpark_all()

    def close_reader(self) -> None:
        self._reader_closed = True
        self._changed.unpark_all()

    def close_writer(self) -> None:
        self._writer_closed = True
        self._changed.unpark_all()

    def reset(self) -> None:
        self._reset = True
        self._pieces.clear()
        self._changed.unpark_all()


class SimulatedTransport:
    def __init__(self, incoming: _Pipe, outgoing: _Pipe, peer: Address) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self.peer = peer

    @property
    def waits_for_peer(self) -> int:
        return self._outgoing.waits

    def receive_now(self, view: memoryview) -> int | None:
        return self._incoming.read_now(view)

    async def wait_readable(self) -> None:
        await self._incoming.wait_readable()

    async def receive_into(self, view: memoryview) -> int:
        while (count := self.receive_now(view)) is None:
            await self.wait_readable()
        return count

    async def send(self, parts: Sequence[Part]) -> None:
        for part in parts:
            data = part if isinstance(part, (bytes, bytearray, memoryview)) else part.read()
            await self._outgoing.write(data)

    def close(self) -> None:
        self._incoming.close_reader()
        self._outgoing.close_writer()

    def reset(self) -> None:
        """Both ends lose the connection, and what was under way."""
        self._incoming.reset()
        self._outgoing.reset()


class SimulatedAcceptor:
    def __init__(self, network: SimulatedNetwork, address: Address) -> None:
        self._network = network
        self._arrived: deque[SimulatedTransport] = deque()
        self._changed = trio.lowlevel.ParkingLot()
        self._closed = False
        self.address = address

    async def accept(self) -> SimulatedTransport:
        await trio.lowlevel.checkpoint()
        while not self._closed:
            if self._arrived:
                return self._arrived.popleft()
            await self._changed.park()
        raise trio.ClosedResourceError

    def arrive(self, transport: SimulatedTransport) -> None:
        self._arrived.append(transport)
        self._changed.unpark_all()

    def close(self) -> None:
        self._closed = True
        self._network.forget(self)
        self._changed.unpark_all()
        for transport in self._arrived:
            transport.reset()


class SimulatedNetwork:
    """All hosts of one simulation; their names are not resolved, just compared."""

    def __init__(self, rng: random.Random, *, longest_delay_ms: float = 2.0, pipe_bytes: int = 64 * 1024) -> None:
        self._rng = rng
        self._longest_delay_s = longest_delay_ms / 1000
        self._acceptors: dict[Address, SimulatedAcceptor] = {}
        self._next_port = _FIRST_FREE_PORT
        self.pipe_bytes = pipe_bytes

    async def listen(self, host: str, port: int) -> SimulatedAcceptor:
        await trio.lowlevel.checkpoint()
        address = Address(host, port or self._free_port())
        if address in self._acceptors:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._acceptors[address] = acceptor = SimulatedAcceptor(self, address)
        return acceptor

    async def connect(self, host: str, port: int) -> SimulatedTransport:
        await trio.sleep(self.delay_s())
        acceptor = self._acceptors.get(Address(host, port))
        if acceptor is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        there, back = _Pipe(self), _Pipe(self)
        acceptor.arrive(SimulatedTransport(there, back, Address(host, self._free_port())))
        return SimulatedTransport(back, there, acceptor.address)

    def forget(self, acceptor: SimulatedAcceptor) -> None:
        self._acceptors.pop(acceptor.address, None)

    def delay_s(self) -> float:
        return self._rng.uniform(0, self._longest_delay_s)

    def piece_size(self, most: int) -> int:
        """Mostly all of it, sometimes a little: readers must not rely on where a stream is cut."""
        return most if self._rng.random() < 0.7 else self._rng.randint(1, most)

    def _free_port(self) -> int:
        self._next_port += 1
        return self._next_port
