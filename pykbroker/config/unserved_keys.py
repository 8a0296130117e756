"""Keys that Kafka acts on and this broker does not: those that protect, and those whose absence harms nobody.

Whoever sets a key that protects believes that the broker is closed, limited or guarded by a policy. It is not, so
such a node does not start, and such a key is not accepted at run time. A key without effect is said to have none, in
one warning. What stands in neither of the two tables is read; a test compares all three with the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .broker_keys import broker_keys
from .keys import ConfigKey, ConfigurationError

_PROTECTING = {
    "alter.config.policy.class.name",
    "authorizer.class.name",
    "client.quota.callback.class",
    "config.providers",  # values may be names of secrets that nobody looks up
    "connections.max.reauth.ms",
    "create.topic.policy.class.name",
    "delegation.token.secret.key",
    "principal.builder.class",
    "security.providers",
    # Of Kafka's own authorizer, which reads them itself.
    "allow.everyone.if.no.acl.found",
    "super.users",
}
_PROTECTING_FAMILIES = ("sasl.", "ssl.")

_PASSWORDS_OF_STORES = {"ssl.key.password", "ssl.keystore.password", "ssl.truststore.password"}
"""They guard nothing without the store that they open, whose own key protects."""

_WITHOUT_EFFECT = {
    "alter.log.dirs.replication.quota.window.num",
    "alter.log.dirs.replication.quota.window.size.seconds",
    "background.threads",
    "connection.failed.authentication.delay.ms",
    "controller.socket.timeout.ms",
    "delegation.token.expiry.check.interval.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.max.lifetime.ms",
    "delete.records.purgatory.purge.interval.requests",
    "early.start.listeners",
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

_LISTENER_PREFIX = "listener.name."


def protects(name: str) -> bool:
    """Tell whether Kafka would guard something by that key, and this broker does not."""
    if name.startswith(_LISTENER_PREFIX):
        return any(protects(tail) for tail in _tails(name))
    return name in _PROTECTING or (name.startswith(_PROTECTING_FAMILIES) and name not in _PASSWORDS_OF_STORES)


def is_without_effect(name: str) -> bool:
    """Tell whether a key is known, guards nothing, and is read by nobody."""
    return name in _WITHOUT_EFFECT | _PASSWORDS_OF_STORES or name.startswith(_FAMILIES_WITHOUT_EFFECT)


def check_served(given: Mapping[str, str]) -> None:
    """Raises ConfigurationError where a key that protects has another value than the one that protects nothing.

    given: names and texts, those that nobody knows included.
    """
    names = unserved(given)
    if names:
        raise ConfigurationError(
            f"{', '.join(names)}: pykbroker does not serve {'this' if len(names) == 1 else 'these'} yet, so the "
            "broker would be open where it is meant to be closed"
        )


def unserved(given: Mapping[str, str]) -> list[str]:
    """The given keys that would protect."""
    return sorted(name for name, text in given.items() if protects(name) and _is_set(name, text))


def given_without_effect(given: Mapping[str, str]) -> list[str]:
    """The given keys that change nothing, though they have another value than the default."""
    return sorted(name for name, text in given.items() if is_without_effect(name) and _is_set(name, text))


def _is_set(name: str, text: str) -> bool:
    """An empty value names nothing that could guard."""
    key = _key(name)
    if key is None or key.default is None:
        return text.strip() != ""
    try:
        return text.strip() != "" and key.parse(text) != key.parse_default()
    except ConfigurationError:
        return True


def _key(name: str) -> ConfigKey | None:
    names = _tails(name) if name.startswith(_LISTENER_PREFIX) else iter((name,))
    return next((broker_keys()[each] for each in names if each in broker_keys()), None)


def _tails(name: str) -> Iterator[str]:
    """Return all names that the key of `listener.name.<listener>.<mechanism>.<key>` may have."""
    parts = name.removeprefix(_LISTENER_PREFIX).split(".")
    return (".".join(parts[i:]) for i in range(1, len(parts)))
