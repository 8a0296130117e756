"""Keys that Kafka acts on and this broker does not: those that protect, and those whose absence harms nobody.

Whoever sets a key that protects believes that the broker is closed, limited or guarded by a policy. It is not, so
such a node does not start, and such a key is not accepted at run time. A key without effect is said to have none, in
one warning. What stands in neither of the two tables is read; a test compares all three with the code.
"""

from __future__ import annotations

from collections.abc import Mapping

from .broker_keys import broker_keys
from .keys import ConfigurationError
from .listener_keys import begins_with_family, is_of_a_listener, is_sasl_at_run_time, key_of_listener, tails
from .own_keys import own_keys

_PROTECTING = {
    "client.quota.callback.class",
    "config.providers",  # values may be names of secrets that nobody looks up
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
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.window.factor",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.allow.unverified.audience",
    "sasl.oauthbearer.allow.unverified.issuer",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.server.max.receive.size",
}
"""They protect and are read from the file; a change at run time would have no effect, and is refused.

Those that `is_sasl_at_run_time` names are taken, most of them for one listener alone.
"""

_SERVED_OF_A_MECHANISM = (
    "oauthbearer.sasl.login.callback.handler.class",
    "oauthbearer.sasl.server.callback.handler.class",
)
"""Ends of keys that are read for one mechanism of one listener, and protect in any other form."""

_WITHOUT_EFFECT = {
    "background.threads",
    "controller.socket.timeout.ms",
    "delete.records.purgatory.purge.interval.requests",
    "fetch.purgatory.purge.interval.requests",
    "follower.fetch.last.tiered.offset.enable",
    "group.coordinator.background.threads",
    "group.coordinator.cached.buffer.max.bytes",
    "group.coordinator.threads",
    "group.consumer.assignor.offload.enable",
    "group.share.assignor.offload.enable",
    "group.streams.assignor.offload.enable",
    "log.cleaner.io.buffer.size",
    "num.io.threads",
    "num.network.threads",
    "offsets.load.buffer.size",
    "offsets.topic.compression.codec",
    "producer.purgatory.purge.interval.requests",
    "queued.max.requests",
    "replica.socket.receive.buffer.bytes",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.jitter",
    "server.max.startup.time.ms",
    "share.coordinator.cached.buffer.max.bytes",
    "share.coordinator.load.buffer.size",
    "share.coordinator.state.topic.compression.codec",
    "share.coordinator.threads",
    "share.fetch.purgatory.purge.interval.requests",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "transaction.state.log.load.buffer.size",
}
_FAMILIES_WITHOUT_EFFECT = (
    "controller.performance.",
    "kafka.metrics.",
    "log.local.",
    "log.remote.copy.lag.",
    "metric.reporters",
    "metrics.",
    "remote.",
    "unstable.",
)


def protects(name: str, *, at_run_time: bool = False) -> bool:
    """Tell whether Kafka would guard something by that key, and this broker does not."""
    if at_run_time and is_sasl_at_run_time(name):
        return False
    if is_of_a_listener(name):
        names = list(tails(name))
        if any(each in _SERVED_OF_A_MECHANISM for each in names):
            return at_run_time
        if any(_protects(each, at_run_time) for each in names):
            return True
        return begins_with_family(name, _PROTECTING_FAMILIES)
    return _protects(name, at_run_time)


def _protects(name: str, at_run_time: bool) -> bool:
    """Tell the same of a key without a listener."""
    if name in _SERVED_FROM_THE_START:
        return at_run_time
    if name in _WITHOUT_EFFECT:
        return False
    return name in _PROTECTING or name.startswith(_PROTECTING_FAMILIES)


def is_without_effect(name: str) -> bool:
    """Tell whether a key is known, guards nothing, and is read by nobody."""
    return name in _WITHOUT_EFFECT or (name.startswith(_FAMILIES_WITHOUT_EFFECT) and name not in own_keys())


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
