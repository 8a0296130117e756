"""Sightings of consumers' fetches: which partitions a client's newest Fetch is about, from where, and since when.

They answer who asks why a consumer gets nothing (`pykbroker.control.why`). A node keeps them where somebody may ask,
and has none otherwise. Each connection has its own; the ones that fetched longest ago go where there are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.replication.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, TOPIC_IDS_SINCE_VERSION, PartitionAnswers

from ..network.handlers import ConnectionState
from ..network.transport import Transport

MOST_CLIENTS: Final = 1_000
MOST_PARTITIONS: Final = 50_000
"""Of all clients together; and of one client a tenth."""
_MOST_OF_ONE: Final = MOST_PARTITIONS // 10
_NAME_CHARACTERS: Final = 250
_READ_COMMITTED: Final = 1

_Place = tuple[str, int]


@dataclass(slots=True)
class FetchedPartition:
    """A partition in a client's fetches. Times are monotonic.

    first_offset: where the client's first Fetch of it began; offset: where the newest one does. error: of the last
    answer that had one, at error_ms; error_offset: what was asked for then. records_ms: when it last got records.
    """

    first_offset: int
    first_ms: int
    offset: int
    named_ms: int
    error: ErrorCode = ErrorCode.NONE
    error_ms: int = 0
    error_offset: int = -1
    records_ms: int | None = None


@dataclass(slots=True)
class FetchingClient:
    """A connection by which a client fetches. transport: None in tests without one.

    current: the partitions that the newest Fetch is about. former: those that it has left out. last_ms: when the newest
    one came. waiting: how many of its fetches wait for records now. throttled_until_ms: until when a quota has held
    back the last one that it did.
    """

    client_id: str
    host: str
    principal: str
    transport: Transport | None = None
    current: dict[_Place, FetchedPartition] = field(default_factory=dict)
    former: dict[_Place, FetchedPartition] = field(default_factory=dict)
    last_ms: int = 0
    waiting: int = 0
    is_read_committed: bool = False
    throttled_until_ms: int | None = None
    number: int = 0
    is_full: bool = False
    """The client fetches more partitions than are noted."""

    @property
    def is_open(self) -> bool:
        """Tell whether the client has not closed the connection, as far as this end hears of it."""
        return self.transport is None or not self.transport.has_peer_left()

    @property
    def size(self) -> int:
        return len(self.current) + len(self.former)

    def fetched(self, place: _Place) -> tuple[FetchedPartition, int] | None:
        """Return what is known of a partition, and when the client last fetched it; None where it never did."""
        found = self.current.get(place)
        if found is not None:
            return found, self.last_ms
        found = self.former.get(place)
        return None if found is None else (found, found.named_ms)

    def begin(
        self, request: FetchRequest, version: int, topic_name: Callable[[bytes], str | None], now_ms: int
    ) -> None:
        """Note a Fetch that has come."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._leave_out(list(self.current))
        else:
            for forgotten in request.forgotten_topics_data:
                name = topic_name(forgotten.topic_id) if version >= TOPIC_IDS_SINCE_VERSION else forgotten.topic
                if name is not None:
                    self._leave_out([(name, index) for index in forgotten.partitions])
        for topic in request.topics:
            name = topic_name(topic.topic_id) if version >= TOPIC_IDS_SINCE_VERSION else topic.topic
            if name is None:
                continue
            for each in topic.partitions:
                self._note((name, each.partition), each.fetch_offset, now_ms)
        self.last_ms = now_ms
        self.waiting += 1
        self.is_read_committed = request.isolation_level == _READ_COMMITTED

    def _leave_out(self, places: list[_Place]) -> None:
        for place in places:
            partition = self.current.pop(place, None)
            if partition is not None:
                partition.named_ms = self.last_ms
                self.former[place] = partition

    def _note(self, place: _Place, offset: int, now_ms: int) -> None:
        partition = self.current.get(place) or self.former.pop(place, None)
        if partition is None:
            if self.size >= _MOST_OF_ONE:
                self.is_full = True
                return
            partition = FetchedPartition(offset, now_ms, offset, now_ms)
        partition.offset, partition.named_ms = offset, now_ms
        self.current[place] = partition

    def answered(self, answers: PartitionAnswers, now_ms: int) -> None:
        for cached, data in answers:
            if not data.records_size and data.error_code is ErrorCode.NONE:
                continue
            partition = self.current.get((cached.topic or "", cached.partition))
            if partition is None:
                continue
            if data.error_code is not ErrorCode.NONE:
                partition.error, partition.error_ms = data.error_code, now_ms
                partition.error_offset = cached.request.fetch_offset
            elif data.records_size:
                partition.records_ms = now_ms

    def end(self) -> None:
        """Note that the Fetch is over."""
        self.waiting -= 1


class FetchSightings:
    """The sightings of one node, from its start on."""

    def __init__(self) -> None:
        self._clients: dict[int, FetchingClient] = {}
        self._numbers = count(1)
        self._partitions = 0
        self.has_forgotten = False
        """Not all that has been fetched is here."""

    def begin(
        self,
        connection: ConnectionState,
        request: FetchRequest,
        version: int,
        topic_name: Callable[[bytes], str | None],
        now_ms: int,
    ) -> FetchingClient:
        """Note a Fetch; its `end` is to be called when it is over."""
        header = connection.request
        client_id = ("" if header is None else header.client_id or "")[:_NAME_CHARACTERS]
        client = connection.fetching
        if not isinstance(client, FetchingClient) or client.client_id != client_id:
            principal = connection.principal[:_NAME_CHARACTERS]
            client = FetchingClient(client_id, connection.client_address, principal, connection.transport)
            client.number = next(self._numbers)
            connection.fetching = client
        if self._clients.pop(client.number, None) is not None:
            self._partitions -= client.size
        client.begin(request, version, topic_name, now_ms)
        self._clients[client.number] = client  # the newest last
        self._partitions += client.size
        self.has_forgotten |= client.is_full
        while len(self._clients) > MOST_CLIENTS or self._partitions > MOST_PARTITIONS:
            self.has_forgotten = True
            self._partitions -= self._clients.pop(next(iter(self._clients))).size
        return client

    def __iter__(self) -> Iterator[FetchingClient]:
        """Iterate over the clients, the one that fetched last first."""
        return iter(list(reversed(self._clients.values())))
