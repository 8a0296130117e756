"""Effective configurations and their sources: Kafka's `ConfigHelper` and `KafkaConfigSchema`.

For a key of a topic or a group the order is: its own value, one broker's run-time value, all brokers' run-time value,
the `server.properties`, the default. Those below the winner are its synonyms, under the names they have there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import dropwhile

from pykbroker.config import (
    BrokerConfig,
    ConfigKey,
    group_keys,
    is_of_a_listener,
    key_of_listener,
    node_keys,
    topic_keys,
)
from pykbroker.config.broker_keys import DYNAMIC_ALONE, INTERNAL_AT_RUN_TIME, OF_KAFKA_4_4
from pykbroker.config.client_metrics_keys import client_metrics_keys
from pykbroker.config.group_keys import GROUP_KEYS_OF_4_4, INTERNAL_GROUP_KEYS, broker_key
from pykbroker.config.topic_keys import BROKER_SYNONYMS, INTERNAL_TOPIC_KEYS, TOPIC_KEYS_OF_4_4
from pykbroker.protocol.config_source import ConfigSource

from .features import KAFKA_4_4_SINCE, feature_level
from .image import BROKER_RESOURCE, METADATA_VERSION, MetadataImage


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """One key's value; a sensitive one is None."""

    key: ConfigKey
    value: str | None
    source: ConfigSource
    synonyms: tuple[Synonym, ...]


_ALIASES: dict[str, tuple[str, ...]] = {
    name: names for names in BROKER_SYNONYMS.values() if len(names) > 1 for name in names
}
"""Keys of the broker that mean the same in other units, the most precise one first."""


class BrokerLayers:
    """The layers of one broker's configuration. is_of_4_4: keys are described that Kafka 4.4 brought."""

    def __init__(self, config: BrokerConfig, image: MetadataImage, broker_id: int) -> None:
        self.config = config
        self.is_of_4_4 = feature_level(image, METADATA_VERSION) >= KAFKA_4_4_SINCE
        self.dynamic = image.configs.get((BROKER_RESOURCE, str(broker_id)), {})
        self.dynamic_default = image.configs.get((BROKER_RESOURCE, ""), {})
        self.merged = {**self.dynamic_default, **self.dynamic}

    @cached_property
    def topic_values(self) -> dict[str, str]:
        """Return the values of a topic without configuration of its own."""
        return self.config.topic_defaults(self.merged)

    @cached_property
    def topic_defaults(self) -> list[EffectiveConfig]:
        """The same with its sources, by name."""
        keys = topic_keys() | TOPIC_KEYS_OF_4_4 if self.is_of_4_4 else topic_keys()
        return [_topic_default(self, key, self.topic_values[name]) for name, key in sorted(keys.items())]

    def synonyms(self, name: str) -> tuple[Synonym, ...]:
        """All values of a broker's key, the one in force first.

        What stands before the first value of the key itself is another key's business, as in Kafka: a time that was
        given in hours alone has no synonym under its name in milliseconds.
        """
        found = self._layered(_ALIASES.get(name, (name,)), self._static, node_keys())
        return _from(name, found)

    def synonyms_for_listener(self, name: str, key: ConfigKey) -> tuple[Synonym, ...]:
        """All values of a key that is set for one listener by this name, the one in force first.

        In each layer the value for all listeners comes behind the one for this listener, as in Kafka.
        """
        keys = {**node_keys(), name: replace(key, default=None)}
        return _from(name, self._layered((name, key.name), {**self.config.originals, **self.config.given}, keys))

    @cached_property
    def _static(self) -> Mapping[str, str]:
        """The known keys of the properties file as they are written there."""
        given, known = self.config.given, self.config.originals
        return {name: given.get(name, text) for name, text in known.items()}

    def _layered(
        self, names: Sequence[str], static: Mapping[str, str], keys: Mapping[str, ConfigKey]
    ) -> Iterator[Synonym]:
        layers: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
            (self.dynamic, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (static, ConfigSource.STATIC_BROKER_CONFIG),
        )
        for values, source in layers:
            for name in names:
                if name in values:
                    yield Synonym(name, _written(keys.get(name), values[name]), source)
        for name in names:
            if name in keys and keys[name].default is not None:
                yield Synonym(name, _shown(keys[name], keys[name].default), ConfigSource.DEFAULT_CONFIG)


def _from(name: str, found: Iterable[Synonym]) -> tuple[Synonym, ...]:
    """The synonyms from the first one of this name on."""
    return tuple(dropwhile(lambda each: each.name != name, found))


def topic_configs(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[EffectiveConfig]:
    """All keys of a topic, by name; `overrides` is the topic's own configuration.

    Internal keys are shown where the topic has them, as they were given; so are those of 4.4, as they are meant.
    """
    shown = [_overridden(each, overrides) if each.key.name in overrides else each for each in layers.topic_defaults]
    names = {each.key.name for each in layers.topic_defaults}
    internal = [
        _internal(key, overrides[name])
        for name, key in INTERNAL_TOPIC_KEYS.items()
        if name in overrides and name not in names
    ]
    return sorted(shown + internal, key=lambda each: each.key.name) if internal else shown


def group_configs(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[EffectiveConfig]:
    """All keys of a group, by name; `overrides` is the group's own configuration.

    Internal keys are shown where the group or the broker sets them.
    """
    defaults = [
        _group_default(layers, key)
        for name, key in sorted(group_keys().items())
        if layers.is_of_4_4 or name not in GROUP_KEYS_OF_4_4 or name in overrides
    ]
    found = [
        _overridden(each, overrides, ConfigSource.GROUP_CONFIG) if each.key.name in overrides else each
        for each in defaults
    ]
    return [
        each
        for each in found
        if each.key.name not in INTERNAL_GROUP_KEYS or each.source is not ConfigSource.DEFAULT_CONFIG
    ]


def client_metrics_configs(overrides: Mapping[str, str]) -> list[EffectiveConfig]:
    """All keys of a subscription of client metrics, by name. A default has no synonyms, as in Kafka."""
    defaults = [
        EffectiveConfig(key, key.default, ConfigSource.DEFAULT_CONFIG, ())
        for _, key in sorted(client_metrics_keys().items())
    ]
    return [
        _overridden(each, overrides, ConfigSource.CLIENT_METRICS_CONFIG) if each.key.name in overrides else each
        for each in defaults
    ]


def broker_configs(layers: BrokerLayers) -> list[EffectiveConfig]:
    """All keys of a broker, by name, and those of the properties file that nobody knows. Internal keys are shown where
    the file has them, and those of Kafka 4.4 where they are set or the cluster is of 4.4.
    """
    hidden = {name for name in DYNAMIC_ALONE if name not in layers.merged}
    unless_set = INTERNAL_AT_RUN_TIME if layers.is_of_4_4 else OF_KAFKA_4_4
    hidden |= {name for name in unless_set if name not in layers.merged and name not in layers.config.originals}
    known = [
        _broker_config(layers, key)
        for name, key in sorted(node_keys().items())
        if (key.update != "internal" or name in layers.config.originals) and name not in hidden
    ]
    others = [name for name in (*layers.config.unknown_keys, *layers.merged) if name not in node_keys()]
    others += filter(is_of_a_listener, layers.config.given)
    return known + [_other_config(layers, name) for name in dict.fromkeys(others)]


def cluster_broker_configs(layers: BrokerLayers) -> list[EffectiveConfig]:
    """Return what was set at run time for all brokers, and nothing else."""
    found = []
    for name, value in layers.dynamic_default.items():
        key = node_keys().get(name) or ConfigKey(name, "unknown", None)
        shown = _shown_where_it_is_set(key, value)
        synonym = Synonym(name, _written(key, value), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        found.append(EffectiveConfig(key, shown, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, (synonym,)))
    return found


def _topic_default(layers: BrokerLayers, key: ConfigKey, value: str) -> EffectiveConfig:
    names = BROKER_SYNONYMS.get(key.name, ())
    synonyms = layers.synonyms(names[0]) if names else ()
    return EffectiveConfig(key, value, synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG, synonyms)


def _group_default(layers: BrokerLayers, key: ConfigKey) -> EffectiveConfig:
    name = broker_key(key.name)
    if name is None:
        synonym = Synonym(key.name, key.default, ConfigSource.DEFAULT_CONFIG)
        return EffectiveConfig(key, key.default, ConfigSource.DEFAULT_CONFIG, (synonym,))
    synonyms = layers.synonyms(name)
    return EffectiveConfig(key, _shown(key, layers.config.text(name, layers.merged)), synonyms[0].source, synonyms)


def _overridden(
    default: EffectiveConfig, overrides: Mapping[str, str], source: ConfigSource = ConfigSource.DYNAMIC_TOPIC_CONFIG
) -> EffectiveConfig:
    key = default.key
    value = _shown_where_it_is_set(key, overrides[key.name])
    own = Synonym(key.name, value, source)
    return EffectiveConfig(key, value, source, (own, *default.synonyms))


def _internal(key: ConfigKey, value: str) -> EffectiveConfig:
    shown = _shown(key, value) if key.name in TOPIC_KEYS_OF_4_4 else value
    own = Synonym(key.name, shown, ConfigSource.DYNAMIC_TOPIC_CONFIG)
    return EffectiveConfig(key, shown, ConfigSource.DYNAMIC_TOPIC_CONFIG, (own,))


def _broker_config(layers: BrokerLayers, key: ConfigKey) -> EffectiveConfig:
    synonyms = layers.synonyms(key.name)
    value = _shown_where_it_is_set(key, _broker_text(layers, key))
    return EffectiveConfig(key, value, synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG, synonyms)


def _broker_text(layers: BrokerLayers, key: ConfigKey) -> str | None:
    """Return the text in force. A time that was set at run time in one unit puts what the file says of it in another
    out of force, as in Kafka.
    """
    aliases = _ALIASES.get(key.name, ())
    if key.name not in layers.merged and any(each in layers.merged for each in aliases):
        return key.default
    return layers.config.text(key.name, layers.merged)


def _other_config(layers: BrokerLayers, name: str) -> EffectiveConfig:
    key = key_of_listener(name) if is_of_a_listener(name) else None
    return _unknown_config(layers, name) if key is None else _config_of_listener(layers, name, key)


def _config_of_listener(layers: BrokerLayers, name: str, key: ConfigKey) -> EffectiveConfig:
    """Describe what is set for one listener, at the start or since."""
    synonyms = layers.synonyms_for_listener(name, key)
    return EffectiveConfig(replace(key, name=name, update="static"), synonyms[0].value, synonyms[0].source, synonyms)


def _unknown_config(layers: BrokerLayers, name: str) -> EffectiveConfig:
    """Describe a key of a type that nobody knows: it may be a secret."""
    synonyms = layers.synonyms(name) or (Synonym(name, None, ConfigSource.STATIC_BROKER_CONFIG),)
    return EffectiveConfig(ConfigKey(name, "unknown", None), None, synonyms[0].source, synonyms)


def _written(key: ConfigKey | None, text: str) -> str | None:
    """A text as it was given, blanks and leading zeros included: Kafka parses values, and not those behind them."""
    return None if key is None or key.sensitive else text


def _shown(key: ConfigKey | None, text: str | None) -> str | None:
    if key is None or key.sensitive or text is None:
        return None
    return key.canonical(text)


def _shown_where_it_is_set(key: ConfigKey, text: str | None) -> str | None:
    """The text that clients see; internal keys are shown as they were written: Kafka parses the others alone."""
    is_internal = key.name in (INTERNAL_AT_RUN_TIME if key.update == "cluster" else INTERNAL_GROUP_KEYS)
    return _written(key, text) if is_internal and text is not None else _shown(key, text)
