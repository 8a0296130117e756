"""The series of all clients as their last pushes have left them, in bounded memory.

A push replaces what its client pushed before, so what is not pushed any more is gone; sums go on. When there is no room
for further series, those that are there go on, and the others are left out. A client that has left is shown for two
minutes more, so that its last push is scraped; one that is silent, for as long as its instance is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pykbroker.long_work import portions
from pykbroker.metric_labels import label
from pykbroker.protocol.uuids import uuid_to_text

from .client_instances import ClientInstance
from .otlp import Pushed
from .series import Labels, SeriesKey, SeriesValue
from .series_names import OF_CLIENTS

SHOWN_WHEN_LEFT_MS: Final = 120_000
MOST_BYTES: Final = 32 * 1024 * 1024
_SHARE_OF_CLIENT: Final = 10
_MOST_OF_CLIENT: Final = 2_000
"""What is taken over in a turn of the loop."""
_BYTES_OF_CLIENT: Final = 1_200
_BYTES_OF_SERIES: Final = 250
_BYTES_OF_LABEL: Final = 100


@dataclass(frozen=True, slots=True)
class ClientSeries:
    """The series of one client. labels: who it is."""

    labels: Labels
    series: Mapping[SeriesKey, SeriesValue]
    size_bytes: int
    expires_ms: int


class PushedMetrics:
    """The series that clients have pushed. most: of all clients together, of which one has a tenth."""

    def __init__(self, most: int, most_bytes: int = MOST_BYTES) -> None:
        self.most_of_client = min(max(most // _SHARE_OF_CLIENT, 1), most, _MOST_OF_CLIENT)
        self.left_out = 0
        """Series of pushes that found no room, since the start."""
        self._most = most
        self._most_bytes = most_bytes
        self._clients: dict[bytes, ClientSeries] = {}
        self._series = 0
        self._bytes = 0

    @property
    def series_count(self) -> int:
        return self._series

    @property
    def size_bytes(self) -> int:
        return self._bytes

    @property
    def limit_bytes(self) -> int:
        return self._most_bytes

    @property
    def clients(self) -> Mapping[bytes, ClientSeries]:
        """The clients by their instance ids, in the order of their first pushes."""
        return self._clients

    def series_of(self, instance_id: bytes) -> Mapping[SeriesKey, SeriesValue]:
        """Return the series that the client has pushed so far, from which its next push goes on."""
        found = self._clients.get(instance_id)
        return {} if found is None else found.series

    def take(self, instance: ClientInstance, pushed: Pushed, now_ms: int) -> None:
        """Replace what the client pushed before. pushed: `totals` of what it had."""
        before = self._clients.get(instance.instance_id)
        if before is not None:
            self._series -= len(before.series)
            self._bytes -= before.size_bytes
        series, size = self._fitting(pushed.series)
        self.left_out += pushed.left_out + len(pushed.series) - len(series)
        if not series:
            self._clients.pop(instance.instance_id, None)
            return
        expires_ms = now_ms + (SHOWN_WHEN_LEFT_MS if instance.terminating else instance.life_ms)
        self._clients[instance.instance_id] = ClientSeries(_labels_of(instance), series, size, expires_ms)
        self._series += len(series)
        self._bytes += size

    def _fitting(self, series: Mapping[SeriesKey, SeriesValue]) -> tuple[Mapping[SeriesKey, SeriesValue], int]:
        """Return the series that have room, and their size."""
        fitting: dict[SeriesKey, SeriesValue] = {}
        size = _BYTES_OF_CLIENT
        for key, value in series.items():
            needed = _BYTES_OF_SERIES + value.size_bytes
            needed += sum(_BYTES_OF_LABEL + len(text) for _, text in key.labels)
            if self._series + len(fitting) >= self._most or self._bytes + size + needed > self._most_bytes:
                break
            fitting[key] = value
            size += needed
        return fitting, size

    def left(self, instance_id: bytes, now_ms: int) -> None:
        """Show the client for some time more. It may come back."""
        found = self._clients.get(instance_id)
        if found is not None:
            expires_ms = min(found.expires_ms, now_ms + SHOWN_WHEN_LEFT_MS)
            self._clients[instance_id] = replace(found, expires_ms=expires_ms)

    def expire(self, now_ms: int) -> Iterator[int]:
        """Forget the clients whose time is over; each step says how many were looked at."""
        for portion in portions(list(self._clients.items())):
            for instance_id, client in portion:
                if client.expires_ms <= now_ms and self._clients.get(instance_id) is client:
                    del self._clients[instance_id]
                    self._series -= len(client.series)
                    self._bytes -= client.size_bytes
            yield len(portion)


def totals(pushed: Pushed, before: Mapping[SeriesKey, SeriesValue]) -> Pushed:
    """Add what has come since the last push to what was there before."""
    return Pushed({key: value.after(before.get(key)) for key, value in pushed.series.items()}, pushed.left_out)


def _labels_of(instance: ClientInstance) -> Labels:
    client = instance.client
    texts = (uuid_to_text(instance.instance_id), client.client_id, client.software_name, client.software_version)
    return tuple(zip(OF_CLIENTS, map(label, texts), strict=True))
