"""Properties of Java's clients as those of librdkafka, which writes to topics: TLS and SASL.

Stores of any format become PEM texts. librdkafka has no delegation tokens (`tokenauth`) and takes tokens of OAUTHBEARER
from its own settings alone; whoever reads with them gives what writes a user of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pykbroker.client.from_properties import security_protocol
from pykbroker.config.keys import ConfigurationError
from pykbroker.security.sasl.credentials import TOKEN_AUTH, check_mechanism, client_credentials
from pykbroker.security.sasl.jaas import parse_one
from pykbroker.security.sasl.mechanism import OAUTHBEARER
from pykbroker.security.tls.own_keys import chosen_keys
from pykbroker.security.tls.pem import armored
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.security.tls.store_contents import UnreadableStore
from pykbroker.security.tls.stores import key_store, trust_store

_OWN_USER: Final = "give it a user of its own: --producer-property security.protocol=… and sasl.…"


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the connection's properties; none for PLAINTEXT. Raises ConfigurationError."""
    protocol = security_protocol(properties)
    if protocol == "PLAINTEXT":
        return {}
    found = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        found |= _of_tls(properties)
    if protocol.startswith("SASL_"):
        found |= _of_sasl(properties)
    return found


def _of_tls(properties: Mapping[str, str]) -> dict[str, str]:
    settings = TlsSettings.of(properties)
    trusted, own = trust_store(settings), key_store(settings)
    found = {"ssl.endpoint.identification.algorithm": settings.endpoint_identification_algorithm or "none"}
    if trusted is not None:
        found["ssl.ca.pem"] = _certificates(trusted.anchors)
    if own is not None:
        try:
            for key in chosen_keys(own, settings.password_of_keys)[:1]:
                found["ssl.key.pem"] = armored("PRIVATE KEY", key.pkcs8)
                found["ssl.certificate.pem"] = _certificates(key.chain)
        except UnreadableStore as error:
            raise ConfigurationError(f"{settings.name_of('ssl.keystore.location')}: {error}") from None
    return found


def _of_sasl(properties: Mapping[str, str]) -> dict[str, str]:
    key, mechanism = "sasl.jaas.config", properties.get("sasl.mechanism", "GSSAPI").strip()
    check_mechanism("sasl.mechanism", mechanism)
    if mechanism == OAUTHBEARER:
        raise ConfigurationError(f"What writes cannot log in by OAUTHBEARER as Java's clients do; {_OWN_USER}")
    module = parse_one(key, properties.get(key, ""))
    client_credentials(key, mechanism, module)
    if module.options.get(TOKEN_AUTH, "").lower() == "true":
        raise ConfigurationError(f"What writes cannot log in with a delegation token; {_OWN_USER}")
    return {
        "sasl.mechanism": mechanism,
        "sasl.username": module.options["username"],
        "sasl.password": module.options["password"],
    }


def _certificates(found: Iterable[bytes]) -> str:
    return "".join(armored("CERTIFICATE", each) for each in found)
