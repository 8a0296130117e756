"""The console as a client of its own broker: clusters with a user's credentials, over the broker's listener.

Nothing goes past that listener. Rights, quotas and the way to other brokers are those of every client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from pykbroker.client.cluster import Cluster, Open
from pykbroker.config.listeners import uses_tls

from .settings import ConsoleSettings

if TYPE_CHECKING:
    from pykbroker.client.connection import UnpackingThreads
    from pykbroker.security.sasl.credentials import Credentials

CLIENT_ID: Final = "pykbroker-console"
REQUEST_TIMEOUT_MS: Final = 10_000
API_TIMEOUT_MS: Final = 10_000


class OwnBroker:
    """The broker that serves this console. threads: where long answers are unpacked."""

    def __init__(self, settings: ConsoleSettings, threads: UnpackingThreads) -> None:
        self._settings = settings
        self._threads = threads
        self._secured: Open | None = None
        self._securing = trio.Lock()

    def cluster(self, credentials: Credentials | None) -> Cluster:
        """Return a cluster without connections so far, an async context manager, whose first one may raise
        ConfigurationError.
        """
        return Cluster(
            [self._settings.advertised],
            client_id=CLIENT_ID,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            api_timeout_ms=API_TIMEOUT_MS,
            open_stream=self._open_tls if uses_tls(self._settings.security_protocol) else self._open_tcp,
            credentials=credentials,
            threads=self._threads,
        )

    async def _open_tls(self, host: str, port: int) -> trio.abc.Stream:
        async with self._securing:
            if self._secured is None:  # stores take up to a second to read
                self._secured = await self._threads.run(self._with_tls)
        return await self._secured(host, port)

    def _with_tls(self) -> Open:
        from pykbroker.client.tls import open_with_tls
        from pykbroker.security.tls.contexts import client_context
        from pykbroker.security.tls.settings import TlsSettings

        return open_with_tls(client_context(TlsSettings.of(self._settings.client_properties)), self._open_tcp)

    async def _open_tcp(self, host: str, port: int) -> trio.abc.Stream:
        """Open a stream; the advertised address, which may be one for machines outside, leads to the listener."""
        if (host, port) == self._settings.advertised:
            host, port = self._settings.reached
        return await trio.open_tcp_stream(host, port)
