"""Connections are counted, and let in at a rate: those of all listeners of one kind together, as Kafka's
`ConnectionQuotas`.

- A listener that has no place, or is too fast, accepts nobody until it has one or the time is over; who knocks waits in
  the backlog, and with him the one who was accepted already. The listener on which brokers talk to each other waits for
  its own limits alone, and a connection beyond `max.connections` there costs a client that is idle its own.
- A connection beyond those that its address may have is closed at once. One that comes faster than the quota of its
  address (KIP-612) is closed when its client may come again, and counts for nobody.

The limits follow the configuration and the quotas of addresses in the metadata. Where these name a host, `run` finds
out its address; until then, and where it has none, there is no limit for it.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import trio

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.connection_limits import ConnectionCounts, connection_counts
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.quotas.connection_rates import UNLIMITED, AddressConnectionRates, ConnectionRate
from pykbroker.quotas.entities import CONNECTION_CREATION_RATE, IP
from pykbroker.quotas.rate import QuotaWindows

from ..runtime.clock import Clock
from ..runtime.log_lines import printable
from ..runtime.metadata_errors import MetadataErrors
from ..runtime.signal import Signal
from .host_addresses import HostAddresses, canonical_address

_log = logging.getLogger(__name__)

_NO_QUOTAS: Final[Mapping[str, float]] = {}

CloseLeastUsed = Callable[[], bool]
"""Closes the connection of a listener that was idle for longest; False where it has none to close."""


class ConnectionQuotas:
    """The connections of the listeners of one kind.

    listeners: their names. protected: that on which brokers talk to each other, if it is among others.
    """

    def __init__(
        self,
        config: BrokerConfig,
        listeners: Iterable[str],
        *,
        protected: str | None,
        windows: QuotaWindows,
        clock: Clock,
        hosts: HostAddresses,
    ) -> None:
        self._config = config
        self._listeners = list(listeners)
        self._inter_broker = protected
        self._windows = windows
        self._clock = clock
        self._hosts = hosts
        self._counts = ConnectionCounts()
        self._total = 0
        self._of_listener: Counter[str] = Counter()
        self._of_address: Counter[str] = Counter()
        self._most_of_address: dict[str | None, int] = {}
        self._rate = ConnectionRate(windows)
        self._rates = {name: ConnectionRate(windows) for name in self._listeners}
        self._rates_of_addresses = AddressConnectionRates(windows)
        self._quotas_of_hosts: dict[str, float] = {}
        """Of hosts that are named."""
        self._addresses: dict[str, str] = {}
        """Of hosts that are named, as far as they are known."""
        self.errors = MetadataErrors()
        """Settings of the metadata that could not be used are counted here."""
        self._changed = Signal()
        self._hosts_changed = Signal()
        self.close_least_used: dict[str, CloseLeastUsed] = {}
        """By the listener that they are of."""
        self._configure(connection_counts(config, self._listeners))

    # Listeners

    @property
    def _protected(self) -> str | None:
        return self._inter_broker if len(self._listeners) > 1 else None

    def add_listener(self, name: str, dynamic: Mapping[str, str]) -> None:
        """Count a listener that comes while the node runs. dynamic: the settings of the cluster for this node."""
        self._listeners.append(name)
        self._rates[name] = ConnectionRate(self._windows)
        self._take_counts(dynamic)

    def remove_listener(self, name: str) -> None:
        """Count a listener no longer; its connections count until they have left."""
        self._listeners.remove(name)
        self.close_least_used.pop(name, None)

    # Limits

    def apply(self, node_id: int, image: MetadataImage, changes: ImageChanges) -> None:
        """Take over what has changed in the metadata. A listener of the image."""
        if any(kind == BROKER_RESOURCE for kind, _ in changes.configs):
            self._take_counts(image.broker_config(node_id))
        for entity in changes.client_quotas:
            parts = dict(entity)
            if IP in parts:
                quotas = image.client_quotas.get(entity, _NO_QUOTAS)
                self._set_host_quota(parts[IP], quotas.get(CONNECTION_CREATION_RATE))

    def _take_counts(self, dynamic: Mapping[str, str]) -> None:
        try:
            counts = connection_counts(self._config, self._listeners, dynamic)
        except ConfigurationError as error:
            self.errors.apply += 1
            _log.error("the limits of connections stay as they are: %s", printable(str(error)))
        else:
            self._configure(counts)

    def _configure(self, counts: ConnectionCounts) -> None:
        self._counts = counts
        self._rate.limit = counts.creation_rate
        for name, rate in self._rates.items():
            rate.limit = counts.creation_rate_of_listener.get(name, UNLIMITED)
        self._resolve()
        self._changed.set()
        self._relieve()

    def _set_host_quota(self, host: str | None, limit: float | None) -> None:
        limit = None if limit is None else int(limit)
        address = None if host is None else canonical_address(host)
        if host is None or address is not None:
            self._rates_of_addresses.set_limit(address, limit)
        elif limit is not None:
            self._quotas_of_hosts[host] = limit
            self._resolve()
        elif self._quotas_of_hosts.pop(host, None) is not None and host in self._addresses:
            self._rates_of_addresses.set_limit(self._addresses[host], None)

    def _resolve(self) -> None:
        """Have the limits of hosts by their addresses, as far as these are known."""
        addresses = {host: self._address(host) for host in self._counts.most_of_host}
        limits = self._counts.most_of_host.items()
        self._most_of_address = {addresses[host]: most for host, most in limits if addresses[host] is not None}
        for host, limit in self._quotas_of_hosts.items():
            if host in self._addresses:
                self._rates_of_addresses.set_limit(self._addresses[host], limit)
        if self._unknown_hosts():
            self._hosts_changed.set()

    def _address(self, host: str) -> str | None:
        return canonical_address(host) or self._addresses.get(host)

    def _unknown_hosts(self) -> list[str]:
        return [host for host in (*self._counts.most_of_host, *self._quotas_of_hosts) if self._address(host) is None]

    async def run(self) -> None:
        """Find the addresses of hosts that are named, until the surrounding scope is cancelled."""
        said: set[str] = set()
        while True:
            await self._hosts_changed.wait()
            unknown = self._unknown_hosts()
            found = await self._hosts.find(unknown)
            if nowhere := [host for host in unknown if host not in found and host not in said]:
                _log.warning("no address is known of %s, whose limits do not hold", printable(", ".join(nowhere)))
            said = {host for host in unknown if host not in found}
            wanted = {*self._counts.most_of_host, *self._quotas_of_hosts}
            self._addresses = {host: each for host, each in {**self._addresses, **found}.items() if host in wanted}
            if found:
                self._resolve()
                self._hosts_changed.clear()

    # Connections

    async def until_admitted(self, listener: str) -> None:
        """Return when a connection that was just accepted on the listener may be served."""
        wait_ms = self._record(listener)
        if not wait_ms and self._has_place(listener):
            return
        deadline_s = trio.current_time() + wait_ms / 1000
        while True:
            seen = self._changed.count
            left_s = deadline_s - trio.current_time()
            if left_s <= 0 and self._has_place(listener):
                return
            with trio.move_on_after(left_s if left_s > 0 else math.inf):
                await self._changed.next(seen)

    def address_delay_ms(self, listener: str, host: str) -> int:
        """Return for how long a connection is to be held before it is closed; 0 where its address may have it."""
        if not self._rates_of_addresses.is_set:
            return 0
        now_ms = self._clock.monotonic_ms()
        delay_ms = self._rates_of_addresses.record(canonical_address(host) or host, now_ms)
        if delay_ms:
            self._rates[listener].take_back(now_ms)
            if listener != self._protected:
                self._rate.take_back(now_ms)
        return delay_ms

    def enter(self, listener: str, host: str) -> bool:
        """Count a connection; False where its address may have no more, and nothing is counted."""
        limits = self._most_of_address
        most = limits.get(canonical_address(host) or host) if limits else None
        if self._of_address[host] >= (self._counts.most_per_address if most is None else most):
            return False
        self._total += 1
        self._of_listener[listener] += 1
        self._of_address[host] += 1
        self._relieve()
        return True

    def leave(self, listener: str, host: str) -> None:
        self._total -= 1
        self._of_listener[listener] -= 1
        self._of_address[host] -= 1
        if not self._of_address[host]:
            del self._of_address[host]
        self._changed.set()
        self._relieve()

    def _record(self, listener: str) -> int:
        """Count a connection for its rates, and return how many milliseconds it has to wait."""
        now_ms = self._clock.monotonic_ms()
        wait_ms = self._rates[listener].record(now_ms)
        return wait_ms if listener == self._protected else max(wait_ms, self._rate.record(now_ms))

    def _has_place(self, listener: str) -> bool:
        if self._of_listener[listener] >= self._counts.most_of_listener.get(listener, UNLIMITED):
            return False
        return listener == self._protected or self._total < self._counts.most

    def _relieve(self) -> None:
        """Close a connection where there are too many; when it has gone, the next one."""
        if self._total > self._counts.most:
            for listener, close in self.close_least_used.items():
                if listener != self._protected and close():
                    return
