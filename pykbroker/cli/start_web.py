"""`start`: the console, the metrics and the health of the node over HTTP, by `console.listener` and `metrics.listener`.

A listener that the configuration gives must be there: a port that is taken, or a package that is missing, ends the
start. The default one is a courtesy: it takes the first free port of some, for further nodes on a host, and where
nothing can be served one line of the log says why. Sockets listen from the start on; all else waits for the first
connection (`pykbroker.web`).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pykbroker.config import BrokerConfig
from pykbroker.config.console import check_console, warnings_of_console
from pykbroker.config.own_keys import (
    CONSOLE_HOSTS,
    CONSOLE_LISTENER,
    CONSOLE_SECURITY_PROTOCOL,
    METRICS_LISTENER,
    METRICS_SECURITY_PROTOCOL,
)
from pykbroker.web.address import WebAddress, parse_address
from pykbroker.web.sockets import address_of, listen, listen_at_first_free

from .command import CommandFailed

if TYPE_CHECKING:
    import trio
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pykbroker.server.node.node import Node, NodeReady
    from pykbroker.server.runtime.loop_monitor import LoopMonitor
    from pykbroker.web.callers import KnownNames
    from pykbroker.web.tls import WebTls

_log = logging.getLogger(__name__)

MOST_DEFAULT_LISTENERS: Final = 20
"""Ports from the default one on, of which each node of a host takes one."""
_INSTALL: Final = "pip install 'pykbroker[console,metrics]'"
_CONSOLE: Final = "pykbroker.console"
_FOR_ALL: Final = "hypercorn"
_FOR_CONSOLE: Final = "starlette"
_FOR_METRICS: Final = "prometheus_client"
_FOR_TELEMETRY: Final = "opentelemetry.proto"


@dataclass(frozen=True, slots=True)
class _Listening:
    """A socket that listens, and what is served there."""

    socket: socket.socket
    site: Callable[[trio.Nursery], ASGIApp]
    imports: Sequence[str]
    tls: WebTls | None

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://{address_of(self.socket)}/"


class StartWeb:
    """The web listeners of a start. Raises CommandFailed for one that was given and cannot be, ConfigurationError.

    url: of `console.listener`, with the port that it got; None where there is no such listener. has_console: it leads
    to the console.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._listening: list[_Listening] = []
        self._node: Node | None = None
        self._ready: NodeReady | None = None
        self._lines: list[str] = []
        self._warnings: list[str] = []
        self.monitor: LoopMonitor | None = None
        """To be set when the loop is watched."""
        self._has_metrics = _is_there(_FOR_METRICS)
        self.url: str | None = None
        is_broker = "broker" in config.roles
        self.has_console = is_broker and _is_there(_FOR_CONSOLE) and _is_there(_CONSOLE)
        console = parse_address(CONSOLE_LISTENER, config.str(CONSOLE_LISTENER))
        metrics = parse_address(METRICS_LISTENER, config.str(METRICS_LISTENER))
        if console is not None and self.has_console:
            check_console(config, console.host)
        try:
            if console is not None:
                is_given = CONSOLE_LISTENER in config.originals
                needs = [_FOR_ALL, _FOR_METRICS, *([_FOR_CONSOLE] if is_broker else [])]
                tls = self._tls(CONSOLE_SECURITY_PROTOCOL)
                listening = _given(CONSOLE_LISTENER, console, needs) if is_given else self._courtesy(console)
                self._add_console(listening, tls)
                self._warnings += warnings_of_console(config, console.host) if self.console else ()
            if metrics is not None:
                tls = self._tls(METRICS_SECURITY_PROTOCOL)
                self._add(_given(METRICS_LISTENER, metrics, [_FOR_ALL, _FOR_METRICS]), self._metrics_site, tls)
                self._lines.append(f"metrics and health at {self._listening[-1].url}")
        except BaseException:
            self.close()
            raise

    @property
    def console(self) -> str:
        """Return where the console is, a URL; nothing where there is none."""
        return self.url if self.has_console and self.url is not None else ""

    @property
    def shows_telemetry(self) -> bool:
        """Tell whether there is a page that shows what clients push, and what reads it."""
        return bool(self._listening) and self._has_metrics and _is_there(_FOR_TELEMETRY)

    def close(self) -> None:
        """Close the sockets, of a node that did not come so far as to serve, too."""
        for each in self._listening:
            each.socket.close()

    async def serve(self, nursery: trio.Nursery, node: Node) -> None:
        """Serve in `nursery` until that is cancelled. The node may start later: until then it is not ready."""
        from pykbroker.web.server import WebServer  # behind signals that are heard: Trio takes a while to import

        self._node = node
        for each in self._listening:
            await nursery.start(WebServer(each.socket, each.site, each.imports, tls=each.tls).run)

    def node_serves(self, ready: NodeReady) -> None:
        """Tell the log where, and have the console from now on."""
        self._ready = ready
        for line in self._lines:
            _log.info("%s", line)
        for line in self._warnings:
            _log.warning("%s", line)

    def _tls(self, key: str) -> WebTls | None:
        """Return the TLS that the key asks for. Raises ConfigurationError."""
        if self._config.str(key) != "SSL":
            return None
        from pykbroker.web.tls import WebTls

        return WebTls(self._config.given, key.removesuffix("security.protocol"))

    def _add_console(self, listening: socket.socket | None, tls: WebTls | None) -> None:
        if listening is None:
            return
        self._add(listening, self._console_site, tls)
        self.url = self._listening[-1].url
        what = "the console, metrics and health" if self.has_console else "metrics and health"
        self._lines.append(f"{what} at {self.url}")

    def _add(self, listening: socket.socket, site: Callable[[trio.Nursery], ASGIApp], tls: WebTls | None) -> None:
        modules = ["pykbroker.web.site", "pykbroker.web.health"]
        if self._has_metrics:
            modules.append("pykbroker.metrics.page")
        self._listening.append(_Listening(listening, site, modules, tls))

    def _courtesy(self, address: WebAddress) -> socket.socket | None:
        """Return a socket at the default address or behind it; None, and a line for the log, where there is none."""
        ports = range(address.port, address.port + MOST_DEFAULT_LISTENERS)
        listening, reason = None, f"{address.host} has no free port from {ports[0]} to {ports[-1]}"
        if not _is_there(_FOR_ALL):
            reason = f"{_FOR_ALL} is missing: {_INSTALL}"
        else:
            try:
                listening = listen_at_first_free(address.host, ports)
            except OSError as error:
                reason = f"{address}: {error.strerror or error}"
        if listening is None:
            self._lines.append(f"no console and no metrics over HTTP: {reason}")
        return listening

    # Sites: at the first connection to their listener

    def _metrics_site(self, nursery: trio.Nursery) -> ASGIApp:
        from pykbroker.web.site import Site

        return Site(self._names(), self._pages(nursery))

    def _console_site(self, nursery: trio.Nursery) -> ASGIApp:
        from pykbroker.web.site import Site

        return Site(self._names(), self._pages(nursery), self._console(nursery) if self.has_console else None)

    def _pages(self, nursery: trio.Nursery) -> dict[str, ASGIApp]:
        from pykbroker.web.health import health_pages

        assert self._node is not None
        return {"/metrics": self._metrics(self._node, nursery), **health_pages(self._node)}

    def _metrics(self, node: Node, nursery: trio.Nursery) -> ASGIApp:
        """Return the metrics, or what says that their package is missing."""
        if self._has_metrics:
            from pykbroker.metrics.page import metrics_page

            return metrics_page(node, lambda: self.monitor, nursery)
        from pykbroker.web.answers import answer_text

        async def missing(scope: Scope, receive: Receive, send: Send) -> None:
            await answer_text(send, 501, f"{_FOR_METRICS} is missing: pip install 'pykbroker[metrics]'")

        return missing

    def _console(self, nursery: trio.Nursery) -> ASGIApp:
        """Return what imports and makes the console at the first request for one of its pages behind the node's start:
        whoever asks for the metrics alone does not pay for its memory.
        """
        import trio

        from pykbroker.web.answers import answer_text
        from pykbroker.web.place import Place

        made: list[ASGIApp] = []
        making = trio.Lock()

        async def console(scope: Scope, receive: Receive, send: Send) -> None:
            if self._node is None or self._ready is None:
                await answer_text(send, 503, "the node starts: see /readyz", [(b"retry-after", b"1")])
                return
            async with making:
                if not made:
                    package = await trio.to_thread.run_sync(import_module, _CONSOLE)
                    made.append(package.console_application(Place(self._node, self._ready, nursery)))
            await made[0](scope, receive, send)

        return console

    def _names(self) -> KnownNames:
        from pykbroker.web.callers import KnownNames

        config = self._config
        advertised = [each.host for each in config.listeners.advertised or config.listeners.advertised_controller]
        given = [parse_address(key, config.str(key)) for key in (CONSOLE_LISTENER, METRICS_LISTENER)]
        hosts = [each.host for each in given if each is not None]
        return KnownNames([*config.list(CONSOLE_HOSTS), *advertised, *hosts, socket.gethostname()])


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of a package that it would be in
        return False


def _given(key: str, address: WebAddress, packages: Sequence[str]) -> socket.socket:
    """Return a socket at the address that the configuration gives. Raises CommandFailed."""
    missing = next((each for each in packages if not _is_there(each)), None)
    if missing is not None:
        raise CommandFailed(f"{key} needs {missing}: {_INSTALL}")
    try:
        return listen(address)
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise CommandFailed(f"{key}={address}: cannot listen there: {reason}") from None
