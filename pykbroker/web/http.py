"""Hypercorn's HTTP on one connection: the bounds on heads, requests and idle time are its settings.

Hypercorn's own server is not here: `server` opens and closes connections. Whoever imports this module imports
Hypercorn, which takes a tenth of a second.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

import h11

from pykbroker.deferred_imports import deferred
from pykbroker.error_groups import first_of

from .bounded_stream import BoundedStream

with deferred("h2.connection", "h2.events", "h2.exceptions", "priority"):  # HTTP/2, not spoken here: over a megabyte
    from hypercorn.config import Config
    from hypercorn.events import Closed
    from hypercorn.protocol.h11 import H11Protocol
    from hypercorn.trio.tcp_server import TCPServer
    from hypercorn.trio.worker_context import WorkerContext
    from hypercorn.typing import ConnectionState
    from hypercorn.utils import wrap_app

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_log = logging.getLogger(__name__)

MOST_HEAD_BYTES: Final = 16 * 1024
IDLE_S: Final = 10
"""The head of a request arrives within this time, counted from the connection or the last answer."""


def http_on_connections(application: ASGIApp) -> Callable[[BoundedStream], Awaitable[None]]:
    """Return what serves one connection until it ends. Malformed requests end a connection, and nothing else."""
    config = _config()
    app = wrap_app(cast("Any", application), config.wsgi_max_body_size, "asgi")
    context = WorkerContext(None)

    async def serve(stream: BoundedStream) -> None:
        try:
            await _Connection(app, config, context, ConnectionState({}), cast("Any", stream))
        except* Exception as group:  # some malformed requests are errors of Hypercorn, and the node goes on
            _log.warning("a connection over HTTP has failed: %r", first_of(group))

    return serve


class _Connection(TCPServer):
    """A connection of HTTP/1 that ends when its client has closed it; Hypercorn's own waits for the end of the idle
    time.
    """

    async def _read_data(self) -> None:
        of, is_tls = self.protocol, cast("BoundedStream", self.stream).is_tls
        of.protocol = _Http1(
            of.app, of.config, of.context, of.task_group, of.state, is_tls, of.client, of.server, of.send
        )
        await super()._read_data()
        await self.idle_task.stop()


class _Http1(H11Protocol):
    """HTTP/1 alone. One connection of HTTP/2 could have a hundred requests in hand, each with a body and a name of the
    host of its own; browsers speak it behind TLS alone, where it is not offered.
    """

    async def _check_protocol(self, event: h11.Request) -> None:
        """Go on with HTTP/1 for who offers to change to another one."""

    async def _create_stream(self, request: h11.Request) -> None:
        names = {name for name, _ in request.headers}
        if request.http_version not in (b"1.0", b"1.1"):
            await self._refuse(505)
        elif {b"content-length", b"transfer-encoding"} <= names:  # a proxy may have seen its end elsewhere
            await self._refuse(400)
        else:
            await super()._create_stream(request)

    async def _refuse(self, status: int) -> None:
        await self._send_error_response(status)
        await self.send(Closed())


def _config() -> Config:
    config = Config()
    config.errorlog = logging.getLogger(f"{__name__}.requests")
    config.errorlog.setLevel(logging.WARNING)
    config.accesslog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = MOST_HEAD_BYTES
    config.keep_alive_timeout = IDLE_S
    return config
