"""The control's server: on the loopback address alone, in the loop of its broker, as long as that runs.

Hypercorn speaks HTTP on each connection. It finishes what it sends whatever happens, so a client that does not read
would keep its broker from ending: connections are opened and closed here.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import Any, Final, cast

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from pykbroker.control.control import Control
from pykbroker.error_groups import first_of
from pykbroker.server.runtime.startup_error import StartupError

from .application import ControlApplication
from .operation import Operation

_log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
_BACKLOG: Final = 1_000
_READ_TIMEOUT_S: Final = 120


class ControlServer:
    """A server of one broker's control. port: 0 for a free one. It is taken from now on: who connects waits until it is
    served. token: None where nobody needs one. Raises StartupError for a port that is taken.
    """

    def __init__(self, control: Control, operations: Sequence[Operation], port: int, token: str | None = None) -> None:
        self._application = ControlApplication(control, operations, token)
        self._connections: set[trio.SocketStream] = set()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen(_BACKLOG)  # a port that is bound alone may be taken by somebody else, who listens first
        except OSError as error:
            self._socket.close()
            raise StartupError(f"--ctl-port {port}: {error.strerror or error}") from None

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started with `HOST:PORT`. Requests in hand end with it."""
        host, port = self._socket.getsockname()
        config = Config()
        config.errorlog = logging.getLogger(f"{__name__}.http")
        config.errorlog.setLevel(logging.WARNING)
        config.accesslog = None
        config.read_timeout = _READ_TIMEOUT_S
        config.include_server_header = False
        application = wrap_app(cast("Any", self._application.asgi), config.wsgi_max_body_size, "asgi")
        context = WorkerContext(None)

        async def serve(stream: trio.SocketStream) -> None:
            self._connections.add(stream)
            try:
                await TCPServer(application, config, context, ConnectionState({}), cast("Any", stream))
            except* Exception as group:  # some malformed requests are errors of Hypercorn, and the broker goes on
                _log.warning("a connection to control has failed: %r", first_of(group))
            finally:
                self._connections.discard(stream)
                stream.socket.close()

        async with trio.open_nursery() as nursery:
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(self._socket))]
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            task_status.started(f"{host}:{port}")
            try:
                await trio.sleep_forever()
            finally:
                for each in self._connections:
                    each.socket.close()  # whoever sends on it hears of that
