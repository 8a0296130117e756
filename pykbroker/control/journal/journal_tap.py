"""The tap that writes the journal: it looks at each exchange, and changes none.

What an exchange sets off, log lines and the ends of others' waits, is known by a context variable (`runtime/causes`).
"""

from __future__ import annotations

import os
from functools import partial
from itertools import count
from typing import Final

from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import SIZE_BYTES, decode_request_header
from pykbroker.server.network.handlers import CloseConnection, ConnectionState
from pykbroker.server.network.tap import Answer, Handle, Tap
from pykbroker.server.network.transport import Part
from pykbroker.server.runtime.causes import Handling, handling

from .exchange import KEPT_BYTES, Exchange, Outcome, Peer
from .journal import Journal, kept

_UNKNOWN: Final = "0.0.0.0"  # noqa: S104 - no address to listen on


class JournalTap:
    """The tap of one node's listeners. inner: another tap, which may change what it likes."""

    def __init__(self, journal: Journal, inner: Tap | None = None) -> None:
        self._journal = journal
        self._inner = inner
        self._connections = count(1)

    async def exchange(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        if self._inner is not None:
            handle = partial(self._inner.exchange, frame, connection, handle)
        try:
            header, _ = decode_request_header(frame)
        except MalformedMessage:
            return await handle()  # which says so, and closes the connection
        exchange = self._journal.begin(self._peer(connection), header, kept(frame), len(frame), connection.principal)
        connection_handling = Handling(exchange.number)
        handling.set(connection_handling)
        try:
            answer = await handle()
        except CloseConnection as closing:
            self._end(exchange, connection_handling, Outcome.CLOSED, closing.answer, str(closing))
            raise
        except BaseException as error:
            self._end(exchange, connection_handling, Outcome.CLOSED, None, type(error).__name__)
            raise
        finally:
            handling.set(None)
        self._end(exchange, connection_handling, Outcome.NO_ANSWER if answer is None else Outcome.ANSWERED, answer)
        return answer

    def _end(self, exchange: Exchange, by: Handling, outcome: Outcome, answer: Answer, reason: str = "") -> None:
        exchange.caused_by = by.released_by
        exchange.interference = by.interference
        response, size = kept_answer(answer or [])
        self._journal.end(exchange, outcome, response, size, reason)

    def _peer(self, connection: ConnectionState) -> Peer:
        if not isinstance(connection.tapped, Peer):
            transport = connection.transport
            local = None if transport is None else transport.local
            connection.tapped = Peer(
                number=next(self._connections),
                listener=connection.listener_name,
                host=connection.client_address,
                port=0 if transport is None else transport.peer.port,
                broker_host=_UNKNOWN if local is None else local.host,
                broker_port=0 if local is None else local.port,
            )
        return connection.tapped


def kept_answer(parts: list[Part]) -> tuple[bytes, int]:
    """Return what the journal keeps of a response, without its size, and the response's whole size.

    Records that still lie in a file are read from the page cache, as far as they are kept.
    """
    found = bytearray()
    size = 0
    for part in parts:
        missing = KEPT_BYTES + SIZE_BYTES - len(found)
        if isinstance(part, (bytes, bytearray, memoryview)):
            size += len(part)
            found += part[:missing] if missing > 0 else b""
        else:
            size += part.size
            descriptor = part.file.fileno()
            if missing > 0 and descriptor is None:
                found += part.read()[:missing]
            elif missing > 0 and descriptor is not None:
                found += os.pread(descriptor, min(part.size, missing), part.position)
    return bytes(found[SIZE_BYTES:]), max(0, size - SIZE_BYTES)
