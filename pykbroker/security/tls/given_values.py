"""Single `ssl.*` values as they were given: read from text, with the names under which they were given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pykbroker.config import InvalidValue, broker_keys

from .cipher_suites import OPENSSL_NAMES, is_known
from .mapping_rules import parse_rules

SERVED_PROTOCOLS = ("TLSv1.2", "TLSv1.3")

_SWITCHED_OFF_PROTOCOLS = ("TLSv1.1", "TLSv1", "SSLv3", "SSLv2Hello")
"""Java knows them and offers none, whatever the configuration says; lists from before 2020 have them."""
_CONTEXTS = ("TLSv1.3", "TLSv1.2", "TLS", "SSL")
_WITHOUT_CHOICE = {
    "ssl.provider": ("SunJSSE",),
    "ssl.keymanager.algorithm": ("SunX509", "NewSunX509", "PKIX"),
    "ssl.trustmanager.algorithm": ("PKIX", "SunPKIX", "X509", "X.509"),
    "ssl.secure.random.implementation": (
        "NativePRNG",
        "NativePRNGBlocking",
        "NativePRNGNonBlocking",
        "DRBG",
        "SHA1PRNG",
    ),
}
"""Names of parts of Java, by their keys. OpenSSL's parts do the same, whichever of these is named."""


class GivenValues:
    """The values of one listener or client.

    values: texts by Kafka's keys. prefix: a key with it wins over the one without. `names`: the keys as they were
    given, by the names without the prefix.
    """

    def __init__(self, values: Mapping[str, str], prefix: str) -> None:
        self._values = values
        self.names = {name.removeprefix(prefix): name for name in values if prefix and name.startswith(f"{prefix}ssl.")}

    def name(self, key: str) -> str:
        return self.names.get(key, key)

    def text(self, key: str) -> str | None:
        """Return a text as Kafka has it, without blanks around it; None where it was not given."""
        text = self._values.get(self.name(key))
        return None if text is None else text.strip()

    def boolean(self, key: str) -> bool:
        return bool(self._parsed(key))

    def store_type(self, key: str) -> str:
        """Return a type as it was given; `combinations` knows those that there are."""
        text = self.text(key)
        return "JKS" if text is None else text

    def client_auth(self, *, needs_prefix: bool) -> str:
        """Return the value, or the default in place of one without a prefix that needs one."""
        key = "ssl.client.auth"
        value = str(self._parsed(key))
        return "none" if needs_prefix and key not in self.names else value

    def enabled_protocols(self) -> tuple[str, ...]:
        """Return those that can be served, in the order of SERVED_PROTOCOLS. None given are all."""
        key = "ssl.enabled.protocols"
        given = self._list(key) or SERVED_PROTOCOLS
        for each in given:
            if each not in SERVED_PROTOCOLS and each not in _SWITCHED_OFF_PROTOCOLS:
                raise InvalidValue(self.name(key), self.text(key), f"{each} is none of {', '.join(SERVED_PROTOCOLS)}")
        served = tuple(each for each in SERVED_PROTOCOLS if each in given)
        if not served:
            raise InvalidValue(self.name(key), self.text(key), f"at least one of {', '.join(SERVED_PROTOCOLS)}")
        return served

    def protocol(self) -> str:
        return self._one_of("ssl.protocol", _CONTEXTS)

    def cipher_suites(self) -> tuple[str, ...]:
        key = "ssl.cipher.suites"
        suites = self._list(key)
        for each in suites:
            if not is_known(each):
                java = next((name for name, openssl in OPENSSL_NAMES.items() if openssl == each), None)
                reason = f"{each} is not the name of a suite that is offered"
                hint = f"; its name in Java is {java}" if java else ", as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is"
                raise InvalidValue(self.name(key), self.text(key), reason + hint)
        return suites

    def endpoint_identification_algorithm(self) -> str:
        key = "ssl.endpoint.identification.algorithm"
        text = self.text(key)
        if text is not None and text.lower() not in ("https", ""):
            raise InvalidValue(self.name(key), text, "https, or empty for no check of host names")
        return "https" if text is None else text.lower()

    def principal_mapping_rules(self) -> str:
        key = "ssl.principal.mapping.rules"
        text = self.text(key)
        rules = "DEFAULT" if text is None else text
        parse_rules(rules, self.name(key))
        return rules

    def refuse_unserved(self) -> None:
        """Raises InvalidValue for a part of Java that OpenSSL does not stand for."""
        factory = self.text("ssl.engine.factory.class")
        if factory:
            raise InvalidValue(self.name("ssl.engine.factory.class"), factory, "no class of Java can be loaded")
        for key, known in _WITHOUT_CHOICE.items():
            if self.text(key) is not None:
                self._one_of(key, known)

    def _one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        """Return the value as it is allowed; Java takes these names in any case."""
        text = self.text(key)
        if text is None:
            return allowed[0]
        for each in allowed:
            if text.upper() == each.upper():
                return each
        raise InvalidValue(self.name(key), text, f"one of {', '.join(allowed)}")

    def _list(self, key: str) -> tuple[str, ...]:
        value = self._parsed(key)
        return tuple(dict.fromkeys(value)) if isinstance(value, list) else ()

    def _parsed(self, key: str) -> object:
        known = replace(broker_keys()[key], name=self.name(key))
        text = self.text(key)
        return known.parse_default() if text is None else known.parse(text)
