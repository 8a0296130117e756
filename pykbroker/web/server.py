"""A web server of a node, in the node's loop: it accepts connections, of which it has a bounded number, and ends them.

A start costs nothing: what speaks HTTP is imported at the first connection, in a worker thread. An application that
fails ends its connection, and never the node.
"""

from __future__ import annotations

import importlib
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from .bounded_stream import BoundedStream
from .sockets import address_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .tls import WebTls

_log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 100
"""Connections at a time; more of them wait until one has ended."""
CROWDED: Final = 0.75
"""Of the connections. Where so many are open, each ends behind its answer: clients that ask now and then, and keep a
connection, must not keep others out."""
_HTTP: Final = "pykbroker.web.http"


class WebServer:
    """A server on a socket that listens.

    application: is called in the loop at the first connection, with the nursery of the server, whose tasks end with it;
    it must be quick. imports: modules that `application` needs; a worker thread imports them beforehand. tls: of HTTPS,
    None for HTTP.
    """

    def __init__(
        self,
        listening: socket.socket,
        application: Callable[[trio.Nursery], ASGIApp],
        imports: Sequence[str] = (),
        *,
        tls: WebTls | None = None,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.address: Final = address_of(listening)
        self._socket = listening
        self._application = application
        self._imports = (_HTTP, *imports)
        self._tls = tls
        self._scheme = "http" if tls is None else "https"
        self._room = trio.Semaphore(most_connections)
        self._crowded_from = int(CROWDED * most_connections)
        self._connections: set[BoundedStream] = set()
        self._beginning = trio.Lock()
        self._serve: Callable[[BoundedStream], Awaitable[None]] | None = None

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started with `HOST:PORT`. Requests in hand end with it."""
        async with trio.open_nursery() as nursery:
            listener = _RoomyListener(trio.SocketListener(trio.socket.from_stdlib_socket(self._socket)), self._room)

            async def serve(stream: trio.SocketStream) -> None:
                await self._serve_one(nursery, stream)

            nursery.start_soon(trio.serve_listeners, serve, [listener])
            if self._tls is not None:
                nursery.start_soon(self._tls.watch)
            task_status.started(str(self.address))
            try:
                await trio.sleep_forever()
            finally:
                for each in self._connections:
                    each.close()  # whoever sends on it hears of that, also behind a shield

    async def _serve_one(self, nursery: trio.Nursery, stream: trio.SocketStream) -> None:
        try:
            if self._tls is None:
                await self._serve_bounded(nursery, BoundedStream(stream))
            else:
                await self._serve_bounded(nursery, BoundedStream(await self._tls.secured(stream)))
        except (OSError, trio.BrokenResourceError):  # no handshake: the client sees why, or is gone
            pass
        finally:
            stream.socket.close()
            self._room.release()

    async def _serve_bounded(self, nursery: trio.Nursery, bounded: BoundedStream) -> None:
        self._connections.add(bounded)
        try:
            serve = await self._begun(nursery)
            await serve(bounded)
        except ImportError as missing:
            _log.error("nothing is served at %s://%s/: %s", self._scheme, self.address, missing)
        except Exception:
            _log.exception("nothing is served at %s://%s/", self._scheme, self.address)
        finally:
            self._connections.discard(bounded)
            bounded.close()

    async def _begun(self, nursery: trio.Nursery) -> Callable[[BoundedStream], Awaitable[None]]:
        """Return what serves a connection; the first one waits for what is imported."""
        async with self._beginning:
            if self._serve is None:
                await trio.to_thread.run_sync(self._import)
                from .http import http_on_connections

                self._serve = http_on_connections(self._ending_where_crowded(self._application(nursery)))
            return self._serve

    def _ending_where_crowded(self, application: ASGIApp) -> ASGIApp:
        async def ending(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_and_end(message: Message) -> None:
                if message["type"] == "http.response.start" and len(self._connections) > self._crowded_from:
                    message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
                await send(message)

            await application(scope, receive, send_and_end)

        return ending

    def _import(self) -> None:
        for name in self._imports:
            importlib.import_module(name)


class _RoomyListener(trio.abc.Listener[trio.SocketStream]):
    """A listener that accepts when there is room; whoever ends a connection releases it."""

    def __init__(self, listener: trio.SocketListener, room: trio.Semaphore) -> None:
        self._listener = listener
        self._room = room

    async def accept(self) -> trio.SocketStream:
        await self._room.acquire()
        try:
            return await self._listener.accept()
        except BaseException:
            self._room.release()
            raise

    async def aclose(self) -> None:
        await self._listener.aclose()
