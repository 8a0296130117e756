"""The tap that writes the journal: it looks at each exchange, and changes none.

What an exchange sets off, log lines and the ends of others' waits, is known by a context variable (`runtime/causes`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Final

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ProtocolError
from pykbroker.protocol.framing import SIZE_BYTES
from pykbroker.server.network.handlers import CloseConnection, ConnectionState
from pykbroker.server.network.page_cache import uncached_extent
from pykbroker.server.network.tap import Answer, Handle, Tap
from pykbroker.server.network.transport import FileRegion, Part
from pykbroker.server.node.node import Node
from pykbroker.server.runtime.causes import Handling, current_cause, handling

from .exchange import KEPT_BYTES, Exchange, Outcome, Peer
from .journal import LEAST_HEADER_BYTES, Journal
from .log_watch import LogWatch

_UNKNOWN: Final = "0.0.0.0"  # noqa: S104 - no address to listen on
_WITH_SIZE_BYTES: Final = KEPT_BYTES + SIZE_BYTES
# To get a member from its enumeration takes Python 3.11 as long as a call.
_ANSWERED: Final = Outcome.ANSWERED
_NO_ANSWER: Final = Outcome.NO_ANSWER
_DELETE_RECORDS: Final = int(ApiKey.DELETE_RECORDS)


class JournalTap:
    """The tap of one node's listeners. node: the one that runs. inner: another tap, which may change what it likes:
    the journal has what the client sends and gets. watch: over the logs.
    """

    def __init__(
        self,
        journal: Journal,
        node: Callable[[], Node | None],
        inner: Tap | None = None,
        watch: LogWatch | None = None,
    ) -> None:
        self._journal = journal
        self._node = node
        self._inner = inner
        self._watch = watch
        if watch is not None:
            journal.look = watch.changes

    def witness(self, whose: str, text: str) -> None:
        """Note what a state machine of the node tells (`runtime.causes`)."""
        self._journal.note(whose, text, current_cause())

    async def exchange(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        if self._inner is not None:
            handle = partial(self._inner.exchange, frame, connection, handle)
        size = len(frame)
        if size < LEAST_HEADER_BYTES:
            return await handle()  # which says so, and closes the connection
        peer = connection.tapped
        if not isinstance(peer, Peer):
            peer = connection.tapped = self._peer(connection)
        kept = bytes(frame) if size <= KEPT_BYTES else bytes(frame[:KEPT_BYTES])
        if self._watch is not None and self._watch.is_due_at_all:
            self._journal.points.next(self._watch.changes())
        exchange = self._journal.begin(peer, kept, size, connection.principal)
        in_hand = Handling(exchange.number)
        handling.set(in_hand)
        try:
            answer = await handle()
        except CloseConnection as closing:
            self._end(exchange, in_hand, Outcome.CLOSED, closing.answer, str(closing))
            raise
        except BaseException as error:
            reason = f"{type(error).__name__}: {error}" if isinstance(error, ProtocolError) else type(error).__name__
            self._end(exchange, in_hand, Outcome.CLOSED, None, reason)
            raise
        self._end(exchange, in_hand, _NO_ANSWER if answer is None else _ANSWERED, answer)
        return answer

    def _end(self, exchange: Exchange, in_hand: Handling, outcome: Outcome, answer: Answer, reason: str = "") -> None:
        in_hand.is_over = True
        if exchange.api_key == _DELETE_RECORDS and self._watch is not None:
            self._watch.look_at_all()
        if in_hand.released_by:
            exchange.caused_by = in_hand.released_by
        if in_hand.interference:
            exchange.interference = in_hand.interference
        if not answer:
            self._journal.end(exchange, outcome, reason=reason)
        elif len(answer) == 1 and isinstance(only := answer[0], bytes) and len(only) > SIZE_BYTES:
            self._journal.end(exchange, outcome, only[SIZE_BYTES:_WITH_SIZE_BYTES], len(only) - SIZE_BYTES, reason)
        else:
            response, size = kept_answer(answer)
            self._journal.end(exchange, outcome, response, size, reason)

    def _peer(self, connection: ConnectionState) -> Peer:
        """Return a new connection's name. No connection outlives its node, whose topics are followed from now on."""
        node = self._node()
        self._journal.topic_names.follow(node)
        if node is not None and node.parts is not None:
            self._journal.cluster_id = node.parts.node.cluster_id
        transport = connection.transport
        local = None if transport is None else transport.local
        return Peer(
            node=self._journal.node_id,
            number=self._journal.next_connection(),
            listener=connection.listener_name,
            host=connection.client_address,
            port=0 if transport is None else transport.peer.port,
            broker_host=_UNKNOWN if local is None else local.host,
            broker_port=0 if local is None else local.port,
        )


def kept_answer(parts: list[Part]) -> tuple[bytes, int]:
    """Return what the journal keeps of a response, without its size, and the response's whole size.

    Records that still lie in a file are kept as far as they are in the page cache: nobody waits for a disk here.
    """
    found = bytearray()
    size = 0
    is_whole = True
    for part in parts:
        wanted = _WITH_SIZE_BYTES - len(found) if is_whole else 0
        if isinstance(part, (bytes, bytearray, memoryview)):
            part_bytes = len(part)
            data = part[:wanted]
        else:
            part_bytes = part.size
            data = _cached(part, min(wanted, part_bytes))
        found += data
        is_whole = len(data) == part_bytes
        size += part_bytes
    return bytes(found[SIZE_BYTES:]), max(0, size - SIZE_BYTES)


def _cached(region: FileRegion, size: int) -> bytes:
    """Return the beginning of a region; nothing where it is not in memory."""
    descriptor = region.file.fileno()
    if descriptor is None:  # a simulated disk
        return region.read()[:size]
    position = region.position
    if not size or uncached_extent(descriptor, position, position + size) is not None:
        return b""
    try:
        return os.pread(descriptor, size, position)
    except OSError:  # whoever sends it says so
        return b""
