"""The keys of one consumer group (KIP-848, KIP-1263), with the broker's keys that give their defaults and bounds.

The model is Kafka's `GroupConfig`; its keys for share and streams groups belong to what is not offered here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from .broker import BrokerConfig
from .consumer_groups import BOUNDED, bound_keys
from .keys import ConfigKey, ConfigurationError

BROKER_KEY = "group.{}"
"""`consumer.session.timeout.ms` of a group has the default `group.consumer.session.timeout.ms` of the broker."""

_BOUNDS = {f"consumer.{name}": bound_keys(name) for name in BOUNDED}


@cache
def group_keys() -> dict[str, ConfigKey]:
    keys = (
        ConfigKey("consumer.session.timeout.ms", "int", "45000", "1..", "group"),
        ConfigKey("consumer.heartbeat.interval.ms", "int", "5000", "1..", "group"),
        ConfigKey("consumer.assignment.interval.ms", "int", "1000", "0..", "group"),
    )
    return {key.name: key for key in keys}


def check_group_configs(configs: Mapping[str, str], broker_values: Mapping[str, str]) -> None:
    """Raises ConfigurationError if a group may not have these values. broker_values: the broker's keys and values."""
    keys = group_keys()
    for name in configs:
        if name not in keys:
            raise ConfigurationError(f"Unknown group config name: {name}")
    values = {name: int(str(keys[name].parse(text))) for name, text in configs.items()}
    for name, value in values.items():
        low, high = _BOUNDS[name]
        if value < int(broker_values[low]):
            raise ConfigurationError(f"{name} must be greater than or equal to {low}")
        if value > int(broker_values[high]):
            raise ConfigurationError(f"{name} must be less than or equal to {high}")
    of_group = {BROKER_KEY.format(name): value for name, value in values.items()}
    merged = {name: int(text) for name, text in broker_values.items()} | of_group
    if merged["group.consumer.heartbeat.interval.ms"] >= merged["group.consumer.session.timeout.ms"]:
        raise ConfigurationError("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")


def broker_keys_of_groups() -> list[str]:
    """The broker's keys whose values `check_group_configs` wants."""
    return [BROKER_KEY.format(name) for name in group_keys()] + [key for bounds in _BOUNDS.values() for key in bounds]


def group_values(
    overrides: Mapping[str, str], config: BrokerConfig, dynamic: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Return the values of a group: its own, and the broker's where it has none. Every heartbeat asks for them."""
    return {
        name: int(overrides.get(name) or config.text(BROKER_KEY.format(name), dynamic) or "") for name in group_keys()
    }
