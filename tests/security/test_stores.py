"""Key stores and trust stores: what keytool, openssl and PEM files hold, and how those without use are refused."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from compat_tests.certificates import Authority, Credential
from compat_tests.key_stores import (
    KEY_PASSWORD,
    STORE_PASSWORD,
    pem_certificates,
    pem_key,
    write_jks,
    write_jks_trust,
    write_pem,
    write_pem_trust,
    write_pkcs12,
    write_pkcs12_trust,
)
from pykbroker.config import ConfigurationError
from pykbroker.security.tls.contexts import server_context
from pykbroker.security.tls.own_keys import chosen_keys
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.security.tls.store_contents import StoreContents
from pykbroker.security.tls.stores import key_store, trust_store
from tests.security.handshakes import store_file

STORES = Path(__file__).with_name("stores")


def opened(path: Path, store_type: str = "JKS", password: str | None = STORE_PASSWORD) -> StoreContents:
    store = key_store(TlsSettings.of(store_file("keystore", path, store_type, password)))
    assert store is not None
    return store


def trusted(path: Path, store_type: str = "JKS", password: str | None = STORE_PASSWORD) -> list[str]:
    store = trust_store(TlsSettings.of(store_file("truststore", path, store_type, password)))
    assert store is not None
    return [each.alias for each in store.trusted]


def refusal(values: dict[str, str]) -> str:
    """Return the error for either store, one line."""
    with pytest.raises(ConfigurationError) as refused:
        open_both(TlsSettings.of(values))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def open_both(settings: TlsSettings) -> None:
    trust_store(settings)
    if settings.keystore_location or settings.keystore_key:
        server_context(settings)


def ders(credential: Credential) -> tuple[bytes, ...]:
    return tuple(each.public_bytes(Encoding.DER) for each in credential.chain)


@pytest.fixture(scope="module")
def server() -> Credential:
    return Authority.root().intermediate().server()


@pytest.mark.parametrize(
    ("name", "aliases", "key_password"),
    [
        ("two-keys.jks", ["of-ec", "of-rsa"], KEY_PASSWORD),
        ("two-keys.p12", ["of-ec", "of-rsa"], STORE_PASSWORD),
        ("of-java-8.p12", ["of-ec", "of-rsa"], STORE_PASSWORD),
        ("openssl.p12", ["of-openssl"], STORE_PASSWORD),
        ("openssl-legacy.p12", ["of-openssl"], STORE_PASSWORD),
    ],
)
@pytest.mark.parametrize("store_type", ["JKS", "PKCS12"])
def test_key_stores_of_keytool_and_openssl_open_as_either_type(
    name: str, aliases: list[str], key_password: str, store_type: str
) -> None:
    store = opened(STORES / name, store_type)
    assert [each.alias for each in store.keys] == aliases
    assert sorted(each.alias for each in chosen_keys(store, key_password)) == aliases
    assert [each.alias for each in store.trusted] == (["authority"] if len(aliases) > 1 else [])


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("trust.jks", STORE_PASSWORD),
        ("trust.jks", None),
        ("trust.p12", STORE_PASSWORD),
        ("trust-without-password.p12", STORE_PASSWORD),
        ("trust-without-password.p12", None),
    ],
)
def test_trust_stores_of_keytool_open_without_a_password_where_nothing_is_encrypted(
    name: str, password: str | None
) -> None:
    assert trusted(STORES / name, password=password) == ["authority"]


def test_a_key_in_a_trust_store_is_trusted_by_its_own_certificate(tmp_path: Path, server: Credential) -> None:
    settings = TlsSettings.of(store_file("truststore", write_pkcs12(tmp_path / "a", server), "PKCS12", STORE_PASSWORD))
    store = trust_store(settings)
    assert store is not None
    assert store.anchors == ders(server)[:1]


@pytest.mark.java
def test_what_keytool_of_this_machine_writes_is_read(tmp_path: Path, server: Credential) -> None:
    store = opened(write_jks(tmp_path / "a.jks", server, key_password=KEY_PASSWORD, alias="broker"))
    (key,) = chosen_keys(store, KEY_PASSWORD)
    assert (key.alias, key.chain) == ("broker", ders(server))
    authorities = [Authority.root(f"CN=Authority {number}") for number in range(3)]
    assert trusted(write_jks_trust(tmp_path / "trust.jks", *authorities)) == [f"authority-{n}" for n in range(3)]


def test_a_chain_is_put_together_from_the_certificates_of_a_pkcs12(tmp_path: Path, server: Credential) -> None:
    (key,) = opened(write_pkcs12(tmp_path / "a.p12", server), "PKCS12").keys
    assert key.chain == ders(server)


def test_many_authorities_of_a_pkcs12_are_trusted(tmp_path: Path) -> None:
    authorities = [Authority.root(f"CN=Authority {number}") for number in range(20)]
    assert len(trusted(write_pkcs12_trust(tmp_path / "trust.p12", *authorities))) == 20


def test_a_trust_store_in_pem_holds_many(tmp_path: Path) -> None:
    path = write_pem_trust(tmp_path / "trust.pem", *(Authority.root() for _ in range(5)))
    assert trusted(path, "PEM", None) == [f"kafka{number}" for number in range(5)]


@pytest.mark.parametrize("password", [None, KEY_PASSWORD])
def test_pem_holds_a_key_and_its_chain(tmp_path: Path, server: Credential, password: str | None) -> None:
    store = opened(write_pem(tmp_path / "server.pem", server, password), "PEM", None)
    (key,) = chosen_keys(store, password)
    assert key.chain == ders(server)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", " ", "\n  "])
def test_pem_may_stand_in_one_line_with_comments_around_it(server: Credential, line_end: str) -> None:
    key = ("Bag Attributes\n    friendlyName: x\n" + pem_key(server)).replace("\n", line_end)
    chain = pem_certificates(server.chain).replace("\n", line_end)
    values = {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    store = key_store(TlsSettings.of(values))
    assert store is not None
    assert store.keys[0].chain == ders(server)


PASSWORDS = {
    "a wrong password of JKS": ("two-keys.jks", "wrong", KEY_PASSWORD, "ssl.keystore.password"),
    "a wrong password of PKCS12": ("two-keys.p12", "wrong", None, "ssl.keystore.password"),
    "a wrong password of an old PKCS12": ("of-java-8.p12", "wrong", None, "ssl.keystore.password"),
    "a wrong password of a key in JKS": ("two-keys.jks", STORE_PASSWORD, "wrong", "ssl.key.password"),
    "a wrong password of a key in PKCS12": ("two-keys.p12", STORE_PASSWORD, "wrong", "ssl.key.password"),
}


@pytest.mark.parametrize(("name", "password", "key_password", "named"), PASSWORDS.values(), ids=PASSWORDS.keys())
def test_a_wrong_password_is_told_by_its_key(name: str, password: str, key_password: str | None, named: str) -> None:
    values = store_file("keystore", STORES / name, "JKS", password)
    if key_password:
        values["ssl.key.password"] = key_password
    with pytest.raises(ConfigurationError, match=rf"for configuration ssl\.keystore\.location: .*see {named}$") as told:
        server_context(TlsSettings.of(values))
    assert "wrong," not in str(told.value).replace("password is wrong,", "")


def test_an_encrypted_trust_store_without_its_password_is_refused() -> None:
    text = refusal(store_file("truststore", STORES / "trust.p12", "PKCS12"))
    assert text.endswith("it is encrypted; see ssl.truststore.password")


def test_a_trust_store_in_which_java_trusts_nothing_is_refused() -> None:
    text = refusal(store_file("truststore", STORES / "openssl-trust.p12", "PKCS12", STORE_PASSWORD))
    assert "no certificate in it is a trusted one" in text


def test_files_that_are_no_store_are_refused_with_what_they_are(tmp_path: Path, server: Credential) -> None:
    expected = {
        tmp_path / "missing": "No such file or directory",
        tmp_path: "Is a directory",
        write_pem(tmp_path / "server.pem", server): "it is PEM, and its type is given as JKS",
        STORES / "two-keys.jceks": "it is JCEKS",
        Path(__file__): "it is PEM" if "-----BEGIN " in Path(__file__).read_text() else "it is neither PKCS12 nor JKS",
    }
    (tmp_path / "text").write_text("no store")
    expected[tmp_path / "text"] = "it is neither PKCS12 nor JKS"
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", (16 << 20) + 1)
    expected[tmp_path / "large"] = "it has more than 16777216 bytes"
    os.mkfifo(tmp_path / "pipe")
    expected[tmp_path / "pipe"] = "it is no file"
    for path, reason in expected.items():
        for kind in ("keystore", "truststore"):
            text = refusal(store_file(kind, path, "JKS", STORE_PASSWORD))
            assert text.startswith(f"Invalid value {path} for configuration ssl.{kind}.location: {reason}")


def test_pem_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path, server: Credential) -> None:
    key, chain = pem_key(server), pem_certificates(server.chain)
    other = Authority.root().server()
    old_key = server.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    texts = {
        "": "no private key is in it",
        key: "no certificate is in it",
        chain: "no private key is in it",
        key + key + chain: "it has 2 private keys",
        old_key + chain: "its key is of the kind EC PRIVATE KEY, where PKCS#8 belongs",
        pem_key(other) + chain: "the key kafka does not belong to its certificate",
        key + pem_certificates(server.chain[::-1]): "its certificates are no chain",
        key + pem_certificates([*server.chain, other.certificate]): "its certificates are no chain",
        key + chain + chain: "its certificates are no chain",
        key + chain.replace("-----END", "-----ENDE", 1): "a block of PEM in it",
        key + re.sub("(?m)^M", "!", chain): "a block of PEM in it is not Base64",
        key + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "the certificate of kafka is malformed",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" + chain: "its key is no PKCS#8, or is damaged",
        pem_key(server, "secret") + chain: "its key is encrypted",
    }
    path = tmp_path / "store.pem"
    for text, reason in texts.items():
        path.write_text(text)
        refused = refusal(store_file("keystore", path, "PEM"))
        assert reason in refused, reason
        assert "secret" not in refused


def test_a_part_of_an_inline_store_is_told_by_its_own_key(server: Credential) -> None:
    values = {"ssl.keystore.type": "PEM", "ssl.keystore.key": pem_key(server)}
    text = refusal(values | {"ssl.keystore.certificate.chain": "none"})
    assert text == "Invalid value [hidden] for configuration ssl.keystore.certificate.chain: no certificate is in it"
    text = refusal(values | {"ssl.keystore.certificate.chain": pem_certificates(server.chain), "ssl.keystore.key": "-"})
    assert text == "Invalid value [hidden] for configuration ssl.keystore.key: no private key is in it"
    text = refusal({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "none"})
    assert text == "Invalid value [hidden] for configuration ssl.truststore.certificates: no certificate is in it"


def test_a_key_store_that_all_may_read_is_warned_of(
    tmp_path: Path, server: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_pem(tmp_path / "server.pem", server)
    with caplog.at_level(logging.WARNING):
        opened(path, "PEM", None)
        assert not caplog.messages
        path.chmod(0o644)
        opened(path, "PEM", None)
    assert caplog.messages == [f"{path}: every user of this machine may read this key store"]


@pytest.mark.parametrize("name", sorted(path.name for path in STORES.iterdir()))
def test_a_damaged_store_is_refused_and_nothing_else_happens(tmp_path: Path, name: str) -> None:
    """Bytes are changed, cut out and cut off; without a password no digest tells of it."""
    whole, random, path = (STORES / name).read_bytes(), Random(name), tmp_path / "store"
    for _ in range(30 if "java-8" in name else 150):
        data = bytearray(whole)
        at = random.randrange(len(data))
        match random.randrange(3):
            case 0:
                data[at] = random.randrange(256)
            case 1:
                del data[at : at + random.randrange(1, 20)]
            case 2:
                del data[at:]
        path.write_bytes(data)
        for values in (
            store_file("truststore", path, "PKCS12", STORE_PASSWORD),
            store_file("truststore", path, "PKCS12"),
            store_file("keystore", path, "PKCS12", STORE_PASSWORD),
        ):
            with suppress(ConfigurationError):
                open_both(TlsSettings.of(values))
