"""The `ssl.*` values of one listener or client, in Kafka's names, and the combinations that are refused.

The refusals are those of Kafka's `DefaultSslEngineFactory`, and of Java below it, found when the node starts: Kafka
itself meets some of them in each connection. What would weaken what the administrator asked for is refused, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .combinations import check_cipher_suites, check_key_store, check_trust_store
from .given_values import SERVED_PROTOCOLS, GivenValues


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """All values, checked. A text that is None was not given. Secrets are in no repr.

    names: the keys as they were given, with their prefix, by the names without it. prefix: of those that were not.
    """

    keystore_type: str = "JKS"
    keystore_location: str | None = None
    keystore_password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = field(default=None, repr=False)
    truststore_type: str = "JKS"
    truststore_location: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    truststore_certificates: str | None = field(default=None, repr=False)
    client_auth: str = "none"
    enabled_protocols: tuple[str, ...] = SERVED_PROTOCOLS
    protocol: str = "TLSv1.3"
    cipher_suites: tuple[str, ...] = ()
    endpoint_identification_algorithm: str = "https"
    principal_mapping_rules: str = "DEFAULT"
    allow_dn_changes: bool = False
    allow_san_changes: bool = False
    names: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    prefix: str = field(default="", repr=False, compare=False)

    @classmethod
    def of(cls, values: Mapping[str, str], *, prefix: str = "", over_sasl: bool = False) -> TlsSettings:
        """Return the settings of a listener or client. Raises ConfigurationError, in one line that names the key.

        values: texts by Kafka's keys. prefix: `listener.name.<lower case name>.`; a key with it wins over the one
        without (Kafka's `valuesWithPrefixOverride`). over_sasl: clients of the listener authenticate by SASL, and
        `ssl.client.auth` counts for it with the prefix alone (KIP-684).
        """
        given = GivenValues(values, prefix)
        given.refuse_unserved()
        check_key_store(given)
        check_trust_store(given)
        check_cipher_suites(given)
        return cls(
            keystore_type=given.store_type("ssl.keystore.type"),
            keystore_location=given.text("ssl.keystore.location"),
            keystore_password=given.text("ssl.keystore.password"),
            key_password=given.text("ssl.key.password"),
            keystore_key=given.text("ssl.keystore.key"),
            keystore_certificate_chain=given.text("ssl.keystore.certificate.chain"),
            truststore_type=given.store_type("ssl.truststore.type"),
            truststore_location=given.text("ssl.truststore.location"),
            truststore_password=given.text("ssl.truststore.password"),
            truststore_certificates=given.text("ssl.truststore.certificates"),
            client_auth=given.client_auth(needs_prefix=over_sasl),
            enabled_protocols=given.enabled_protocols(),
            protocol=given.protocol(),
            cipher_suites=given.cipher_suites(),
            endpoint_identification_algorithm=given.endpoint_identification_algorithm(),
            principal_mapping_rules=given.principal_mapping_rules(),
            allow_dn_changes=given.boolean("ssl.allow.dn.changes"),
            allow_san_changes=given.boolean("ssl.allow.san.changes"),
            names=given.names,
            prefix=prefix,
        )

    @property
    def password_of_keys(self) -> str | None:
        """The password of private keys: their own, or that of the store; those in PEM have no other."""
        if self.key_password is None and self.keystore_type != "PEM":
            return self.keystore_password
        return self.key_password

    def name_of(self, key: str) -> str:
        """Return the key as it was given: with its prefix where it had one."""
        return self.names.get(key, key)

    def missing(self, key: str) -> str:
        """Return a key that was not given as this listener or client would have it."""
        return self.prefix + key
