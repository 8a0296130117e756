"""The subscriptions of client metrics: which metrics the cluster asks of which clients, as the metadata say.

A client is asked for the metrics of all subscriptions that match it, at the shortest of their intervals. The id of
what it is asked for is computed as by Kafka's brokers, so that a client may go on at another broker of its cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import crc32c

from pykbroker.config import ConfigurationError
from pykbroker.config.client_metrics_keys import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    MATCH,
    METRICS,
    Patterns,
    check_client_metrics,
    interval_of,
    list_of,
    parse_patterns,
)
from pykbroker.java_hash import java_hash
from pykbroker.long_work import LongWork
from pykbroker.metadata.image import CLIENT_METRICS_RESOURCE, ImageChanges, MetadataImage

_log = logging.getLogger(__name__)

_STEPS_OF_MATCH: Final = 10
_STEPS_OF_PATTERNS: Final = 100
_MOST_KEPT: Final = 1_000
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The metrics that a client is asked for: prefixes of names in Kafka's order, `*` alone for all."""

    metrics: tuple[str, ...]
    interval_ms: int
    checksum: int

    def wants(self, name: str) -> bool:
        return self.metrics == (ALL_METRICS,) or name.startswith(self.metrics)


@dataclass(frozen=True, slots=True)
class _Subscription:
    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Patterns

    def matches(self, client: Mapping[str, str | None]) -> bool:
        for name, is_match in self.patterns.items():
            value = client[name]
            if value is None or not is_match(value):
                return False
        return True


class Subscriptions:
    """The subscriptions of the cluster, by name. version: grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._configs: dict[str, Mapping[str, str]] = {}
        self._names: list[str] | None = None
        """In Kafka's order; None since a change."""
        self._parsed: dict[str, _Subscription | None] = {}
        """Those that a client was compared with since they changed; None for one that cannot be read."""
        self._subscribed: dict[tuple[str, ...], Subscribed] = {}

    def __len__(self) -> int:
        return len(self._configs)

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Follow the metadata."""
        for type_, name in changes.configs:
            if type_ == CLIENT_METRICS_RESOURCE:
                self._change(name, image.client_metrics_config(name))

    def _change(self, name: str, configs: Mapping[str, str]) -> None:
        self.version += 1
        self._parsed.pop(name, None)
        self._names = None
        self._subscribed.clear()
        if configs:
            self._configs[name] = configs
        else:
            self._configs.pop(name, None)

    def asked_of(self, client: Mapping[str, str | None]) -> LongWork[tuple[int, Subscribed]]:
        """Return what a client is asked for, and as of which version. client: its values by the names of `match`."""
        version = self.version
        matching = []
        order = self._names
        if order is None:
            order = self._names = _in_javas_order(self._configs, _slots_for(len(self._configs) + 1))
            yield len(order)
        for name in order:
            if name not in self._parsed:
                yield _STEPS_OF_PATTERNS
            subscription = self._subscription(name)
            if subscription is not None and subscription.matches(client):
                matching.append((name, subscription))
            yield _STEPS_OF_MATCH
        names = tuple(name for name, _ in matching)
        if version != self.version:  # changed meanwhile: the client hears of that with its next request
            return version, _subscribed(each for _, each in matching)
        found = self._subscribed.get(names)
        if found is None:
            found = _subscribed(each for _, each in matching)
            if len(self._subscribed) < _MOST_KEPT:
                self._subscribed[names] = found
        return version, found

    def _subscription(self, name: str) -> _Subscription | None:
        if name not in self._parsed:
            configs = self._configs.get(name)
            if configs is None:  # it has gone meanwhile
                return None
            self._parsed[name] = _parsed(name, configs)
        return self._parsed[name]


def _parsed(name: str, configs: Mapping[str, str]) -> _Subscription | None:
    try:
        check_client_metrics(configs)
    except ConfigurationError as error:  # stored by a Kafka, whose patterns are Java's
        _log.warning("client metrics %s match no client of this broker: %s", repr(name[:_SHOWN]), error)
        return None
    patterns = parse_patterns(list_of(configs, MATCH))
    metrics = dict.fromkeys(list_of(configs, METRICS))
    in_order = _in_javas_order(metrics, _slots_for(len(metrics)))
    return _Subscription(tuple(in_order), interval_of(configs), patterns)


def _subscribed(subscriptions: Iterable[_Subscription]) -> Subscribed:
    interval_ms = DEFAULT_INTERVAL_MS
    metrics: dict[str, None] = {}
    for each in subscriptions:
        interval_ms = min(interval_ms, each.interval_ms)
        metrics.update(dict.fromkeys(each.metrics))
    asked = [ALL_METRICS] if ALL_METRICS in metrics else _in_javas_order(metrics, _slots_for(len(metrics)))
    checksum = crc32c.crc32c(f"[{', '.join(asked)}]{interval_ms}".encode())
    return Subscribed(tuple(asked), interval_ms, checksum)


def _in_javas_order(texts: Iterable[str], slots: int) -> list[str]:
    """The order in which a hash table of Java's with these slots gives texts that were added one by one."""

    def slot(text: str) -> int:
        hashed = java_hash(text) & 0xFFFFFFFF
        return (hashed ^ hashed >> 16) & slots - 1

    return sorted(texts, key=slot)


def _slots_for(entries: int) -> int:
    """The slots of a table that grows when more than three quarters of them are taken."""
    slots = 16
    while entries > slots * 3 // 4:
        slots *= 2
    return slots


def subscription_id(subscribed: Subscribed, client_instance_id: bytes) -> int:
    """The id of what a client is asked for, as Kafka computes it: a signed number of 32 bits."""
    halves = int.from_bytes(client_instance_id[:8], "big") ^ int.from_bytes(client_instance_id[8:], "big")
    value = (subscribed.checksum ^ halves >> 32 ^ halves) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
