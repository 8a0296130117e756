"""An entry of a journal: an exchange, one request and what became of it; or an event, which a state machine told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.errors import ProtocolError
from pykbroker.protocol.framing import decode_request_header

KEPT_BYTES: Final = 64 * 1024
"""Of a frame; what is longer is cut, and its whole size is told."""
OVERHEAD_BYTES: Final = 800
"""An entry's own memory, about."""


class Outcome(StrEnum):
    WAITING = "waiting"
    """The broker has it in hand."""
    ANSWERED = "answered"
    NO_ANSWER = "no answer"
    """The client has asked for none (Produce with acks=0)."""
    CLOSED = "closed"
    """The connection was closed instead; `reason` says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A connection as the journal names it. node: the id of the broker. number: counts the connections of a journal."""

    node: int
    number: int
    listener: str
    host: str
    port: int
    broker_host: str
    broker_port: int


@dataclass(slots=True, eq=False)
class Exchange:
    """One request. Times are wall-clock nanoseconds.

    number: counts the entries of a journal. request, response: the frames without their sizes, `KEPT_BYTES` at most;
    request_bytes, response_bytes: their whole sizes. is_withheld: their bodies have secrets that cannot be told apart,
    and are zeros. caused_by: the exchange whose handling ended the wait of this one. interference: what control did to
    it. is_kept: the journal has not forgotten it. began: the latest point when it did; point: its own, once it has
    ended (`points`). kept_bytes: the memory that it takes with its point, about.
    """

    number: int
    peer: Peer
    api_key: int
    api_version: int
    correlation_id: int
    principal: str
    received_ns: int
    request: bytes
    request_bytes: int
    outcome: Outcome = Outcome.WAITING
    answered_ns: int = 0
    response: bytes = b""
    response_bytes: int = 0
    reason: str = ""
    caused_by: int = 0
    interference: Sequence[str] = ()
    is_withheld: bool = False
    is_kept: bool = True
    began: int = 0
    point: int = 0
    kept_bytes: int = OVERHEAD_BYTES

    @property
    def api(self) -> str:
        return api_name(self.api_key)

    @property
    def client_id(self) -> str | None:
        """The client id; None also where the header makes no sense."""
        try:
            return decode_request_header(self.request)[0].client_id
        except ProtocolError:
            return None

    @property
    def node(self) -> int:
        return self.peer.node

    @property
    def is_cut(self) -> bool:
        """Tell whether a part of the request or of the response is missing."""
        return len(self.request) < self.request_bytes or len(self.response) < self.response_bytes

    @property
    def took_ms(self) -> float | None:
        """The time from the whole request to the answer; None while it waits."""
        return None if self.outcome is Outcome.WAITING else max(0, self.answered_ns - self.received_ns) / 1e6


@dataclass(slots=True, eq=False)
class Event:
    """An act of a state machine. whose: the log of its coordinator. caused_by: the exchange in whose handling it was
    done; 0 where time or the cluster brought it about. began, point, kept_bytes: as of an exchange.
    """

    number: int
    node: int
    at_ns: int
    whose: str
    text: str
    caused_by: int
    is_kept: bool = True
    began: int = 0
    point: int = 0
    kept_bytes: int = OVERHEAD_BYTES


Entry: TypeAlias = Exchange | Event
