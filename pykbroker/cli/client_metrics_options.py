"""The flags of `pykbroker client-metrics`. The model is Kafka's `ClientMetricsCommand`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom

from pykbroker.config.client_metrics_keys import INTERVAL_MS, MATCH, METRICS
from pykbroker.protocol.uuids import random_uuid, uuid_to_text

from .command import CommandFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A value per config; None leaves it, and an empty one gives it its default."""

    metrics: str | None = None
    interval: str | None = None
    match: str | None = None

    @property
    def configs(self) -> dict[str, str]:
        """Those that are given. Raises CommandFailed."""
        if self.interval and not self.interval.removeprefix("-").isdecimal():
            raise CommandFailed("Invalid interval value. Enter an integer, or leave empty to reset.")
        given = {INTERVAL_MS: self.interval, METRICS: self.metrics, MATCH: self.match}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def is_empty(self) -> bool:
        return self.metrics is self.interval is self.match is None


@dataclass(frozen=True, slots=True)
class ClientMetricsOptions:
    """A field per flag. as_kafka: with the flags of Kafka's tool, which asks nobody and misses no subscription."""

    bootstrap_server: str
    command_config: Path | None
    names: tuple[str, ...] = ()
    subscription: Subscription = Subscription()
    yes: bool = False
    as_json: bool = False
    as_kafka: bool = False

    def of(self, *names: str) -> ClientMetricsOptions:
        return replace(self, names=names)


def name_of(name: str | None) -> str:
    """Return the name that was given, or a new one, as Kafka writes UUIDs."""
    return name or uuid_to_text(random_uuid(SystemRandom()))
