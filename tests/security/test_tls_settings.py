"""`ssl.*` values: which win, which go together, and what an error says."""

from __future__ import annotations

import pytest

from compat_tests.certificates import Authority
from pykbroker.config import ConfigurationError
from pykbroker.security.tls.refusals import kafka_text
from pykbroker.security.tls.settings import TlsSettings
from tests.security.handshakes import key_store, trust_store

PREFIX = "listener.name.external."


def refusal(values: dict[str, str], prefix: str = "") -> str:
    """Return the error, which is one line and has none of the secrets."""
    with pytest.raises(ConfigurationError) as refused:
        TlsSettings.of(values, prefix=prefix)
    text = str(refused.value)
    assert "\n" not in text
    assert not any(value in text for key, value in values.items() if key.endswith(("password", "ssl.keystore.key")))
    return text


def test_without_values_kafkas_defaults_count() -> None:
    settings = TlsSettings.of({})
    assert settings == TlsSettings()
    assert settings.enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert settings.endpoint_identification_algorithm == "https"
    assert settings.keystore_type == settings.truststore_type == "JKS"


def test_a_key_of_the_listener_wins_over_the_one_of_the_broker() -> None:
    values = {"ssl.client.auth": "none", f"{PREFIX}ssl.client.auth": "required", "ssl.keystore.location": "/a.jks"}
    values |= {"ssl.keystore.password": "secret", "listener.name.other.ssl.client.auth": "requested"}
    settings = TlsSettings.of(values, prefix=PREFIX)
    assert settings.client_auth == "required"
    assert settings.keystore_location == "/a.jks"
    assert settings.name_of("ssl.client.auth") == f"{PREFIX}ssl.client.auth"
    assert settings.name_of("ssl.keystore.location") == "ssl.keystore.location"
    assert TlsSettings.of(values).client_auth == "none"


def test_client_auth_counts_for_clients_with_sasl_if_the_listener_names_it() -> None:
    values = {"ssl.client.auth": "required"}
    assert TlsSettings.of(values, prefix=PREFIX, over_sasl=True).client_auth == "none"
    values[f"{PREFIX}ssl.client.auth"] = "requested"
    assert TlsSettings.of(values, prefix=PREFIX, over_sasl=True).client_auth == "requested"


def test_a_prefix_is_named_where_it_was_given() -> None:
    assert f"{PREFIX}ssl.client.auth" in refusal({f"{PREFIX}ssl.client.auth": "maybe"}, PREFIX)
    text = refusal({f"{PREFIX}ssl.keystore.location": "/a.jks"}, PREFIX)
    assert f"Invalid value /a.jks for configuration {PREFIX}ssl.keystore.location" in text
    assert "ssl.keystore.password" in text


def test_secrets_are_in_no_representation() -> None:
    credential = Authority.root().server()
    values = key_store(credential) | {"ssl.key.password": "of the key"} | trust_store(credential)
    shown = repr(TlsSettings.of(values))
    stores = repr(TlsSettings.of({"ssl.keystore.location": "/a", "ssl.keystore.password": "of the store"}))
    assert "of the key" not in shown
    assert "BEGIN" not in shown
    assert "of the store" not in stores


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    settings = TlsSettings.of({"ssl.keystore.location": " /a.jks ", "ssl.keystore.password": " x "})
    assert (settings.keystore_location, settings.keystore_password) == ("/a.jks", "x")


STORES = {
    "a key without a chain": (
        {"ssl.keystore.type": "PEM", "ssl.keystore.key": "a private key"},
        "ssl.keystore.certificate.chain",
    ),
    "a chain without a key": ({"ssl.keystore.certificate.chain": "C"}, "ssl.keystore.key"),
    "a key beside another type": ({"ssl.keystore.key": "a private key", "ssl.keystore.certificate.chain": "C"}, "JKS"),
    "a key beside a file": (
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "a private key",
            "ssl.keystore.certificate.chain": "C",
            "ssl.keystore.location": "/a",
        },
        "ssl.keystore.location",
    ),
    "a password with PEM": (
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/a", "ssl.keystore.password": "secret"},
        "ssl.key.password",
    ),
    "a password without a file": ({"ssl.keystore.password": "secret"}, "ssl.keystore.location"),
    "a file without a password": (
        {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/a"},
        "ssl.keystore.password",
    ),
    "an empty location": ({"ssl.keystore.location": "", "ssl.keystore.password": "secret"}, "path of a file"),
    "certificates beside another type": ({"ssl.truststore.certificates": "C"}, "ssl.truststore.type"),
    "certificates beside a file": (
        {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "C", "ssl.truststore.location": "/a"},
        "ssl.truststore.location",
    ),
    "a trust password with PEM": (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/a", "ssl.truststore.password": "secret"},
        "ssl.truststore.password",
    ),
    "a trust password without a file": ({"ssl.truststore.password": "secret"}, "ssl.truststore.location"),
}


@pytest.mark.parametrize(("values", "named"), STORES.values(), ids=STORES.keys())
def test_values_of_stores_that_do_not_go_together_are_refused(values: dict[str, str], named: str) -> None:
    assert named in refusal(values)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("ssl.keystore.type", "JCEKS", "PEM, PKCS12, JKS"),
        ("ssl.keystore.type", "pem", "PEM"),
        ("ssl.truststore.type", "BCFKS", "PEM, PKCS12, JKS"),
        ("ssl.client.auth", "REQUIRED", "required, requested, none"),
        ("ssl.enabled.protocols", "TLSv1.3,TLSv1.4", "TLSv1.4 is none of TLSv1.2, TLSv1.3"),
        ("ssl.enabled.protocols", "tlsv1.2", "TLSv1.2"),
        ("ssl.enabled.protocols", "TLSv1.1,TLSv1", "at least one of TLSv1.2, TLSv1.3"),
        ("ssl.protocol", "TLSv1.1", "TLSv1.3, TLSv1.2"),
        ("ssl.cipher.suites", "TLS_RSA_WITH_NULL_SHA", "TLS_RSA_WITH_NULL_SHA is not"),
        ("ssl.cipher.suites", "ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        ("ssl.cipher.suites", "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "no suite"),
        ("ssl.endpoint.identification.algorithm", "LDAPS", "https, or empty"),
        ("ssl.engine.factory.class", "org.example.Factory", "no class of Java"),
        ("ssl.provider", "BCJSSE", "SunJSSE"),
        ("ssl.keymanager.algorithm", "Hardware", "SunX509"),
        ("ssl.trustmanager.algorithm", "TrustEveryone", "PKIX"),
        ("ssl.secure.random.implementation", "Dice", "NativePRNG"),
        ("ssl.principal.mapping.rules", "RULE:(/x/", "missing )"),
        ("ssl.allow.dn.changes", "perhaps", "true or false"),
    ],
)
def test_a_value_that_cannot_be_served_is_named_with_what_is_allowed(key: str, value: str, allowed: str) -> None:
    text = refusal({f"{PREFIX}{key}": value}, PREFIX)
    assert f"configuration {PREFIX}{key}" in text
    assert value in text
    assert allowed in text


def test_parts_of_java_that_protect_nothing_may_be_named() -> None:
    given = {"ssl.keymanager.algorithm": "PKIX", "ssl.trustmanager.algorithm": "PKIX", "ssl.provider": "SunJSSE"}
    assert TlsSettings.of(given | {"ssl.secure.random.implementation": "SHA1PRNG"}) == TlsSettings()


def test_protocols_that_java_has_switched_off_are_left_out() -> None:
    given = {"ssl.enabled.protocols": "TLSv1.2, TLSv1.1, TLSv1, SSLv3"}
    assert TlsSettings.of(given).enabled_protocols == ("TLSv1.2",)
    assert TlsSettings.of({"ssl.enabled.protocols": ""}).enabled_protocols == ("TLSv1.2", "TLSv1.3")


def test_a_list_that_leaves_out_a_suite_of_tls_1_3_is_refused_where_it_would_be_offered() -> None:
    some = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    text = refusal({"ssl.cipher.suites": some})
    assert "TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256" in text
    assert "ssl.enabled.protocols" in text
    assert TlsSettings.of({"ssl.cipher.suites": some, "ssl.enabled.protocols": "TLSv1.2"}).cipher_suites


def test_suites_and_protocols_must_have_one_in_common() -> None:
    older = {"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ssl.enabled.protocols": "TLSv1.3"}
    assert "no suite of it belongs to TLSv1.3" in refusal(older)


@pytest.mark.parametrize(
    ("values", "exception"),
    [
        (
            {"ssl.keystore.key": "a private key"},
            "org.apache.kafka.common.errors.InvalidConfigurationException: "
            "SSL private key can be specified only for PEM, but key store type is JKS.",
        ),
        (
            {"ssl.keystore.location": "", "ssl.keystore.type": "PEM"},
            "org.apache.kafka.common.errors.InvalidConfigurationException: Failed to load PEM SSL keystore ",
        ),
        (
            {"ssl.keystore.location": "/a", "ssl.keystore.type": "FOO", "ssl.keystore.password": "secret"},
            "org.apache.kafka.common.KafkaException: Failed to load SSL keystore /a of type FOO",
        ),
        (
            {"ssl.engine.factory.class": "x"},
            "org.apache.kafka.common.config.ConfigException: "
            "Invalid value x for configuration ssl.engine.factory.class: no class of Java can be loaded",
        ),
    ],
)
def test_a_client_is_told_kafkas_exception(values: dict[str, str], exception: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        TlsSettings.of(values)
    assert kafka_text(refused.value) == exception
