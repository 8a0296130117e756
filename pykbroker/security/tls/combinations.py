"""Rules among `ssl.*` values: what Kafka's `DefaultSslEngineFactory` refuses of key stores and trust stores."""

from __future__ import annotations

from pykbroker.config import InvalidValue

from .cipher_suites import OPENSSL_NAMES, TLS_1_3_SUITES
from .given_values import GivenValues
from .refusals import INVALID_CONFIGURATION, RefusedValue, not_loaded

_IN_ANY_CASE = ("PKCS12", "JKS")
"""Java takes the names of its types in any case, and Kafka PEM in capitals."""
_HIDDEN = "[hidden]"
"""Most of these values are secrets."""


def check_key_store(given: GivenValues) -> None:
    """Raises InvalidValue."""
    kind, is_pem = given.store_type("ssl.keystore.type"), given.store_type("ssl.keystore.type") == "PEM"
    key, chain = given.text("ssl.keystore.key"), given.text("ssl.keystore.certificate.chain")
    location, password = given.text("ssl.keystore.location"), given.text("ssl.keystore.password")
    refused = _Refusals(given)
    if key is not None and not is_pem:
        text = f"SSL private key can be specified only for PEM, but key store type is {kind}."
        raise refused.because_of_type("ssl.keystore.key", "ssl.keystore.type", text)
    if key is not None and chain is None:
        text = "SSL private key is specified, but certificate chain is not specified."
        raise refused.without("ssl.keystore.key", "ssl.keystore.certificate.chain", text)
    if key is not None and location is not None:
        text = "Both SSL key store location and separate private key are specified."
        raise refused.beside("ssl.keystore.key", "ssl.keystore.location", text)
    if key is None and chain is not None:
        text = "SSL certificate chain is specified, but private key is not specified"
        raise refused.without("ssl.keystore.certificate.chain", "ssl.keystore.key", text)
    if key is None and location is None and password is not None:
        text = "SSL key store is not specified, but key store password is specified."
        raise refused.without("ssl.keystore.password", "ssl.keystore.location", text)
    if is_pem and password is not None:
        text = "SSL key store password cannot be specified with PEM format, only key password may be specified"
        text += "" if key is None else "."
        reason = f"a PEM key store has none; its key may have {given.name('ssl.key.password')}"
        raise refused.refusal("ssl.keystore.password", reason, text)
    if location is not None and not is_pem and password is None:
        text = "SSL key store is specified, but key store password is not specified."
        raise refused.without("ssl.keystore.location", "ssl.keystore.password", text, location)
    _check_file(given, "ssl.keystore.type", "ssl.keystore.location")


def check_trust_store(given: GivenValues) -> None:
    """Raises InvalidValue."""
    kind, is_pem = given.store_type("ssl.truststore.type"), given.store_type("ssl.truststore.type") == "PEM"
    certificates, location = given.text("ssl.truststore.certificates"), given.text("ssl.truststore.location")
    password = given.text("ssl.truststore.password")
    refused = _Refusals(given)
    if certificates is not None and not is_pem:
        text = f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}."
        raise refused.because_of_type("ssl.truststore.certificates", "ssl.truststore.type", text)
    if certificates is not None and location is not None:
        text = "Both SSL trust store location and separate trust certificates are specified."
        raise refused.beside("ssl.truststore.certificates", "ssl.truststore.location", text)
    if certificates is None and location is None and password is not None:
        text = "SSL trust store is not specified, but trust store password is specified."
        raise refused.without("ssl.truststore.password", "ssl.truststore.location", text)
    if is_pem and password is not None:
        text = "SSL trust store password cannot be specified for PEM format."
        raise refused.refusal("ssl.truststore.password", "a PEM trust store has none", text)
    _check_file(given, "ssl.truststore.type", "ssl.truststore.location")


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


def _check_file(given: GivenValues, type_key: str, location_key: str) -> None:
    kind, location = given.store_type(type_key), given.text(location_key)
    in_kafka = not_loaded(location or "", kind)
    if kind != "PEM" and kind.upper() not in _IN_ANY_CASE:
        raise RefusedValue(given.name(type_key), kind, f"one of PEM, {', '.join(_IN_ANY_CASE)}", in_kafka)
    if location == "" or (location and "\0" in location):
        raise RefusedValue(given.name(location_key), location, "the path of a file", in_kafka)


class _Refusals:
    """The errors of values that do not go together, by what is wrong, with Kafka's texts."""

    def __init__(self, given: GivenValues) -> None:
        self._given = given

    def refusal(self, key: str, reason: str, text: str, shown: str = _HIDDEN) -> RefusedValue:
        return RefusedValue(self._given.name(key), shown, reason, f"{INVALID_CONFIGURATION}: {text}")

    def without(self, key: str, other: str, text: str, shown: str = _HIDDEN) -> RefusedValue:
        return self.refusal(key, f"it needs {self._given.name(other)}, which is not given", text, shown)

    def beside(self, key: str, other: str, text: str) -> RefusedValue:
        return self.refusal(key, f"{self._given.name(other)} is given, too; only one of the two is allowed", text)

    def because_of_type(self, key: str, type_key: str, text: str) -> RefusedValue:
        reason = f"{self._given.name(key)} is given, which goes with PEM alone"
        return self.refusal(type_key, reason, text, self._given.store_type(type_key))
