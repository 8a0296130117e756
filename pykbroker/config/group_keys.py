"""The keys of one group, with the broker's keys that give their defaults (KIP-848, 932, 1071, 1191, 1263).

The model is Kafka's `GroupConfig`. What bounds them stands in `group_bounds`.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from functools import cache
from typing import Final

from .broker import BrokerConfig
from .group_bounds import BOUND_OF, BOUNDS, check_values_of_group, clamped, keys_of
from .keys import ConfigKey, ConfigurationError
from .offset_reset import OffsetReset, offset_reset

BROKER_KEY: Final = "group.{}"
"""`consumer.session.timeout.ms` of a group has the default `group.consumer.session.timeout.ms` of the broker."""

DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
DEAD_LETTER_COPIES: Final = "errors.deadletterqueue.copy.record.enable"

GROUP_KEYS_OF_4_4: Final = frozenset((DEAD_LETTER_COPIES, DEAD_LETTER_TOPIC))
"""Those that Kafka 4.3 does not have: described where they are set, and where metadata.version is one of 4.4's."""

WITHOUT_BROKER_KEY: Final = frozenset(
    (
        DEAD_LETTER_COPIES,
        DEAD_LETTER_TOPIC,
        "share.auto.offset.reset",
        "share.isolation.level",
        "share.renew.acknowledge.enable",
    )
)
"""Keys of a group that have one default everywhere."""


_INTERNAL_BEGINNING: Final = "__"


@cache
def group_keys() -> dict[str, ConfigKey]:
    keys = (
        ConfigKey("consumer.session.timeout.ms", "int", "45000", "1..", "group"),
        ConfigKey("consumer.heartbeat.interval.ms", "int", "5000", "1..", "group"),
        ConfigKey("consumer.assignment.interval.ms", "int", "1000", "0..", "group"),
        ConfigKey(DEAD_LETTER_COPIES, "boolean", "false", "", "group"),
        ConfigKey(DEAD_LETTER_TOPIC, "string", "", "", "group"),
        ConfigKey("share.session.timeout.ms", "int", "45000", "1..", "group"),
        ConfigKey("share.heartbeat.interval.ms", "int", "5000", "1..", "group"),
        ConfigKey("share.record.lock.duration.ms", "int", "30000", "1000..", "group"),
        ConfigKey("share.delivery.count.limit", "int", "5", "2..", "group"),
        ConfigKey("share.partition.max.record.locks", "int", "2000", "100..", "group"),
        ConfigKey("share.auto.offset.reset", "string", "latest", "offset-reset", "group"),
        ConfigKey("share.isolation.level", "string", "read_uncommitted", "read_committed|read_uncommitted", "group"),
        ConfigKey("share.renew.acknowledge.enable", "boolean", "true", "", "group"),
        ConfigKey("share.assignment.interval.ms", "int", "1000", "0..", "group"),
        ConfigKey("streams.session.timeout.ms", "int", "45000", "1..", "group"),
        ConfigKey("streams.heartbeat.interval.ms", "int", "5000", "1..", "group"),
        ConfigKey("streams.num.standby.replicas", "int", "0", "0..", "group"),
        ConfigKey("streams.initial.rebalance.delay.ms", "int", "3000", "0..", "group"),
        ConfigKey("streams.assignment.interval.ms", "int", "1000", "0..", "group"),
    )
    return {key.name: key for key in keys}


def broker_key(name: str) -> str | None:
    """Return the broker's key that gives the default of a group's, None where there is none."""
    return None if name in WITHOUT_BROKER_KEY else BROKER_KEY.format(name)


def check_group_configs(configs: Mapping[str, str], broker_values: Mapping[str, str]) -> None:
    """Raises ConfigurationError if a group may not have these values.

    broker_values: the broker's keys and values, of those in `broker_keys_of_groups`.
    """
    keys = group_keys()
    for name in configs:
        if name not in keys:
            raise ConfigurationError(f"Unknown group config name: {name}")
    values = {name: keys[name].parse(text) for name, text in configs.items()}
    numbers = {name: value for name, value in values.items() if isinstance(value, int) and name in BOUND_OF}
    check_values_of_group(numbers, {name: int(text) for name, text in broker_values.items()})
    if str(values.get(DEAD_LETTER_TOPIC, "")).startswith(_INTERNAL_BEGINNING):
        raise ConfigurationError(f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '{_INTERNAL_BEGINNING}'")


def broker_keys_of_groups() -> list[str]:
    """The broker's keys whose values `check_group_configs` wants."""
    return sorted({key for bound in BOUNDS for key in keys_of(bound)})


class GroupValues:
    """The values of one group: its own within the broker's bounds, and the broker's where it has none.

    Each value is looked up when it is asked for: every heartbeat asks for a few. overrides: the group's own texts.
    dynamic: the broker's texts that were set at run time.
    """

    __slots__ = ("_config", "_dynamic", "_overrides")

    def __init__(
        self, overrides: Mapping[str, str], config: BrokerConfig, dynamic: Mapping[str, str] | None = None
    ) -> None:
        self._overrides = overrides
        self._config = config
        self._dynamic = dynamic

    def int(self, name: builtins.str) -> builtins.int:
        """The value of a key of a group that is a number: `share.session.timeout.ms`."""
        own = self._overrides.get(name)
        if own is not None:
            return clamped(name, builtins.int(own), self._broker_int)
        return self._broker_int(BROKER_KEY.format(name))

    def str(self, name: builtins.str) -> builtins.str:
        """The value of a key without one of the broker: `share.isolation.level`."""
        own = self._overrides.get(name)
        return group_keys()[name].default or "" if own is None else own

    def bool(self, name: builtins.str) -> builtins.bool:
        """The value of a key that is true or false: `share.renew.acknowledge.enable`."""
        return self.str(name).strip().lower() == "true"

    @property
    def offset_reset(self) -> OffsetReset:
        """The place where a share group without a start offset begins: `share.auto.offset.reset`."""
        return offset_reset(self.str("share.auto.offset.reset"))

    def _broker_int(self, name: builtins.str) -> builtins.int:
        text = None if self._dynamic is None else self._dynamic.get(name)
        return self._config.int(name) if text is None else builtins.int(text)


def group_values(
    overrides: Mapping[str, str], config: BrokerConfig, dynamic: Mapping[str, str] | None = None
) -> GroupValues:
    """Return the values of a group: its own, and the broker's where it has none. Every heartbeat asks for them."""
    return GroupValues(overrides, config, dynamic)
