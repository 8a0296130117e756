"""The flags of `pykbroker client-metrics`. The model is Kafka's `ClientMetricsCommand`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from pykbroker.config.client_metrics_keys import INTERVAL_MS, MATCH, METRICS
from pykbroker.protocol.uuids import random_uuid, uuid_to_text

from .command import CommandFailed


@dataclass(frozen=True, slots=True)
class ClientMetricsOptions:
    """A field per flag. configs: those to alter; an empty one gets its default. as_kafka: with the flags of Kafka's
    tool, which asks nobody and misses no subscription.
    """

    bootstrap_server: str
    command_config: Path | None
    names: tuple[str, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    yes: bool = False
    as_json: bool = False
    as_kafka: bool = False


def configs_of(metrics: str | None, interval: str | None, match: str | None) -> dict[str, str]:
    """Return those that are given. Raises CommandFailed."""
    if interval and not interval.removeprefix("-").isdecimal():
        raise CommandFailed("Invalid interval value. Enter an integer, or leave empty to reset.")
    given = {INTERVAL_MS: interval, METRICS: metrics, MATCH: match}
    return {key: value for key, value in given.items() if value is not None}


def name_of(name: str | None) -> str:
    """Return the name that was given, or a new one, as Kafka writes UUIDs."""
    return name or uuid_to_text(random_uuid(SystemRandom()))
