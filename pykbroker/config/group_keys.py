"""The keys of one group, with the broker's keys that give their defaults (KIP-848, 932, 1071, 1191, 1263).

The model is Kafka's `GroupConfig`. What bounds them stands in `group_bounds`.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from functools import cache
from typing import Final

from .broker import BrokerConfig
from .group_bounds import (
    BOUND_OF,
    BOUNDS,
    KINDS,
    check_bounds_of_group,
    check_sessions_of_group,
    clamped,
    keys_of,
)
from .keys import ConfigKey, ConfigurationError
from .offset_reset import OffsetReset, offset_reset
from .streams_groups import STICKY, STREAMS_ASSIGNORS, check_rack_aware_tags, streams_assignors

BROKER_KEY: Final = "group.{}"
"""`consumer.session.timeout.ms` of a group has the default `group.consumer.session.timeout.ms` of the broker."""

DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
DEAD_LETTER_COPIES: Final = "errors.deadletterqueue.copy.record.enable"

RACK_AWARE_TAGS: Final = "streams.rack.aware.assignment.tags"
STREAMS_ASSIGNOR: Final = "streams.assignor.name"

WITHOUT_EFFECT: Final = frozenset(f"{kind}.assignor.offload.enable" for kind in KINDS)
"""Keys that nothing here depends on: large assignments are always computed beside the event loop."""

INTERNAL_GROUP_KEYS: Final = WITHOUT_EFFECT | {
    "streams.acceptable.recovery.lag",
    "streams.num.warmup.replicas",
    "streams.task.offset.interval.ms",
}
"""Keys that Kafka does not document: described where the group or the broker sets them."""

GROUP_KEYS_OF_4_4: Final = INTERNAL_GROUP_KEYS | {
    DEAD_LETTER_COPIES,
    DEAD_LETTER_TOPIC,
    RACK_AWARE_TAGS,
    STREAMS_ASSIGNOR,
}
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
        ConfigKey("consumer.assignor.offload.enable", "boolean", "true", "", "group"),
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
        ConfigKey("share.assignor.offload.enable", "boolean", "true", "", "group"),
        ConfigKey("streams.session.timeout.ms", "int", "45000", "1..", "group"),
        ConfigKey("streams.heartbeat.interval.ms", "int", "5000", "1..", "group"),
        ConfigKey("streams.num.standby.replicas", "int", "0", "0..", "group"),
        ConfigKey("streams.initial.rebalance.delay.ms", "int", "3000", "0..", "group"),
        ConfigKey("streams.assignment.interval.ms", "int", "1000", "0..", "group"),
        ConfigKey("streams.assignor.offload.enable", "boolean", "true", "", "group"),
        ConfigKey("streams.task.offset.interval.ms", "int", "60000", "1..", "group"),
        ConfigKey("streams.num.warmup.replicas", "int", "2", "0..", "group"),
        ConfigKey(RACK_AWARE_TAGS, "list", "", "", "group"),
        ConfigKey("streams.acceptable.recovery.lag", "long", "10000", "0..", "group"),
        ConfigKey(STREAMS_ASSIGNOR, "string", STICKY, "", "group"),
    )
    return {key.name: key for key in keys}


def broker_key(name: str) -> str | None:
    """Return the broker's key that gives the default of a group's, None where there is none."""
    if name == STREAMS_ASSIGNOR:
        return STREAMS_ASSIGNORS
    return None if name in WITHOUT_BROKER_KEY else BROKER_KEY.format(name)


def known_group_keys(*, is_of_4_4: bool) -> Mapping[str, ConfigKey]:
    """Return the keys that groups of a cluster may have. is_of_4_4: whether metadata.version is one of Kafka 4.4.

    Those of dead letter queues are known to every cluster: share.version decides about the queues.
    """
    keys = group_keys()
    if is_of_4_4:
        return keys
    unknown = GROUP_KEYS_OF_4_4 - {DEAD_LETTER_COPIES, DEAD_LETTER_TOPIC}
    return {name: key for name, key in keys.items() if name not in unknown}


def check_group_configs(
    configs: Mapping[str, str], broker_values: Mapping[str, str], *, is_of_4_4: bool = False
) -> None:
    """Raises ConfigurationError if a group may not have these values.

    broker_values: the broker's keys and values, of those in `broker_keys_of_groups`. is_of_4_4: whether the rules and
    their words are those of Kafka 4.4; what only it knows is no key otherwise.
    """
    keys = known_group_keys(is_of_4_4=is_of_4_4)
    for name in configs:
        if name not in keys:
            raise ConfigurationError(f"Unknown group config name: {name}")
    check_rack_aware_tags(RACK_AWARE_TAGS, configs.get(RACK_AWARE_TAGS))
    values = {name: keys[name].parse(text) for name, text in configs.items()}
    numbers = {name: value for name, value in values.items() if isinstance(value, int) and name in BOUND_OF}
    bounds = {name: int(text) for name, text in broker_values.items() if name != STREAMS_ASSIGNORS}
    check_bounds_of_group(numbers, bounds, is_of_4_4=is_of_4_4)
    _check_streams_assignor(configs.get(STREAMS_ASSIGNOR), broker_values)
    check_sessions_of_group(numbers, bounds)
    if str(values.get(DEAD_LETTER_TOPIC, "")).startswith(_INTERNAL_BEGINNING):
        raise ConfigurationError(f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '{_INTERNAL_BEGINNING}'")


def broker_keys_of_groups() -> list[str]:
    """The broker's keys whose values `check_group_configs` wants."""
    return sorted({STREAMS_ASSIGNORS}.union(*map(keys_of, BOUNDS)))


def _check_streams_assignor(name: str | None, broker_values: Mapping[str, str]) -> None:
    registered = streams_assignors(broker_values[STREAMS_ASSIGNORS].split(","))
    if name is not None and name not in registered:
        raise ConfigurationError(
            f"{STREAMS_ASSIGNOR} '{name}' is not a registered task assignor. Registered assignors are: "
            f"[{', '.join(registered)}]."
        )


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

    def list(self, name: builtins.str) -> builtins.list[builtins.str]:
        """The value of a key that is a list, or the broker's: `streams.rack.aware.assignment.tags`."""
        own = self._overrides.get(name)
        if own is None:
            return self._config.list(BROKER_KEY.format(name))
        value = group_keys()[name].parse(own)
        assert isinstance(value, builtins.list), name
        return value

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
