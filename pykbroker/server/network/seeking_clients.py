"""Clients that ask again and again where the broker is, and never come there.

A client asks where a topic is led, or a group is coordinated, and goes on at the address that it is told. One that
cannot reach that address asks again. Where this broker is the only one, whatever the client wants to do it would do
here, so a client that sends nothing but such questions is worth a line in the log: once, with what it has been told.

The record is of hosts and client ids, and bounded: whoever asked least recently is forgotten. A client that has sent
anything else, on whichever connection, is never told of again while it is remembered. Two programs of one host with one
client id are one client here, and one that merely looks at a topic several times a minute looks the same as one that is
lost: the line says what was seen, and no more.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.api_keys import ApiKey

from ..runtime.clock import Clock
from ..runtime.log_lines import printable
from .transport import Address

_log = logging.getLogger(__name__)

QUESTIONS: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    }
)
"""Requests that clients send to whichever broker they know, that of the bootstrap servers included."""

MOST_CLIENTS: Final = 2_000
ENOUGH_QUESTIONS: Final = 5
ENOUGH_MS: Final = 10_000
FORGOTTEN_MS: Final = 60_000
"""Questions further apart are not those of a client that tries again."""
_ID_CHARACTERS: Final = 120


@dataclass(slots=True)
class _Client:
    questions: int = 0
    first_ms: int = 0
    last_ms: int = 0
    has_come: bool = False
    is_told: bool = False
    where: Address | None = None


@dataclass(frozen=True, slots=True)
class SeekingClient:
    """A client that asks where the broker is, and has not come there. where: the address that it was told last."""

    host: str
    client_id: str | None
    questions: int
    since_ms: int
    """How long ago the first of these questions was."""
    where: str


class SeekingClients:
    """One object for the clients' listeners of a broker."""

    def __init__(self, clock: Clock, most: int = MOST_CLIENTS) -> None:
        self._clock = clock
        self._most = most
        self._clients: OrderedDict[tuple[str, str | None], _Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clients)

    def has_come(self, host: str, client_id: str | None) -> None:
        """Note that a client has sent something else than a question."""
        self._client(host, client_id).has_come = True

    def was_told(self, host: str, client_id: str | None, listener: str, where: Address) -> None:
        """Note that a client was told that all it asked for is at this broker, at this address."""
        client = self._client(host, client_id)
        if client.has_come or client.is_told:
            return
        now_ms = self._clock.monotonic_ms()
        if not client.questions or now_ms - client.last_ms > FORGOTTEN_MS:
            client.questions, client.first_ms = 0, now_ms
        client.questions += 1
        client.last_ms, client.where = now_ms, where
        if client.questions >= ENOUGH_QUESTIONS and now_ms - client.first_ms >= ENOUGH_MS:
            client.is_told = True
            _log.warning(
                "client %s of %s has asked %d times in %d s where to go, was told %s (advertised.listeners, %s), and "
                "has sent nothing else: so does a client that cannot reach that address, see `pykbroker doctor`",
                printable(client_id),
                host,
                client.questions,
                (now_ms - client.first_ms) // 1000,
                where,
                listener,
            )

    def told(self) -> list[SeekingClient]:
        """Return the clients that the log has told of, and that have not come since."""
        now_ms = self._clock.monotonic_ms()
        return [
            SeekingClient(host, client_id, client.questions, now_ms - client.first_ms, str(client.where))
            for (host, client_id), client in self._clients.items()
            if client.is_told and not client.has_come
        ]

    def _client(self, host: str, client_id: str | None) -> _Client:
        key = host, None if client_id is None else client_id[:_ID_CHARACTERS]
        client = self._clients.get(key)
        if client is None:
            if len(self._clients) >= self._most:
                self._clients.popitem(last=False)
            client = self._clients[key] = _Client()
        else:
            self._clients.move_to_end(key)
        return client
