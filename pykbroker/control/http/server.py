"""The control's server: on the loopback address alone, in the loop of its broker, as long as that runs."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import Final

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from pykbroker.control.control import Control
from pykbroker.server.runtime.startup_error import StartupError

from .application import ControlApplication
from .operation import Operation

HOST: Final = "127.0.0.1"
_READ_TIMEOUT_S: Final = 120
_GRACE_S: Final = 1.0


class ControlServer:
    """A server of one broker's control. port: 0 for a free one, which is bound from now on until `close`. token: None
    where nobody needs one. Raises StartupError for a port that is taken.
    """

    def __init__(self, control: Control, operations: Sequence[Operation], port: int, token: str | None = None) -> None:
        self._application = ControlApplication(control, operations, token)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise StartupError(f"--ctl-port {port}: {error.strerror or error}") from None

    def close(self) -> None:
        """Give the port back, where it was never served."""
        self._socket.close()

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started with `HOST:PORT`."""
        config = Config()
        config.bind = [f"fd://{self._socket.detach()}"]
        config.errorlog = logging.getLogger(f"{__name__}.http")
        config.errorlog.setLevel(logging.WARNING)
        config.accesslog = None
        config.read_timeout = _READ_TIMEOUT_S
        config.graceful_timeout = _GRACE_S
        config.alpn_protocols = ["http/1.1"]
        config.include_server_header = False
        async with trio.open_nursery() as nursery:
            binds: list[str] = await nursery.start(serve, self._application.asgi, config)
            task_status.started(binds[0].removeprefix("http://"))
