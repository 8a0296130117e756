"""A node takes of a personality the offer of its listeners, and properties. What it cannot take is told.

The properties stand below those of a file and of `--override`, which win. Taken are keys that pykbroker serves; older
names get their newer ones. Error codes are not taken: they follow from versions and configurations, or differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Never

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.broker_keys import broker_keys
from pykbroker.config.topic_keys import BROKER_SYNONYMS
from pykbroker.config.unserved_keys import is_without_effect, protects
from pykbroker.metadata.feature_updates import KRAFT_VERSION
from pykbroker.metadata.features import REGISTERED_FEATURES, SUPPORTED_FEATURES
from pykbroker.metadata.image import METADATA_VERSION
from pykbroker.protocol.schema import Versions
from pykbroker.server.network.handlers import Handler
from pykbroker.server.network.offer import Offer

from . import api_names
from .kept_settings import to_text
from .personality import BadPersonality, Personality, Setting

_OF_ITS_CLUSTER: Final = {"alter.config.policy.class.name", "create.topic.policy.class.name"}
"""Classes that stand beside the brokers of that cluster, and not here."""
_NEWER_NAMES: Final = {
    "log.message.timestamp.difference.max.ms": (
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
}
"""Of keys that Kafka 4 has no more."""
_OF_QUORUMS: Final = {KRAFT_VERSION: REGISTERED_FEATURES[KRAFT_VERSION]}
_ASSIGNORS: Final = "group.consumer.assignors"
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_SERVED_PROTOCOLS: Final = ("classic", "consumer", "streams", "share")
_CLASSES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def properties_of(personality: Personality) -> dict[str, str]:
    """The properties of a broker that is configured as the cluster was. Raises BadPersonality for a wrong value.

    A value that is the default here is not given: clients see it as a default, as they do on the other cluster.
    """
    of_brokers = {**personality.broker, **personality.limits}
    settings = {**_synonyms(personality.topic, of_brokers), **of_brokers}
    taken: dict[str, str] = {}
    for name, value in settings.items():
        text = _served_part(name, to_text(value))
        names = _NEWER_NAMES.get(name, (name,))
        taken |= {each: text for each in names if _is_served(each) and (each == name or each not in settings)}
    for name, text in taken.items():
        try:
            broker_keys()[name].parse(text)
        except ConfigurationError as error:
            raise BadPersonality(f"{personality.name}: {error}") from None
    return {name: text for name, text in taken.items() if text != broker_keys()[name].default}


def settings_left_out(personality: Personality) -> list[str]:
    """The configurations of the personality that nothing here follows, by name."""
    left_out = [
        name
        for name, value in {**personality.broker, **personality.limits}.items()
        if not any(map(_is_served, _NEWER_NAMES.get(name, (name,))))
        or _served_part(name, to_text(value)) != to_text(value)
    ]
    return sorted(left_out)


def _synonyms(topic: Mapping[str, Setting], of_brokers: Mapping[str, Setting]) -> dict[str, Setting]:
    """The broker's keys that give a topic such defaults, where the broker's own are not known."""
    found: dict[str, Setting] = {}
    for name, value in topic.items():
        keys = BROKER_SYNONYMS.get(name, ())
        older = [old for old, newer in _NEWER_NAMES.items() if set(newer) & set(keys)]
        if keys and not any(each in of_brokers for each in (*keys, *older)):
            found[keys[0]] = value
    return found


def _is_served(name: str) -> bool:
    is_taken = name in broker_keys() and name not in _OF_ITS_CLUSTER
    return is_taken and not is_without_effect(name) and not protects(name)


def _served_part(name: str, text: str) -> str:
    """Return the entries of a list that are served here, by the names that they have here."""
    if name == _PROTOCOLS:
        return ",".join(each for each in text.split(",") if each in _SERVED_PROTOCOLS)
    if name == _ASSIGNORS:
        return ",".join(_CLASSES.get(each, each) for each in text.split(","))
    return text


def _has_unserved_part(name: str, text: str) -> bool:
    return _served_part(name, text).count(",") != text.count(",")


def offer_of(personality: Personality, everything_at: Iterable[str] = ()) -> Offer:
    """Return the offer of a node's listeners. everything_at: names of those that keep all versions."""
    features: dict[str, tuple[int, int]] = {}
    for name, (low, high) in (SUPPORTED_FEATURES | _OF_QUORUMS).items():
        theirs = personality.supported_features.get(name)
        if theirs is not None and max(low, theirs.low) <= min(high, theirs.high):
            features[name] = max(low, theirs.low), min(high, theirs.high)
    levels = {
        name: min(high, personality.finalized_features.get(name, 0))
        for name, (_, high) in SUPPORTED_FEATURES.items()
        if name != METADATA_VERSION
    }
    if METADATA_VERSION in features:
        low, high = features[METADATA_VERSION]
        levels[METADATA_VERSION] = min(max(personality.finalized_features.get(METADATA_VERSION, low), low), high)
    return Offer(dict(personality.versions), features, levels, frozenset(everything_at))


def missing_versions(personality: Personality, served: Iterable[Handler[Never]]) -> list[str]:
    """Name what the personality has and this broker has not: `Fetch 0-3`, `ShareFetch`, by API key."""
    handlers = {handler.api_key: Versions(handler.min_version, handler.max_version) for handler in served}
    missing = []
    for api_key, theirs in sorted(personality.versions.items()):
        name, ours = api_names.name_of(api_key), handlers.get(api_key)
        if ours is None or ours.low > theirs.high or ours.high < theirs.low:
            missing.append(name)
            continue
        below, above = Versions(theirs.low, ours.low - 1), Versions(ours.high + 1, theirs.high)
        missing += [f"{name} {each}" for each in (below, above) if each.low <= each.high]
    return missing


def listeners_of_nodes(config: BrokerConfig) -> frozenset[str]:
    """The listeners at which nodes talk to each other, and which therefore keep all versions.

    They are none where the node is alone. Raises ConfigurationError where nodes and clients share a listener.
    """
    if "broker" not in config.roles:
        raise ConfigurationError("--as is for nodes with the broker role: clients have nothing to do with a controller")
    listeners = config.listeners
    given = any(name in config.given for name in ("inter.broker.listener.name", "security.inter.broker.protocol"))
    if given and len(listeners.client) > 1 and listeners.inter_broker_name is not None:
        return frozenset({listeners.inter_broker_name})
    if _is_alone(config):
        return frozenset()
    raise ConfigurationError(
        "--as needs a listener for the nodes of a cluster alone, where they keep all versions: "
        "give it in listeners beside that of the clients, and name it in inter.broker.listener.name"
    )


def _is_alone(config: BrokerConfig) -> bool:
    others = [each for each in config.quorum_voters if each != config.node_id]
    own = {(each.host, each.port) for each in config.listeners.controller}
    elsewhere = [each for each in config.quorum_bootstrap_servers if each not in own]
    return "controller" in config.roles and not others and not elsewhere
