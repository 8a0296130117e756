"""The keys of OAUTHBEARER are fetched before a node serves, each hour, and when a token names one that is unknown.

Where that fails, the node goes on with the keys that it has, and one line says why; before it has any, it does not
start. A file is read anew like an address of a host, where Kafka reads it once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlsplit

import trio

from pykbroker.client.https import MAX_BYTES, FetchFailed, fetch
from pykbroker.client.small_files import read_small_file
from pykbroker.config import ConfigurationError
from pykbroker.config.urls import without_secrets
from pykbroker.security.sasl.oauthbearer.key_set import KeySet, UnusableKeys
from pykbroker.security.sasl.oauthbearer.remote_keys import RemoteKeys, waits_ms
from pykbroker.security.sasl.oauthbearer.validator_settings import JwksAddress
from pykbroker.security.tls.contexts import client_context

from ..runtime.startup_error import StartupError
from ..runtime.threads import Threads

_log = logging.getLogger(__name__)

MISSING_INTERVAL_S: Final = 5.0
"""The time from one refresh to the next that a token asks for: whoever invents names of keys has no more of them."""


class JwksRefresh:
    """The keys of one address. read: fetches the document, in a thread."""

    def __init__(
        self, address: JwksAddress, threads: Threads, read: Callable[[JwksAddress], bytes] | None = None
    ) -> None:
        self._address = address
        self._threads = threads
        self._read = read or read_document
        self._is_missing = trio.Event()
        self.keys = RemoteKeys(lambda: self._is_missing.set())

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fetch the keys, and keep them fresh until the surrounding scope is cancelled. Raises StartupError."""
        failure = await self._refresh()
        if failure is not None:
            raise StartupError(f"{self._address.name}: there are no keys to verify tokens with: {failure}")
        task_status.started()
        while True:
            started = trio.current_time()
            with trio.move_on_after(self._address.refresh_ms / 1000):
                await self._is_missing.wait()
                await trio.sleep_until(started + MISSING_INTERVAL_S)
            self._is_missing = trio.Event()
            failure = await self._refresh()
            if failure is not None:
                _log.warning("keys for tokens are not refreshed, those of before stay: %s", failure)

    async def _refresh(self) -> str | None:
        """Take new keys, and return None, or why there are none after all tries."""
        waits = waits_ms(self._address.backoff_ms, self._address.backoff_max_ms)
        while True:
            try:
                keys = await self._threads.run(self._fetched)
            except (FetchFailed, UnusableKeys, ConfigurationError) as error:
                wait_ms = next(waits, None) if isinstance(error, FetchFailed) and not error.is_final else None
                if wait_ms is None:
                    return (
                        str(error)
                        if urlsplit(self._address.url).scheme == "file"
                        else f"{without_secrets(self._address.url)}: {error}"
                    )
                await trio.sleep(wait_ms / 1000)
                continue
            if keys.unusable:
                _log.info(
                    "keys of %s that are left out: %s",
                    without_secrets(self._address.url),
                    "; ".join(keys.unusable[:10]),
                )
            self.keys.take(keys)
            return None

    def _fetched(self) -> KeySet:
        return KeySet.read(self._read(self._address))


def read_document(address: JwksAddress) -> bytes:
    """Raises FetchFailed; ConfigurationError where stores of keys cannot be read."""
    parts = urlsplit(address.url)
    if parts.scheme == "file":
        return read_small_file(unquote(parts.path), MAX_BYTES)
    context = client_context(address.tls)
    context.check_hostname = True
    return fetch(address.url, context, headers={"Accept": "application/json"})
