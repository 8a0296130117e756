"""Stores that a running broker does not take: each is refused with a reason, and the one before stays in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.key_stores import KEY_PASSWORD, STORE_PASSWORD, one_line, pem_certificates, pem_key, write_jks
from compat_tests.waiting import until

from .listeners import pkcs12_trust
from .reasons import REFUSED
from .reload_listeners import AUTHORITY, ELSEWHERE, FIRST, TRUSTING, UNTRUSTED
from .reload_scene import KEY_PASSWORD_KEY, LOCATION, PASSWORD, TRUST_LOCATION, TYPE, ReloadScene

OTHER_PASSWORD = "other-password"


def test_a_key_store_that_cannot_be_read_is_refused(scene: ReloadScene, answers: TestAnswers) -> None:
    good = AUTHORITY.server()
    other_password = scene.pkcs12("password", good, OTHER_PASSWORD)
    cases: dict[str, dict[str, str]] = {
        "no file": {LOCATION: str(scene.directory / "missing.p12")},
        "a directory": {LOCATION: str(scene.directory)},
        "an empty path": {LOCATION: ""},
        "an empty file": {LOCATION: scene.file("empty.p12", b"")},
        "junk": {LOCATION: scene.file("junk.p12", b"junk" * 100)},
        "a wrong store password": {PASSWORD: "wrong"},
        "an empty store password": {PASSWORD: ""},
        "another store with another password": {LOCATION: other_password},
        "the old key password": {LOCATION: other_password, PASSWORD: OTHER_PASSWORD},
        "an unknown type": {TYPE: "FOO"},
        "PEM with a store password": {TYPE: "PEM", LOCATION: scene.pem("good", good)},
    }
    for name, settings in cases.items():
        answers.same(name, scene.set("BAD", settings))
    assert scene.set("BAD", {LOCATION: scene.trust("trust", AUTHORITY)}).startswith("INVALID_REQUEST: ")
    assert scene.shown_serial("BAD") == FIRST["BAD"].certificate.serial_number
    all_three = {LOCATION: other_password, PASSWORD: OTHER_PASSWORD, KEY_PASSWORD_KEY: OTHER_PASSWORD}
    assert scene.set("BAD", all_three) == "NONE"
    scene.await_certificate("BAD", good)
    assert scene.unset("BAD", *all_three) == "NONE"
    scene.await_certificate("BAD", FIRST["BAD"])


@pytest.mark.java
def test_stores_of_java_are_read_and_refused_alike(scene: ReloadScene, answers: TestAnswers) -> None:
    good = AUTHORITY.server()
    good_jks = str(write_jks(scene.directory / "good.jks", good, key_password=KEY_PASSWORD))
    jks = {TYPE: "JKS", LOCATION: good_jks}
    answers.same("a wrong key password", scene.set("BAD", jks))
    answers.same("a wrong store password", scene.set("BAD", {**jks, PASSWORD: "wrong"}))
    right = {**jks, KEY_PASSWORD_KEY: KEY_PASSWORD}
    assert scene.set("BAD", right) == "NONE"
    scene.await_certificate("BAD", good)
    assert scene.unset("BAD", *right) == "NONE"
    scene.await_certificate("BAD", FIRST["BAD"])


def test_a_pem_file_is_read_again_or_refused(scene: ReloadScene, answers: TestAnswers) -> None:
    good = AUTHORITY.server()
    key, chain = pem_key(good), pem_certificates(good.chain)
    cases = {
        "junk": b"junk",
        "no key": chain.encode(),
        "no certificate": key.encode(),
        "a locked key without a password": (pem_key(good, KEY_PASSWORD) + chain).encode(),
    }
    for name, content in cases.items():
        answers.same(name, scene.set("PEM", {LOCATION: scene.file(f"{name}.pem", content)}))
    plain = scene.file("plain.pem", (key + chain).encode())
    answers.same("a store password", scene.set("PEM", {PASSWORD: STORE_PASSWORD}))
    answers.same("a key password for a plain key", scene.set("PEM", {LOCATION: plain, KEY_PASSWORD_KEY: KEY_PASSWORD}))
    both = {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    answers.same("a key and a chain beside the file", scene.set("PEM", both))
    for name, value in both.items():
        answers.same(f"{name} alone", scene.set("PEM", {name: value}))
    answers.same("another type", scene.set("PEM", {TYPE: "PKCS12"}))
    assert scene.shown_serial("PEM") == FIRST["PEM"].certificate.serial_number
    mixed = f"Bag Attributes\r\n  friendlyName: x\r\n{chain}subject=x\n{key}".encode()
    assert scene.set("PEM", {LOCATION: scene.file("mixed.pem", mixed)}) == "NONE"
    scene.await_certificate("PEM", good)


def test_keys_and_certificates_in_the_properties_are_replaced_or_refused(
    scene: ReloadScene, answers: TestAnswers
) -> None:
    good = AUTHORITY.server()
    key, chain = pem_key(good), pem_certificates(good.chain)
    both = {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    other = pem_certificates(AUTHORITY.server(ELSEWHERE, key=good.key).chain)
    for name, settings in {
        "junk for a key": {"ssl.keystore.key": "junk"},
        "no key": {"ssl.keystore.key": ""},
        "junk for a chain": {"ssl.keystore.certificate.chain": "junk"},
        "no chain": {"ssl.keystore.certificate.chain": ""},
        "line ends as in a properties file": {name: one_line(value) for name, value in both.items()},
        "another DN": {**both, "ssl.keystore.certificate.chain": other},
        "a file beside it": {LOCATION: scene.pem("beside", good)},
        "another type": {TYPE: "PKCS12"},
        "junk for authorities": {"ssl.truststore.certificates": "junk"},
        "no authorities": {"ssl.truststore.certificates": ""},
        "a trust store beside it": {TRUST_LOCATION: scene.trust("beside", AUTHORITY)},
    }.items():
        answers.same(name, scene.set("INLINE", settings))
    assert scene.shown_serial("INLINE") == FIRST["INLINE"].certificate.serial_number
    assert scene.set("INLINE", {name: value.replace("\n", " ") for name, value in both.items()}) == "NONE"
    scene.await_certificate("INLINE", good)
    assert scene.set("INLINE", {"ssl.truststore.certificates": pem_certificates([UNTRUSTED.certificate])}) == "NONE"
    until(lambda: scene.shown_serial("INLINE", AUTHORITY.client()) == REFUSED, "the old authority is not trusted")
    scene.await_certificate("INLINE", good, UNTRUSTED.client())


def test_a_trust_store_that_cannot_be_read_is_refused(scene: ReloadScene, answers: TestAnswers) -> None:
    alice = AUTHORITY.client()
    authority = pem_certificates([AUTHORITY.certificate])
    for name, settings in {
        "no file": {TRUST_LOCATION: str(scene.directory / "missing")},
        "an empty path": {TRUST_LOCATION: ""},
        "a wrong password": {"ssl.truststore.password": "wrong"},
        "junk": {TRUST_LOCATION: scene.file("junk-trust", b"junk" * 100)},
        "PEM with a password": {"ssl.truststore.type": "PEM", TRUST_LOCATION: scene.file("t.pem", authority.encode())},
        "certificates beside the file": {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority},
    }.items():
        answers.same(name, scene.set("TRUST", settings))
    for name, content in {"empty": b"", "junk": b"junk", "a private key": pem_key(alice).encode()}.items():
        answers.same(f"PEM: {name}", scene.set("PEMTRUST", {TRUST_LOCATION: scene.file(f"{name}.trust", content)}))
    for listener in ("TRUST", "PEMTRUST"):
        assert scene.shown_serial(listener, alice) == TRUSTING.certificate.serial_number


def test_a_trust_store_cannot_be_added(scene: ReloadScene, answers: TestAnswers) -> None:
    trust = pkcs12_trust(Path(scene.trust("added", AUTHORITY)))
    answers.same("a file", scene.set("NAMES", trust))
    pem_trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem_certificates([AUTHORITY.certificate])}
    answers.same("certificates", scene.set("NAMES", pem_trust))
    answers.same("a password", scene.set("NAMES", {"ssl.truststore.password": STORE_PASSWORD}))
    answers.same("a type", scene.set("NAMES", {"ssl.truststore.type": "PEM"}, validate_only=True))
