"""Keys that Kafka acts on and this broker does not: those that protect, and those whose absence harms nobody.

Whoever sets a key that protects believes that the broker is closed, limited or guarded by a policy. It is not, so
such a node does not start, and such a key is not accepted at run time. A key without effect is said to have none, in
one warning. What stands in neither of the two tables is read; a test compares all three with the code.
"""

from __future__ import annotations

from collections.abc import Mapping

from .broker_keys import broker_keys
from .keys import ConfigurationError
from .listener_keys import is_of_a_listener, key_of_listener, tails

_PROTECTING = {
    "alter.config.policy.class.name",
    "client.quota.callback.class",
    "config.providers",  # values may be names of secrets that nobody looks up
    "create.topic.policy.class.name",
    "principal.builder.class",
    "security.providers",
}
_PROTECTING_FAMILIES = ("sasl.",)

_SERVED_FROM_THE_START = {
    "connections.max.reauth.ms",
    "delegation.token.secret.key",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.mechanism.controller.protocol",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.server.max.receive.size",
}
"""They protect and are read from the file; a change at run time would have no effect, and is refused."""

_WITHOUT_EFFECT = {
    "alter.log.dirs.replication.quota.window.num",
    "alter.log.dirs.replication.quota.window.size.seconds",
    "background.threads",
    "controller.socket.timeout.ms",
    "delete.records.purgatory.purge.interval.requests",
    "fetch.purgatory.purge.interval.requests",
    "follower.fetch.last.tiered.offset.enable",
    "group.coordinator.background.threads",
    "group.coordinator.cached.buffer.max.bytes",
    "group.coordinator.threads",
    "log.cleaner.io.buffer.size",
    "num.io.threads",
    "num.network.threads",
    "num.replica.alter.log.dirs.threads",
    "offsets.load.buffer.size",
    "offsets.topic.compression.codec",
    "producer.purgatory.purge.interval.requests",
    "queued.max.requests",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "replica.socket.receive.buffer.bytes",
    "server.max.startup.time.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "telemetry.max.bytes",
    "transaction.state.log.load.buffer.size",
}
_FAMILIES_WITHOUT_EFFECT = (
    "controller.performance.",
    "group.share.",
    "group.streams.",
    "kafka.metrics.",
    "log.local.",
    "metric.reporters",
    "metrics.",
    "remote.",
    "share.",
    "unstable.",
)


def protects(name: str, *, at_run_time: bool = False) -> bool:
    """Tell whether Kafka would guard something by that key, and this broker does not."""
    if is_of_a_listener(name):
        return any(protects(tail, at_run_time=at_run_time) for tail in tails(name))
    if name in _SERVED_FROM_THE_START:
        return at_run_time
    return name in _PROTECTING or name.startswith(_PROTECTING_FAMILIES)


def is_without_effect(name: str) -> bool:
    """Tell whether a key is known, guards nothing, and is read by nobody."""
    return name in _WITHOUT_EFFECT or name.startswith(_FAMILIES_WITHOUT_EFFECT)


def check_served(given: Mapping[str, str], *, at_run_time: bool = False) -> None:
    """Raises ConfigurationError where a key that protects has another value than the one that protects nothing.

    given: names and texts, those that nobody knows included. at_run_time: they do not come from the file.
    """
    names = unserved(given, at_run_time=at_run_time)
    if names:
        raise ConfigurationError(
            f"{', '.join(names)}: pykbroker does not serve {'this' if len(names) == 1 else 'these'} yet, so the "
            "broker would be open where it is meant to be closed"
        )


def unserved(given: Mapping[str, str], *, at_run_time: bool = False) -> list[str]:
    """The given keys that would protect."""
    return sorted(
        name for name, text in given.items() if protects(name, at_run_time=at_run_time) and _is_set(name, text)
    )


def given_without_effect(given: Mapping[str, str]) -> list[str]:
    """The given keys that change nothing, though they have another value than the default."""
    return sorted(name for name, text in given.items() if is_without_effect(name) and _is_set(name, text))


def _is_set(name: str, text: str) -> bool:
    """An empty value names nothing that could guard."""
    key = key_of_listener(name) if is_of_a_listener(name) else broker_keys().get(name)
    if key is None or key.default is None:
        return text.strip() != ""
    try:
        return text.strip() != "" and key.parse(text) != key.parse_default()
    except ConfigurationError:
        return True
