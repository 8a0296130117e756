"""Requests under way to peers: one at most for each, none for a moment after a failure (Kafka's `RequestManager`)."""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.protocol.schema import Message

from .events import Destination
from .reconnect_backoff import ReconnectBackoff
from .timeouts import Timeouts


@dataclass(frozen=True, slots=True)
class Sent:
    destination: Destination
    request: Message
    sent_ms: int


class Peers:
    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._last_id = 0
        self._under_way: dict[int, Sent] = {}
        self._ready_ms: dict[Destination, int] = {}
        self.reconnect_backoff = ReconnectBackoff(timeouts)

    def ready_ms(self, destination: Destination) -> int:
        """Return the time from which on a request may go to that peer; 0 for at once."""
        return max(self._ready_ms.get(destination, 0), self.reconnect_backoff.until_ms(destination))

    def send(self, destination: Destination, request: Message, now_ms: int) -> int:
        """Return the request's id."""
        self._last_id += 1
        self._under_way = {i: sent for i, sent in self._under_way.items() if sent.destination != destination}
        self._under_way[self._last_id] = Sent(destination, request, now_ms)
        self._ready_ms[destination] = now_ms + self._timeouts.request_ms
        return self._last_id

    def take(self, request_id: int) -> Sent | None:
        """Take back a request that was answered or never will be. Return None where nobody waits for it any more."""
        sent = self._under_way.pop(request_id, None)
        if sent is not None:
            self._ready_ms.pop(sent.destination, None)
        return sent

    def back_off(self, destination: Destination, now_ms: int) -> None:
        self._ready_ms[destination] = now_ms + self._timeouts.retry_backoff_ms

    def is_awaited(self, destination: Destination) -> bool:
        return any(sent.destination == destination for sent in self._under_way.values())

    def forget(self) -> None:
        """Forget the requests of an earlier role. The reconnect back-off stays: it does not depend on the role."""
        self._under_way.clear()
        self._ready_ms.clear()
