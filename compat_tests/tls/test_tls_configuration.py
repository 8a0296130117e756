"""Settings of a TLS listener that do not fit: pykbroker says in one line which key, which value and what is allowed.

Apache Kafka starts with some of them, and its clients then find out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerFailed, BrokerProcess
from compat_tests.certificates import EXPIRED, Authority
from compat_tests.key_stores import (
    KEY_PASSWORD,
    STORE_PASSWORD,
    pem_certificates,
    pem_key,
    write_pem,
    write_pkcs12,
    write_pkcs12_trust,
)
from compat_tests.waiting import DEADLINE_S

from .listeners import SecuredBroker, Settings, inline, inline_trust, pem, pem_trust, pkcs12, pkcs12_trust

AUTHORITY, OTHER = Authority.root(), Authority.root("CN=Another authority,O=Example")
CREDENTIAL = AUTHORITY.server()
INLINE = inline(CREDENTIAL)
SECRETS = re.compile(f"{STORE_PASSWORD}|{KEY_PASSWORD}|wrong-password|PRIVATE KEY")
BETWEEN = {"inter.broker.listener.name": "X"}


@dataclass(frozen=True, slots=True)
class Case:
    """settings: of the listener, with its stores in a directory. The error's line has key, value and allowed in it.

    value: None for a secret. kafka_starts: whether Apache Kafka starts.
    """

    name: str
    settings: Callable[[Path], Settings]
    key: str
    value: str | None
    allowed: str
    kafka_starts: bool = False
    is_between_brokers: bool = False


def p12(directory: Path, **changed: str) -> Settings:
    """A good key store, but for what is changed: `keystore_type="FOO"`."""
    settings = pkcs12(write_pkcs12(directory / "good.p12", CREDENTIAL))
    return settings | {f"ssl.{key.replace('_', '.')}": value for key, value in changed.items()}


def without(settings: Settings, key: str) -> Settings:
    return {each: value for each, value in settings.items() if each != key}


def trusting(directory: Path, **changed: str) -> Settings:
    trust = pkcs12_trust(write_pkcs12_trust(directory / "trust.p12", AUTHORITY))
    return {**p12(directory), **trust, **{f"ssl.{key.replace('_', '.')}": value for key, value in changed.items()}}


def pem_file(directory: Path, content: str) -> Settings:
    path = directory / "bad.pem"
    path.write_text(content)
    return pem(path)


def expired_between_brokers(directory: Path) -> Settings:
    expired = write_pkcs12(directory / "expired.p12", AUTHORITY.server(lifetime=EXPIRED))
    return {**trusting(directory), **pkcs12(expired)}


def other_trust(directory: Path) -> Settings:
    return {**p12(directory), **pkcs12_trust(write_pkcs12_trust(directory / "other.p12", OTHER))}


CHAIN, KEY = pem_certificates(CREDENTIAL.chain), pem_key(CREDENTIAL)
PATH = "ssl.keystore.location"
TRUST_PATH = "ssl.truststore.location"
CASES = [
    Case("no key store", lambda d: {}, PATH, "X", "not given", kafka_starts=True),
    Case("no file", lambda d: {**p12(d), PATH: str(d / "missing.p12")}, PATH, "missing.p12", "No such file"),
    Case("junk", lambda d: {**p12(d), PATH: str(junk(d))}, PATH, "junk", "neither PKCS12 nor JKS"),
    Case("a wrong password", lambda d: p12(d, keystore_password="wrong-password"), PATH, "good.p12", "password"),
    Case("no password", lambda d: without(p12(d), "ssl.keystore.password"), PATH, "good.p12", "ssl.keystore.password"),
    Case("a wrong key password", lambda d: p12(d, key_password="wrong-password"), PATH, "good.p12", "password"),
    Case("an unknown type", lambda d: p12(d, keystore_type="FOO"), "ssl.keystore.type", "FOO", "PEM, PKCS12, JKS"),
    Case("PEM with a store password", lambda d: p12(d, keystore_type="PEM"), "ssl.keystore.password", None, "PEM"),
    Case("PEM without a key", lambda d: pem_file(d, CHAIN), PATH, "bad.pem", "no private key"),
    Case("PEM without a certificate", lambda d: pem_file(d, KEY), PATH, "bad.pem", "no certificate"),
    Case(
        "a key of another certificate",
        lambda d: pem_file(d, pem_key(AUTHORITY.server()) + CHAIN),
        PATH,
        "bad.pem",
        "does not belong",
        kafka_starts=True,
    ),
    Case("a locked key", lambda d: pem_file(d, pem_key(CREDENTIAL, KEY_PASSWORD) + CHAIN), PATH, "bad.pem", "password"),
    Case(
        "a key without a chain",
        lambda d: without(INLINE, "ssl.keystore.certificate.chain"),
        "ssl.keystore.key",
        None,
        "ssl.keystore.certificate.chain",
    ),
    Case(
        "a key and a file",
        lambda d: {**INLINE, PATH: str(write_pem(d / "good.pem", CREDENTIAL))},
        "ssl.keystore.key",
        None,
        "only one",
    ),
    Case("a key without PEM", lambda d: without(INLINE, "ssl.keystore.type"), "ssl.keystore.type", "JKS", "PEM"),
    Case("junk for a key", lambda d: {**INLINE, "ssl.keystore.key": "junk"}, "ssl.keystore.key", None, "private key"),
    Case(
        "no trust store file",
        lambda d: trusting(d, truststore_location="/no/trust"),
        TRUST_PATH,
        "/no/trust",
        "No such",
    ),
    Case(
        "a wrong trust password",
        lambda d: trusting(d, truststore_password="wrong-password"),
        TRUST_PATH,
        "trust.p12",
        "password",
    ),
    Case(
        "a trust password alone",
        lambda d: p12(d, truststore_password=STORE_PASSWORD),
        "ssl.truststore.password",
        None,
        TRUST_PATH,
    ),
    Case(
        "two trust stores",
        lambda d: {**p12(d), **pem_trust(Path("/no/trust.pem")), **inline_trust(AUTHORITY)},
        "ssl.truststore.certificates",
        None,
        "only one",
    ),
    Case("a word for client.auth", lambda d: p12(d, client_auth="perhaps"), "ssl.client.auth", "perhaps", "requested"),
    Case(
        "an unknown version",
        lambda d: p12(d, enabled_protocols="TLSv1.4"),
        "ssl.enabled.protocols",
        "TLSv1.4",
        "TLSv1.2, TLSv1.3",
        kafka_starts=True,
    ),
    Case(
        "an unknown cipher",
        lambda d: p12(d, cipher_suites="NO_SUCH_CIPHER"),
        "ssl.cipher.suites",
        "NO_SUCH_CIPHER",
        "TLS_",
        kafka_starts=True,
    ),
    Case(
        "a broken rule",
        lambda d: {**p12(d), "ssl.principal.mapping.rules": "RULE:^CN=(.*"},
        "ssl.principal.mapping.rules",
        "RULE:^CN=(.*",
        "RULE:pattern/replacement/",
    ),
    Case(
        "a class of Java",
        lambda d: p12(d, engine_factory_class="org.example.Factory"),
        "ssl.engine.factory.class",
        "org.example.Factory",
        "Java",
    ),
    Case(
        "brokers that do not trust themselves",
        other_trust,
        PATH,
        "good.p12",
        "",
        is_between_brokers=True,
    ),
    Case(
        "brokers whose certificate has expired",
        expired_between_brokers,
        PATH,
        "expired.p12",
        "expired",
        is_between_brokers=True,
    ),
]


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int | None, str]]:
    """What became of a start of pykbroker in each case: the exit code, None where it serves, and what it said."""
    files = []
    for case in CASES:
        broker = secured("pykbroker", case, tmp_path_factory.mktemp("case"))
        broker.directory.mkdir()
        broker.write_properties()
        files.append(str(broker.properties_file))
    command = [sys.executable, "-m", "compat_tests.tls.starts", *files]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S)
    outcomes = map(json.loads, done.stdout.splitlines())
    return {case.name: (code, said) for case, (code, said) in zip(CASES, outcomes, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_does_not_fit_is_told_in_one_line(
    case: Case, kind: str, tmp_path: Path, request: pytest.FixtureRequest, answers: TestAnswers
) -> None:
    if kind == "pykbroker":
        code, said = request.getfixturevalue("starts")[case.name]
        answers.expect("serves", code is None, False)
        assert code == 1
        assert_one_line(case, said)
    else:
        broker = secured(kind, case, tmp_path)
        try:
            broker.start()
            serves = True
        except BrokerFailed:
            serves = False
        finally:
            broker.kill()
        answers.expect("serves", serves, case.kafka_starts)


def secured(kind: str, case: Case, directory: Path) -> BrokerProcess:
    properties = BETWEEN if case.is_between_brokers else {}
    return SecuredBroker(kind, directory / "broker", {"X": case.settings(directory)}, properties).broker


def assert_one_line(case: Case, said: str) -> None:
    assert "Traceback" not in said
    assert not SECRETS.search(said)
    (line,) = (line for line in said.splitlines() if line.startswith("Error: "))
    assert said.rstrip().endswith(line)
    for part in (case.key, "[hidden]" if case.value is None else case.value, case.allowed):
        assert part in line, line


def junk(directory: Path) -> Path:
    path = directory / "junk"
    path.write_bytes(b"junk" * 100)
    return path
