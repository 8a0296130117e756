"""Which `ssl.*` values go together: what Kafka's `DefaultSslEngineFactory` refuses of key stores and trust stores."""

from __future__ import annotations

from pykbroker.config import ConfigurationError, InvalidValue

from .cipher_suites import OPENSSL_NAMES, TLS_1_3_SUITES
from .given_values import GivenValues


def check_key_store(given: GivenValues) -> None:
    """Raises ConfigurationError."""
    store_type = given.store_type("ssl.keystore.type")
    key, chain = given.text("ssl.keystore.key"), given.text("ssl.keystore.certificate.chain")
    location, password = given.path("ssl.keystore.location"), given.text("ssl.keystore.password")
    if key is not None:
        _inline(given, "ssl.keystore.key", store_type, "ssl.keystore.type")
        if chain is None:
            raise _without(given, "ssl.keystore.key", "ssl.keystore.certificate.chain")
        if location is not None:
            raise _beside(given, "ssl.keystore.key", "ssl.keystore.location")
    elif chain is not None:
        raise _without(given, "ssl.keystore.certificate.chain", "ssl.keystore.key")
    if store_type == "PEM" and password is not None:
        raise _refused(given, "ssl.keystore.password", "a PEM key store has none; its key may have ssl.key.password")
    if key is None and location is None and password is not None:
        raise _without(given, "ssl.keystore.password", "ssl.keystore.location")
    if store_type != "PEM" and location is not None and password is None:
        name = given.name("ssl.keystore.location")
        raise InvalidValue(name, location, f"a {store_type} key store needs {given.name('ssl.keystore.password')}")


def check_trust_store(given: GivenValues) -> None:
    """Raises ConfigurationError."""
    store_type = given.store_type("ssl.truststore.type")
    certificates, location = given.text("ssl.truststore.certificates"), given.path("ssl.truststore.location")
    password = given.text("ssl.truststore.password")
    if certificates is not None:
        _inline(given, "ssl.truststore.certificates", store_type, "ssl.truststore.type")
        if location is not None:
            raise _beside(given, "ssl.truststore.certificates", "ssl.truststore.location")
    if store_type == "PEM" and password is not None:
        raise _refused(given, "ssl.truststore.password", "a PEM trust store has none")
    if certificates is None and location is None and password is not None:
        raise _without(given, "ssl.truststore.password", "ssl.truststore.location")


def check_cipher_suites(given: GivenValues) -> None:
    """Raises InvalidValue where a suite of TLS 1.3 would be offered that the list does not name, or no suite at all."""
    suites, protocols = given.cipher_suites(), given.enabled_protocols()
    if not suites:
        return
    name, text = given.name("ssl.cipher.suites"), given.text("ssl.cipher.suites")
    newest = [each for each in TLS_1_3_SUITES if each in suites] if "TLSv1.3" in protocols else []
    older = [each for each in suites if each in OPENSSL_NAMES] if "TLSv1.2" in protocols else []
    if newest and len(newest) < len(TLS_1_3_SUITES):
        missing = ", ".join(each for each in TLS_1_3_SUITES if each not in newest)
        protocols_name = given.name("ssl.enabled.protocols")
        reason = f"suites of TLS 1.3 are offered all or none; add {missing}, or take TLSv1.3 out of {protocols_name}"
        raise InvalidValue(name, text, reason)
    if not newest and not older:
        raise InvalidValue(name, text, f"no suite of it belongs to {' or '.join(protocols)}")


def _inline(given: GivenValues, key: str, store_type: str, type_key: str) -> None:
    if store_type != "PEM":
        raise InvalidValue(given.name(type_key), store_type, f"{given.name(key)} is given, which goes with PEM alone")


def _without(given: GivenValues, key: str, other: str) -> ConfigurationError:
    return _refused(given, key, f"it needs {given.name(other)}, which is not given")


def _beside(given: GivenValues, key: str, other: str) -> ConfigurationError:
    return _refused(given, key, f"{given.name(other)} is given, too; only one of the two is allowed")


def _refused(given: GivenValues, key: str, reason: str) -> ConfigurationError:
    """Values are secrets here, and not shown."""
    return InvalidValue(given.name(key), "[hidden]", reason)
