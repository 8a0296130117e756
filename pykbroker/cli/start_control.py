"""`start --ctl-port`: control of the node over HTTP, on the loopback address.

A broker that knows who its users are is not controlled by whoever can log in to its machine: there a token is needed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pykbroker.config import BrokerConfig, ConfigurationError

from .command import CommandFailed

if TYPE_CHECKING:
    import trio

    from pykbroker.server.node.node import Node, NodeReady


class StartControl:
    """The control of a start. Raises CommandFailed without the extra, ConfigurationError for want of a token."""

    def __init__(self, config: BrokerConfig, port: int, token_file: Path | None) -> None:
        try:
            import pykbroker.web.http  # noqa: F401 - it would be missed at the first request
            from pykbroker.control.http.server import ControlServer
        except ModuleNotFoundError as missing:
            raise CommandFailed(f"--ctl-port needs {missing.name}: pip install 'pykbroker[control]'") from None
        from pykbroker.control.control import Control
        from pykbroker.control.http.operations import OPERATIONS
        from pykbroker.control.http.token_file import read_token
        from pykbroker.control.journal.journal import Journal
        from pykbroker.server.runtime.startup_error import StartupError

        token = None if token_file is None else read_token(token_file)
        if token is None and (why := _why_secured(config)):
            raise ConfigurationError(f"--ctl-port needs --ctl-token-file here, since {why}: control goes past both")
        self.control = Control(Journal(time.time_ns, node_id=config.node_id))
        try:
            self._server = ControlServer(self.control, OPERATIONS, port, token)
        except StartupError as error:
            raise CommandFailed(str(error)) from None

    async def run(self, node: Node, *, task_status: trio.TaskStatus[NodeReady]) -> None:
        """Run the node until it ends, or crashes; then nothing more comes of it. Raises what it raises."""
        import trio

        scope, has_ended = trio.CancelScope(), trio.Event()

        async def end() -> None:
            scope.cancel()
            await has_ended.wait()

        self.control.mishaps.end, self.control.mishaps.has_process = end, True
        try:
            with scope:
                await node.run(task_status=task_status)
        finally:
            self.control.node_ended()
            has_ended.set()

    async def serve(self, nursery: trio.Nursery, ready: NodeReady) -> str:
        """Serve in `nursery`, and return the address. Raises StartupError."""
        self.control.ready = ready
        address: str = await nursery.start(self._server.run)
        return address


def _why_secured(config: BrokerConfig) -> str:
    """Return what keeps some users from some things; empty where nothing does."""
    if config.str("authorizer.class.name"):
        return "authorizer.class.name gives users rights"
    secured = [each.name for each in config.listeners.all if each.security_protocol != "PLAINTEXT"]
    return f"clients log in or encrypt at {secured[0]}" if secured else ""
