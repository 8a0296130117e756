"""A journal keeps the latest exchanges of a node's clients within a bound of memory.

Only frames are kept; they are decoded when somebody asks (`decoding`). Secrets are not kept at all (`secrets`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from pykbroker.protocol.framing import RequestHeader

from .exchange import KEPT_BYTES, Exchange, Outcome, Peer
from .secrets import has_secrets, request_without_body, response_without_body

DEFAULT_BYTES: Final = 16 * 1024 * 1024


class Journal:
    """A journal of `most_bytes`; the oldest exchanges give way. now_ns: the wall clock.

    Exchanges that wait for their answers are among the others, and may be forgotten before these come.
    """

    def __init__(self, now_ns: Callable[[], int], most_bytes: int = DEFAULT_BYTES) -> None:
        self._now_ns = now_ns
        self._most_bytes = most_bytes
        self._exchanges: deque[Exchange] = deque()
        self._kept_bytes = 0
        self._count = 0
        self._watchers: list[Callable[[Exchange], None]] = []

    @property
    def count(self) -> int:
        """The number of the latest exchange; 0 before the first."""
        return self._count

    @property
    def forgotten(self) -> int:
        """How many exchanges are not kept any more."""
        return self._count - len(self._exchanges)

    def __iter__(self) -> Iterator[Exchange]:
        """The exchanges that are kept, in the order in which their requests came."""
        return iter(list(self._exchanges))

    def since(self, number: int) -> list[Exchange]:
        """The kept exchanges whose requests came behind the one with this number."""
        return [exchange for exchange in self._exchanges if exchange.number > number]

    def watch(self, watcher: Callable[[Exchange], None]) -> Callable[[], None]:
        """Have `watcher` called for each exchange that ends, from now on; what is returned ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def begin(self, peer: Peer, header: RequestHeader, frame: bytes, size: int, principal: str) -> Exchange:
        """Note a request. frame: its first `KEPT_BYTES` at most. size: of the whole frame."""
        self._count += 1
        if has_secrets(header.api_key):
            frame = request_without_body(frame)
        exchange = Exchange(
            number=self._count,
            peer=peer,
            api_key=header.api_key,
            api_version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            principal=principal,
            received_ns=self._now_ns(),
            request=frame,
            request_bytes=size,
        )
        self._exchanges.append(exchange)
        self._keep(exchange.kept_bytes)
        return exchange

    def end(self, exchange: Exchange, outcome: Outcome, response: bytes = b"", size: int = 0, reason: str = "") -> None:
        """Note what became of a request. response: the first `KEPT_BYTES` of its frame at most."""
        exchange.answered_ns = self._now_ns()
        exchange.outcome, exchange.reason = outcome, reason
        exchange.response_bytes = size
        if exchange.number > self.forgotten:
            exchange.response = response_without_body(response) if has_secrets(exchange.api_key) else response
            self._keep(len(exchange.response))
        for watcher in self._watchers:
            watcher(exchange)

    def _keep(self, more_bytes: int) -> None:
        self._kept_bytes += more_bytes
        while self._kept_bytes > self._most_bytes and len(self._exchanges) > 1:
            self._kept_bytes -= self._exchanges.popleft().kept_bytes


def kept(frame: bytes | memoryview) -> bytes:
    """Return what the journal keeps of a frame."""
    return bytes(frame[:KEPT_BYTES])
