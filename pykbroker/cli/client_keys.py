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
OF_OTHER_CLIENTS: Final = {
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

_OF_CLIENTS_ALONE: Final = ("sasl.mechanism", "sasl.oauthbearer.header.urlencode", "security.protocol")
"""Brokers have all others that clients have, too; a file may be a broker's."""

NOT_ACTED_ON: Final = (
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
        if name.startswith(_PROTECTING) and not _is_known(name):
            raise CommandFailed(f"{_shown(name)} is no property of a client, and would protect nothing{_meant(name)}")
    ignored = [each for each in properties if each in NOT_ACTED_ON or each.startswith(_FAMILY_NOT_ACTED_ON)]
    if ignored:
        warn(f"no effect in pykbroker's client: {', '.join(map(_shown, ignored[:_MOST_TOLD]))}")


def _is_known(name: str) -> bool:
    from pykbroker.config import broker_keys

    return name in _OF_CLIENTS_ALONE or name in broker_keys()


def _meant(name: str) -> str:
    if name in OF_OTHER_CLIENTS:
        return f": write {OF_OTHER_CLIENTS[name]}"
    from pykbroker.config import broker_keys
    from pykbroker.config.suggestions import did_you_mean

    return did_you_mean(name, [*_OF_CLIENTS_ALONE, *(each for each in broker_keys() if each.startswith(_PROTECTING))])


def _shown(name: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in name[:120])
