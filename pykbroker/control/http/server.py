"""The control's server: on the loopback address alone, in the loop of its broker, as long as that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from pykbroker.control.control import Control
from pykbroker.server.runtime.startup_error import StartupError
from pykbroker.web.address import WebAddress
from pykbroker.web.server import WebServer
from pykbroker.web.sockets import listen

from .application import ControlApplication
from .operation import Operation

HOST: Final = "127.0.0.1"


class ControlServer:
    """A server of one broker's control. port: 0 for a free one. It is taken from now on: who connects waits until it is
    served. token: None where nobody needs one. Raises StartupError for a port that is taken.
    """

    def __init__(self, control: Control, operations: Sequence[Operation], port: int, token: str | None = None) -> None:
        application = ControlApplication(control, operations, token)
        try:
            listening = listen(WebAddress(HOST, port))
        except OSError as error:
            raise StartupError(f"--ctl-port {port}: {error.strerror or error}") from None
        self._server = WebServer(listening, lambda nursery: application.asgi)

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; started with `HOST:PORT`. Requests in hand end with it."""
        await self._server.run(task_status=task_status)
