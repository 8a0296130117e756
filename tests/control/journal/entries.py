"""Exchanges for tests of the journal: made of messages, as the tap makes them of frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from pykbroker.control.journal.exchange import KEPT_BYTES, Exchange, Outcome, Peer
from pykbroker.control.journal.journal import Journal
from pykbroker.protocol.framing import SIZE_BYTES, encode_request, encode_response
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.records.batch import encode_batch
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import Message

START_NS = 1_700_000_000_000_000_000
PEER = Peer(1, 1, "PLAINTEXT", "127.0.0.1", 40_000, "127.0.0.1", 9092)


def ticking(step_ns: int = 1_000_000) -> Iterator[int]:
    return count(START_NS, step_ns)


def new_journal(most_bytes: int = 1 << 20, *, numbers: Iterator[int] | None = None, node_id: int = 1) -> Journal:
    clock = ticking()
    return Journal(lambda: next(clock), most_bytes, node_id=node_id, numbers=numbers)


def begin(
    journal: Journal, request: Message, version: int, *, peer: Peer = PEER, client_id: str | None = "app"
) -> Exchange:
    frame = encode_request(request, version, 7, client_id)[SIZE_BYTES:]
    return journal.begin(peer, frame[:KEPT_BYTES], len(frame), "User:ANONYMOUS")


def end(journal: Journal, exchange: Exchange, response: Message | None) -> None:
    if response is None:
        journal.end(exchange, Outcome.NO_ANSWER)
        return
    parts = encode_response(exchange.correlation_id, response, exchange.api_version)
    frame = b"".join(part for part in parts if isinstance(part, bytes))[SIZE_BYTES:]
    journal.end(exchange, Outcome.ANSWERED, frame[:KEPT_BYTES], len(frame))


def record(
    journal: Journal,
    request: Message,
    response: Message | None,
    version: int,
    *,
    peer: Peer = PEER,
    client_id: str | None = "app",
) -> Exchange:
    exchange = begin(journal, request, version, peer=peer, client_id=client_id)
    end(journal, exchange, response)
    return exchange


def heartbeat(journal: Journal, group: str = "g", *, peer: Peer = PEER, client_id: str | None = "app") -> Exchange:
    return record(journal, HeartbeatRequest(group_id=group), HeartbeatResponse(), 4, peer=peer, client_id=client_id)


def batch(*values: bytes) -> bytes:
    return encode_batch([Record(None, value, timestamp=1) for value in values])
