"""Contexts of OpenSSL: who is let in, by which versions and suites, in handshakes in memory."""

from __future__ import annotations

import logging
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from compat_tests.certificates import (
    EXPIRED,
    LOCAL_HOSTS,
    NOT_YET_VALID,
    OTHER_HOSTS,
    Authority,
    Credential,
    rsa_key,
    self_signed,
)
from compat_tests.key_stores import STORE_PASSWORD, pem_certificates, pem_key
from pykbroker.config import ConfigurationError
from pykbroker.security.tls import dh_group
from pykbroker.security.tls.cipher_suites import OPENSSL_NAMES, TLS_1_3_SUITES
from pykbroker.security.tls.contexts import client_context, server_context
from pykbroker.security.tls.settings import TlsSettings
from tests.security.handshakes import key_store, shake_hands, store_file, trust_store

ROOT = Authority.root()
SERVER, CLIENT = ROOT.server(), ROOT.client()
STORES = Path(__file__).with_name("stores")
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
Values = dict[str, str]


def serving(**values: str) -> ssl.SSLContext:
    """Return the context of a listener with values beside its stores; `_` stands for a dot."""
    return server_of(key_store(SERVER) | trust_store(ROOT) | dotted(values))


def connecting(**values: str) -> ssl.SSLContext:
    return client_of(trust_store(ROOT) | dotted(values))


def server_of(values: Values) -> ssl.SSLContext:
    return server_context(TlsSettings.of(values)).context


def client_of(values: Values) -> ssl.SSLContext:
    return client_context(TlsSettings.of(values))


def dotted(values: Values) -> Values:
    return {key.replace("_", "."): value for key, value in values.items()}


def der(credential: Credential) -> bytes:
    return credential.certificate.public_bytes(Encoding.DER)


def refused(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> str:
    with pytest.raises(ssl.SSLError) as error:
        shake_hands(server, client, host)
    return str(error.value)


def test_a_client_verifies_the_server_and_its_name() -> None:
    for host in LOCAL_HOSTS:
        pair = shake_hands(serving(), connecting(), host)
        assert pair.version == "TLSv1.3"
        assert pair.server_certificate == der(SERVER)
        assert pair.client_certificate is None


def test_a_server_of_another_authority_or_name_is_refused() -> None:
    assert "unable to get local issuer" in refused(serving(), client_of(trust_store(Authority.root())))
    elsewhere = server_of(key_store(ROOT.server(hosts=OTHER_HOSTS)))
    assert "Hostname mismatch" in refused(elsewhere, connecting())
    assert shake_hands(elsewhere, connecting(ssl_endpoint_identification_algorithm=""), "localhost").version
    assert "self-signed" in refused(server_of(key_store(self_signed())), connecting())


def test_a_certificate_without_alternative_names_is_known_by_its_common_name() -> None:
    old = server_of(key_store(ROOT.server("CN=localhost", hosts=())))
    assert shake_hands(old, connecting(), "localhost").version
    assert "IP address mismatch" in refused(old, connecting(), "127.0.0.1")


@pytest.mark.parametrize("lifetime", [EXPIRED, NOT_YET_VALID])
def test_a_certificate_outside_its_lifetime_is_warned_of_and_refused_by_the_other_side(
    lifetime: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        server = server_of(key_store(ROOT.server(lifetime=lifetime)))  # type: ignore[arg-type]
    (message,) = caplog.messages
    assert message.startswith("ssl.keystore.key=[hidden]: the certificate of kafka ")
    assert "expired" in refused(server, connecting()) or "not yet valid" in refused(server, connecting())


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("auth", ["none", "requested", "required"])
def test_client_auth_asks_for_a_certificate(auth: str, version: str) -> None:
    server = serving(ssl_client_auth=auth, ssl_enabled_protocols=version)
    with_certificate = client_of(trust_store(ROOT) | key_store(CLIENT))
    pair = shake_hands(server, with_certificate, "localhost")
    assert pair.version == version
    assert pair.client_certificate == (None if auth == "none" else der(CLIENT))
    if auth == "required":
        assert "did not return a certificate" in refused(server, connecting())
    else:
        assert shake_hands(server, connecting(), "localhost").client_certificate is None


@pytest.mark.parametrize("auth", ["requested", "required"])
@pytest.mark.parametrize(
    "stranger",
    [self_signed(), Authority.root().client(), ROOT.client(lifetime=EXPIRED), ROOT.client(lifetime=NOT_YET_VALID)],
    ids=["self-signed", "of another authority", "expired", "not yet valid"],
)
def test_a_clients_certificate_that_does_not_verify_is_refused(auth: str, stranger: Credential) -> None:
    server = serving(ssl_client_auth=auth)
    assert "certificate verify failed" in refused(server, client_of(trust_store(ROOT) | key_store(stranger)))


def test_any_certificate_of_the_trust_store_ends_a_chain() -> None:
    intermediate = ROOT.intermediate()
    server = server_of(key_store(intermediate.server()))
    for trusted in (trust_store(intermediate), trust_store(intermediate, ROOT), trust_store(ROOT)):
        assert shake_hands(server, client_of(trusted), "localhost").version
    alone = intermediate.server()
    trusted = trust_store(Credential(alone.key, alone.certificate))
    assert shake_hands(server_of(key_store(alone)), client_of(trusted), "localhost").version
    assert "certificate verify failed" in refused(server, client_of(trusted))


def test_without_a_trust_store_the_systems_authorities_are_trusted(caplog: pytest.LogCaptureFixture) -> None:
    assert "certificate verify failed" in refused(serving(), client_of({}))
    server_of(key_store(SERVER))
    assert not caplog.messages
    server = server_of(key_store(SERVER) | {"ssl.client.auth": "required"})
    known = client_of(trust_store(ROOT) | key_store(CLIENT))
    assert "certificate verify failed" in refused(server, known)
    assert caplog.messages == [
        "ssl.client.auth=required without ssl.truststore.location trusts each authority of the system"
    ]


def test_a_trust_store_is_read_by_those_who_do_not_use_it(tmp_path: Path) -> None:
    """As in Kafka: a wrong password is found before it matters."""
    missing = store_file("truststore", tmp_path / "missing", "PEM")
    with pytest.raises(ConfigurationError, match=r"ssl\.truststore\.location: No such file"):
        server_of(key_store(SERVER) | missing)


def test_a_client_always_verifies_and_a_server_never_renegotiates() -> None:
    client, server = connecting(ssl_endpoint_identification_algorithm=""), serving()
    assert (client.verify_mode, client.check_hostname) == (ssl.CERT_REQUIRED, False)
    for context in (client, server):
        assert context.options & ssl.OP_NO_RENEGOTIATION
        assert context.options & ssl.OP_NO_COMPRESSION
        assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT
        assert context.keylog_filename is None


@pytest.mark.parametrize(
    ("of_server", "of_client", "version"),
    [
        ("TLSv1.2,TLSv1.3", "TLSv1.2,TLSv1.3", "TLSv1.3"),
        ("TLSv1.2", "TLSv1.2,TLSv1.3", "TLSv1.2"),
        ("TLSv1.3", "TLSv1.2", None),
        ("TLSv1.2", "TLSv1.3", None),
        ("TLSv1.2,TLSv1.1", "TLSv1.2", "TLSv1.2"),
    ],
)
def test_only_enabled_versions_are_spoken(of_server: str, of_client: str, version: str | None) -> None:
    server, client = serving(ssl_enabled_protocols=of_server), connecting(ssl_enabled_protocols=of_client)
    if version is None:
        assert "protocol" in refused(server, client).lower()
    else:
        assert shake_hands(server, client, "localhost").version == version


def test_a_client_of_the_older_context_speaks_no_newer_version_and_a_server_does() -> None:
    assert shake_hands(serving(ssl_protocol="TLSv1.2"), connecting(), "localhost").version == "TLSv1.3"
    assert shake_hands(serving(), connecting(ssl_protocol="TLSv1.2"), "localhost").version == "TLSv1.2"
    with pytest.raises(ConfigurationError, match=r"ssl\.protocol: a client offers no more"):
        connecting(ssl_protocol="TLSv1.2", ssl_enabled_protocols="TLSv1.3")


@pytest.mark.parametrize("suite", OPENSSL_NAMES)
def test_every_suite_with_a_name_in_java_is_spoken(suite: str) -> None:
    key = ROOT.server() if "ECDSA" in suite else ROOT.server(key=rsa_key())
    server = server_of(key_store(key) | {"ssl.cipher.suites": suite})
    pair = shake_hands(server, connecting(ssl_cipher_suites=suite), "localhost")
    assert (pair.version, pair.suite) == ("TLSv1.2", OPENSSL_NAMES[suite])


def test_a_list_without_suites_of_tls_1_3_leaves_that_version_out() -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert shake_hands(serving(ssl_cipher_suites=suite), connecting(), "localhost").suite == OPENSSL_NAMES[suite]
    newest = serving(ssl_cipher_suites=",".join(TLS_1_3_SUITES))
    assert shake_hands(newest, connecting(), "localhost").suite in TLS_1_3_SUITES
    assert "protocol" in refused(newest, connecting(ssl_enabled_protocols="TLSv1.2"))
    with pytest.raises(ConfigurationError, match=r"ssl\.cipher\.suites: no suite of it belongs to TLSv1\.2"):
        connecting(ssl_protocol="TLSv1.2", ssl_cipher_suites=",".join(TLS_1_3_SUITES))


def test_without_a_list_there_is_forward_secrecy_alone() -> None:
    server = server_of(key_store(ROOT.server(key=rsa_key())))
    for weak in ("TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"):
        assert "no shared cipher" in refused(server, connecting(ssl_cipher_suites=weak))


def test_the_group_of_dhe_is_the_one_of_rfc_7919() -> None:
    digits = f"{dh_group.prime():x}"
    assert len(digits) == 512
    assert digits.startswith("ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1")
    assert digits.endswith("886b423861285c97ffffffffffffffff")


def test_keys_of_different_kinds_are_all_offered() -> None:
    server = server_of(store_file("keystore", STORES / "two-keys.p12", "PKCS12", STORE_PASSWORD))
    seen = set()
    for suite in ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"):
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        client.set_ciphers(OPENSSL_NAMES[suite])
        seen.add(shake_hands(server, client).server_certificate)
    assert len(seen) == 2


def test_of_two_keys_of_one_kind_the_one_that_is_valid_is_taken(tmp_path: Path) -> None:
    from pykbroker.security.tls.own_keys import chosen_keys
    from pykbroker.security.tls.pem import key_store as pem_store
    from pykbroker.security.tls.pem import read_chain, read_key
    from pykbroker.security.tls.store_contents import KeyEntry, StoreContents

    def entry(alias: str, credential: Credential) -> KeyEntry:
        (key,) = pem_store(read_key(pem_key(credential)), read_chain(pem_certificates(credential.chain))).keys
        return KeyEntry(alias, key.chain, key.open_key)

    entries = entry("a", ROOT.server(lifetime=EXPIRED)), entry("b", SERVER), entry("c", ROOT.server())
    assert [each.alias for each in chosen_keys(StoreContents(entries), None)] == ["b"]


def test_a_server_without_a_key_store_is_refused() -> None:
    settings = TlsSettings.of({"listener.name.a.ssl.client.auth": "none"}, prefix="listener.name.a.")
    with pytest.raises(ConfigurationError, match=r"no key store: ssl\.keystore\.location is not given"):
        server_context(settings)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (rsa.generate_private_key(65537, 1024), "ee key too small"),
        (dsa.generate_private_key(2048), "its key is of DSA"),
    ],
    ids=["rsa of 1024 bits", "dsa"],
)
def test_a_key_that_is_too_weak_is_refused(key: object, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"ssl\.keystore\.key: .*{reason}"):
        server_of(key_store(ROOT.server(key=key)))  # type: ignore[arg-type]


def test_a_key_of_ed25519_is_served() -> None:
    credential = ROOT.server(key=ed25519.Ed25519PrivateKey.generate())  # type: ignore[arg-type]
    assert shake_hands(server_of(key_store(credential)), connecting(), "localhost").server_certificate == der(
        credential
    )


def test_a_session_is_resumed_with_the_certificate_of_its_client() -> None:
    server, client = serving(ssl_client_auth="required"), client_of(trust_store(ROOT) | key_store(CLIENT))
    session = shake_hands(server, client, "localhost").send_session()
    again = shake_hands(server, client, "localhost", session)
    assert again.client.session_reused
    assert again.client_certificate == der(CLIENT)
    after_a_reload = shake_hands(serving(ssl_client_auth="required"), client, "localhost", session)
    assert not after_a_reload.client.session_reused


def test_the_identity_of_a_server_is_that_of_its_certificates() -> None:
    identity = server_context(TlsSettings.of(key_store(SERVER))).identity
    (entry,) = identity.entries
    assert (entry.alias, entry.name) == ("kafka", "CN=localhost, O=Example")
    assert entry.alternative_names == {"[2, localhost]", "[7, 127.0.0.1]", "[7, 0:0:0:0:0:0:0:1]"}


def test_all_kinds_of_alternative_names_are_part_of_the_identity() -> None:
    from pykbroker.security.tls.identity import Identity
    from pykbroker.security.tls.store_contents import StoreContents, TrustedEntry

    names = [
        x509.RFC822Name("a@example.org"),
        x509.UniformResourceIdentifier("spiffe://example.org/a"),
        x509.DirectoryName(x509.Name.from_rfc4514_string("CN=a")),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    ]
    builder = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(x509.Name([])).serial_number(1)
    builder = builder.not_valid_before(EPOCH).not_valid_after(EPOCH).public_key(SERVER.key.public_key())
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = builder.sign(SERVER.key, SHA256()).public_bytes(Encoding.DER)
    (entry,) = Identity.of(StoreContents(trusted=(TrustedEntry("a", certificate),))).entries
    assert entry.shown_alternative_names == "[[1, a@example.org], [4, CN=a], [6, spiffe://example.org/a], [8, 1.2.3]]"


def test_no_private_key_is_left_in_a_file_or_a_descriptor(tmp_path: Path) -> None:
    """Another process tells: it makes a context and lists what it has open."""
    (tmp_path / "server.pem").write_text(pem_key(SERVER) + pem_certificates(SERVER.chain))
    script = (
        "import os, sys, tempfile\n"
        "from pykbroker.security.tls.contexts import server_context\n"
        "from pykbroker.security.tls.settings import TlsSettings\n"
        "before = os.listdir('/proc/self/fd')\n"
        "server_context(TlsSettings.of({'ssl.keystore.type': 'PEM', 'ssl.keystore.location': sys.argv[1]}))\n"
        "print(os.listdir('/proc/self/fd') == before, os.listdir(tempfile.gettempdir()))\n"
    )
    (tmp_path / "empty").mkdir()
    command = [sys.executable, "-c", script, str(tmp_path / "server.pem")]
    environment = {"TMPDIR": str(tmp_path / "empty"), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "True []\n"


def test_settings_alone_import_neither_ssl_nor_cryptography() -> None:
    script = (
        "import sys\n"
        "from pykbroker.security.tls.settings import TlsSettings\n"
        "TlsSettings.of({'ssl.client.auth': 'required'})\n"
        "print([name for name in ('ssl', 'cryptography', 're2') if name in sys.modules])\n"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
