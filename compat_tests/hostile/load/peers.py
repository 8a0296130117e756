"""The connections of an attacker, many in one process."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.schema import Message

CLIENT_ID = "hostile"
_RECEIVED_AT_ONCE = 1 << 20
_RECONNECT_S = 0.05

Gone = (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionError, EOFError, OSError)
"""What an attacker sees of a broker that closes its connection."""


class Peer:
    """One connection. Whatever the broker answers is thrown away unread."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def send(self, request: Message, version: int) -> None:
        await self.send_raw(encode_request(request, version, 1, CLIENT_ID))

    async def send_raw(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def receive(self) -> bytes:
        """What has arrived, at least a byte. Raises EOFError where the broker closes the connection."""
        if piece := await self._stream.receive_some(_RECEIVED_AT_ONCE):
            return bytes(piece)
        raise EOFError

    async def skip_answer(self) -> None:
        """Raises EOFError where the broker closes the connection instead."""
        (size,) = struct.unpack(">i", await self._receive(4, keep=True))
        await self._receive(size, keep=False)

    async def _receive(self, size: int, *, keep: bool) -> bytes:
        received = bytearray()
        while size:
            piece = await self._stream.receive_some(min(size, _RECEIVED_AT_ONCE))
            if not piece:
                raise EOFError
            size -= len(piece)
            if keep:
                received += piece
        return bytes(received)


@asynccontextmanager
async def connected(address: tuple[str, int]) -> AsyncIterator[Peer]:
    stream = await trio.open_tcp_stream(*address)
    async with stream:
        yield Peer(stream)


async def persist(address: tuple[str, int], attack: Callable[[Peer], Awaitable[None]]) -> None:
    """The attack again and again, on a new connection whenever the broker closes one, until the caller cancels it."""
    while True:
        try:
            async with connected(address) as peer:
                while True:
                    await attack(peer)
        except Gone:
            await trio.sleep(_RECONNECT_S)


async def many(count: int, persistent: Callable[[], Awaitable[None]]) -> None:
    """As many of them at once."""
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(persistent)
