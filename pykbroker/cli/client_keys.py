"""Client properties that are meant to protect a connection: none of them is ignored in silence.

A key of `security.`, `ssl.` or `sasl.` that no client of Kafka has is an error, since its writer believes in it: a
misspelled one, or one of librdkafka. One that Kafka's clients have and this one does not act on is a warning. Others
are ignored, as a file serves several programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .command import CommandFailed
from .output import warn

_PROTECTING: Final = ("security.", "ssl.", "sasl.")
_OF_OTHER_CLIENTS: Final = {
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location, with ssl.truststore.type=PEM",
    "ssl.ca.pem": "ssl.truststore.certificates, with ssl.truststore.type=PEM",
    "ssl.certificate.location": "ssl.keystore.location, with ssl.keystore.type=PEM",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain, with ssl.keystore.type=PEM",
    "ssl.key.location": "ssl.keystore.location, with ssl.keystore.type=PEM",
    "ssl.key.pem": "ssl.keystore.key, with ssl.keystore.type=PEM",
}
"""Names of librdkafka, and Java's for the same."""

_OF_CLIENTS: Final = frozenset(
    [
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
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
        "security.protocol",
        "security.providers",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.key.password",
        "ssl.keymanager.algorithm",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    ]
)
"""All that Kafka's producers, consumers and administrators have with these beginnings."""

_NOT_ACTED_ON: Final = (
    "config.providers",
    "sasl.client.callback.handler.class",
    "sasl.login.class",
    "security.providers",
)
_FAMILY_NOT_ACTED_ON: Final = "sasl.kerberos."
_MOST_TOLD: Final = 20


def check_client_keys(properties: Mapping[str, str]) -> None:
    """Warn of what is not acted on. Raises CommandFailed."""
    for name in properties:
        if name.startswith(_PROTECTING) and name not in _OF_CLIENTS and not _is_of_brokers(name):
            raise CommandFailed(f"{_shown(name)} is no property of a client, and would protect nothing{_meant(name)}")
    ignored = [each for each in properties if each in _NOT_ACTED_ON or each.startswith(_FAMILY_NOT_ACTED_ON)]
    if ignored:
        warn(f"no effect in pykbroker's client: {', '.join(map(_shown, ignored[:_MOST_TOLD]))}")


def _is_of_brokers(name: str) -> bool:
    """Tell whether a file that a broker has, too, may have the key."""
    from pykbroker.config import broker_keys

    return name in broker_keys()


def _meant(name: str) -> str:
    if name in _OF_OTHER_CLIENTS:
        return f": write {_OF_OTHER_CLIENTS[name]}"
    from pykbroker.config.suggestions import did_you_mean

    return did_you_mean(name, sorted(_OF_CLIENTS))


def _shown(name: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in name[:120])
