"""HTTPS of a web listener: TLS with the stores of its own keys, or of the node's, read anew when their files change.

`console.ssl.keystore.location` is the console's own one; without it `ssl.keystore.location` holds, as with the keys of
one of Kafka's listeners. Certificates of clients are asked for by the listener's own `ssl.client.auth` alone.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Final

import trio

from pykbroker.config import ConfigurationError
from pykbroker.security.tls.contexts import server_context
from pykbroker.security.tls.settings import TlsSettings

_log = logging.getLogger(__name__)

HANDSHAKE_LIMIT_S: Final = 10.0
LOOK_EVERY_S: Final = 30.0
_HANDSHAKE: Final = b"\x16"
"""The first byte of TLS."""
_NO_TLS: Final = b"this address speaks HTTPS alone: begin it with https://\n"
_REFUSAL: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_NO_TLS), _NO_TLS)
)


class TurnTaking(trio.abc.Stream):
    """A client's stream, whose part of a handshake is worked on when it has its turn.

    A signature takes a millisecond of the node's loop, and a hundred clients must not hold it for a hundred of them.
    """

    def __init__(self, stream: trio.SocketStream, turn: trio.Lock) -> None:
        self.socket: Final = stream.socket
        self.takes_turns = True
        self._stream = stream
        self._turn = turn

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        received = await self._stream.receive_some(max_bytes)
        if self.takes_turns:
            async with self._turn:
                await trio.lowlevel.checkpoint()
        return received

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


_Stamps = tuple[tuple[int, int, int] | None, ...]


class WebTls:
    """The TLS of one web listener. Reading stores takes up to a second. Raises ConfigurationError.

    properties: of the node. prefix: of the listener's own keys, such as `console.`.
    """

    def __init__(self, properties: Mapping[str, str], prefix: str) -> None:
        self._settings = TlsSettings.of(properties, prefix=prefix, over_sasl=True)
        self._stamps = self._now()
        self._context = server_context(self._settings).context
        self._turn = trio.Lock()

    async def secured(self, stream: trio.SocketStream) -> trio.SSLStream[TurnTaking]:
        """Return the stream of a client that has shaken hands. Raises OSError, trio.BrokenResourceError.

        Whoever speaks HTTP without TLS is told so, since a browser does when its reader types no `https://`.
        """
        below = TurnTaking(stream, self._turn)
        found = trio.SSLStream(below, self._context, server_side=True, https_compatible=True)
        with trio.move_on_after(HANDSHAKE_LIMIT_S):
            if await stream.socket.recv(1, socket.MSG_PEEK) != _HANDSHAKE:
                await stream.send_all(_REFUSAL)
                await stream.send_eof()
                await stream.receive_some()  # closing on what is unread would reset what has been sent
                raise ConnectionAbortedError("no TLS")
            await found.do_handshake()
            below.takes_turns = False
            return found
        raise TimeoutError("no handshake")

    async def watch(self) -> None:
        """Read the stores anew when their files change, until cancelled; what cannot be read leaves the old ones."""
        while True:
            await trio.sleep(LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Read the stores anew if their files have changed."""
        now = await trio.to_thread.run_sync(self._now)
        if now == self._stamps:
            return
        self._stamps = now
        try:
            self._context = (await trio.to_thread.run_sync(server_context, self._settings)).context
        except ConfigurationError as error:
            _log.warning("the certificate over HTTPS stays what it was: %s", error)
        else:
            _log.info("the certificate over HTTPS is read anew")

    def _now(self) -> _Stamps:
        return tuple(_stamp(each) for each in (self._settings.keystore_location, self._settings.truststore_location))


def _stamp(path: str | None) -> tuple[int, int, int] | None:
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)
