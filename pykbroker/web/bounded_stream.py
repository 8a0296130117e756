"""A connection with limits: whoever does not read for a while, or says and hears nothing, is hung up on.

Hypercorn sends in a shielded scope, so that no answer is cut by a cancellation; without a limit here a client that does
not read would stay for ever.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from .tls import TurnTaking

SEND_LIMIT_S: Final = 20.0
"""A client takes 64 KiB within this time."""
SILENCE_LIMIT_S: Final = 120.0
"""Within this time something comes from the client, or goes to it."""
VANISHED_LIMIT_S: Final = 60
"""The host of a client acknowledges what is sent within this time; the system ends the connection of another one."""
_PORTION_BYTES: Final = 64 * 1024


class BoundedStream:
    """A stream as Hypercorn's TCPServer takes it. Its limits end it like a connection that broke."""

    def __init__(
        self,
        stream: trio.SocketStream | trio.SSLStream[TurnTaking],
        *,
        send_limit_s: float = SEND_LIMIT_S,
        silence_limit_s: float = SILENCE_LIMIT_S,
    ) -> None:
        self.is_tls: Final = isinstance(stream, trio.SSLStream)
        self.socket: Final = (stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).socket
        self._stream = stream
        self._send_limit_s = send_limit_s
        self._silence_limit_s = silence_limit_s
        self._silence = trio.CancelScope()
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_LIMIT_S * 1000)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send in portions. Raises trio.BrokenResourceError when the client does not take one in time."""
        view = memoryview(data)
        for start in range(0, len(view), _PORTION_BYTES):
            with trio.move_on_after(self._send_limit_s) as scope:
                await self._stream.send_all(view[start : start + _PORTION_BYTES])
            if scope.cancelled_caught:
                self.close()
                raise trio.BrokenResourceError
            self._silence.deadline = trio.current_time() + self._silence_limit_s

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Raises trio.BrokenResourceError after a long silence of both sides."""
        with trio.move_on_after(self._silence_limit_s) as self._silence:
            return await self._stream.receive_some(max_bytes)
        self.close()
        raise trio.BrokenResourceError

    async def send_eof(self) -> None:
        """Say that nothing follows; TLS has no half of a connection that goes on, and does nothing here."""
        if not isinstance(self._stream, trio.SSLStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        with trio.move_on_after(self._send_limit_s):  # TLS says good-bye, which a client must take
            await self._stream.aclose()

    def close(self) -> None:
        """Close at once, also in the middle of a portion: whoever sends or receives hears of that."""
        self.socket.close()
