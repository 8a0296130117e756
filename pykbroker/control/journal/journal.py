"""A journal keeps the latest exchanges of a node's clients, and what its state machines did, within a bound of memory.

Only frames are kept; they are decoded when somebody asks (`decoding`). Secrets are not kept at all (`secrets`). One
thread writes; others may read at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from struct import Struct
from typing import Final

from .exchange import OVERHEAD_BYTES, Entry, Event, Exchange, Outcome, Peer
from .points import CHANGE_BYTES, NO_ENDS, Ends, Points
from .secrets import SECRET_APIS, hide_in_request, hide_in_response
from .topic_names import TopicNames

DEFAULT_BYTES: Final = 16 * 1024 * 1024
MOST_EVENT_CHARACTERS: Final = 500
_SHARE_FORGOTTEN: Final = 32
_HEADER: Final = Struct(">hhi")
"""API key, version, correlation id."""
LEAST_HEADER_BYTES: Final = _HEADER.size


class Journal:
    """A journal of `most_bytes`; the oldest entries give way. now_ns: the wall clock. numbers: shared by the journals
    of one cluster, so that a number names one entry of all.

    Exchanges that wait for their answers are among the others, and may be forgotten before these come.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        most_bytes: int = DEFAULT_BYTES,
        *,
        node_id: int = 0,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.node_id: Final = node_id
        self.most_bytes: Final = most_bytes
        self.topic_names: Final = TopicNames()
        self.points: Final = Points()
        self.look: Callable[[], Ends] = _none
        """Says which logs of the node have changed since it was called last."""
        self.cluster_id = ""
        """The cluster's id, since the node serves."""
        self.last_number = 0
        """The number of the latest entry; 0 before the first."""
        self.forgotten = 0
        """How many entries had to give way since the journal was cleared."""
        self.forgotten_to = 0
        """The highest number of these."""
        self._now_ns = now_ns
        self._numbers = numbers or count(1)
        self._connections = count(1)
        self._entries: deque[Entry] = deque()
        self._kept_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """The memory that the entries take, about."""
        return self._kept_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self, since: int = 0) -> list[Entry]:
        """Return the kept entries whose numbers are beyond `since`, in the order in which they began."""
        return [entry for entry in self._copy() if entry.number > since]

    def clear(self) -> None:
        """Forget everything. Only the thread that writes may ask for it."""
        for entry in self._entries:
            entry.is_kept = False
        self._entries.clear()
        self.points.forget_before(self.points.latest)
        self._kept_bytes = self.forgotten = 0

    def detach(self) -> None:
        """Let go of the node, which does not come back; what is recorded stays."""
        self.look = _none

    def next_connection(self) -> int:
        return next(self._connections)

    def begin(self, peer: Peer, frame: bytes, size: int, principal: str) -> Exchange:
        """Note a request. frame: its first `KEPT_BYTES` at most, `LEAST_HEADER_BYTES` at least. size: of all of it."""
        number = self.last_number = next(self._numbers)
        api_key, api_version, correlation_id = _HEADER.unpack_from(frame)
        exchange = Exchange(number, peer, api_key, api_version, correlation_id, principal, self._now_ns(), frame, size)
        exchange.began = self.points.latest
        if api_key in SECRET_APIS:
            exchange.request, exchange.is_withheld = hide_in_request(frame, size)
        exchange.kept_bytes = kept_bytes = OVERHEAD_BYTES + len(frame)
        self._entries.append(exchange)
        self._kept_bytes += kept_bytes
        if self._kept_bytes > self.most_bytes:
            self._give_way()
        return exchange

    def end(self, exchange: Exchange, outcome: Outcome, response: bytes = b"", size: int = 0, reason: str = "") -> None:
        """Note what became of a request. response: the first `KEPT_BYTES` of its frame at most."""
        exchange.answered_ns = self._now_ns()
        exchange.reason, exchange.response_bytes = reason, size
        ends = self.look()
        exchange.point = self.points.next(ends)
        if exchange.is_kept:
            if size and exchange.api_key in SECRET_APIS:
                response, is_withheld = hide_in_response(response, size, exchange.api_key, exchange.api_version)
                exchange.is_withheld |= is_withheld
            exchange.response = response
            grown_bytes = len(response) + len(ends) * CHANGE_BYTES
            exchange.kept_bytes += grown_bytes
            self._kept_bytes += grown_bytes
            if self._kept_bytes > self.most_bytes:
                self._give_way()
        exchange.outcome = outcome

    def note(self, whose: str, text: str, caused_by: int) -> None:
        """Note what a state machine did."""
        number = self.last_number = next(self._numbers)
        if len(text) > MOST_EVENT_CHARACTERS:
            text = f"{text[: MOST_EVENT_CHARACTERS - 1]}…"
        event = Event(number, self.node_id, self._now_ns(), whose, text, caused_by)
        ends = self.look()
        event.began = self.points.latest
        event.point = self.points.next(ends)
        event.kept_bytes += len(text) + len(ends) * CHANGE_BYTES
        self._entries.append(event)
        self._kept_bytes += event.kept_bytes
        if self._kept_bytes > self.most_bytes:
            self._give_way()

    def _give_way(self) -> None:
        """Forget the oldest, somewhat more than has to be, so that this is seldom called."""
        entries, kept_bytes, count = self._entries, self._kept_bytes, 0
        enough = self.most_bytes - self.most_bytes // _SHARE_FORGOTTEN
        last = len(entries) - 1
        while kept_bytes > enough and count < last:
            oldest = entries.popleft()
            oldest.is_kept = False
            kept_bytes -= oldest.kept_bytes
            self.forgotten_to = oldest.number
            count += 1
        self._kept_bytes = kept_bytes
        self.forgotten += count
        # Whatever is kept began behind the oldest of them, and ended later than that.
        self.points.forget_before(entries[0].began)

    def _copy(self) -> list[Entry]:
        while True:
            try:
                return list(self._entries)
            except RuntimeError:  # it has grown meanwhile, in another thread
                continue


def _none() -> Ends:
    return NO_ENDS
