"""Java and Apache Kafka 4.3.1 beside us: names, rules, refused configurations and replaced key stores."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from compat_tests.certificates import EXPIRED, Authority, Credential
from compat_tests.key_stores import pem_certificates, pem_key, write_jks, write_pkcs12
from pykbroker.config import ConfigurationError
from pykbroker.security.tls.cipher_suites import OPENSSL_NAMES, SIGNALLING, TLS_1_3_SUITES
from pykbroker.security.tls.contexts import client_context, server_context
from pykbroker.security.tls.der import parse
from pykbroker.security.tls.distinguished_names import name_text
from pykbroker.security.tls.principals import NoRuleMatches, PrincipalMapper
from pykbroker.security.tls.refusals import kafka_text
from pykbroker.security.tls.reload import check_replacement
from pykbroker.security.tls.settings import TlsSettings
from tests.security import test_distinguished_names, test_principals
from tests.security.handshakes import key_store, store_file, trust_store
from tests.security.make_stores import KEY_PASSWORD, STORE_PASSWORD
from tests.security.names import Attribute, encoded_name
from tests.security.referee import ask

pytestmark = pytest.mark.jdk

STORES = Path(__file__).with_name("stores")
ROOT = Authority.root()
SERVER = ROOT.intermediate().server()
Values = dict[str, str]

TYPES = [*(f"2.5.4.{n}" for n in range(3, 14)), "0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.25", "2.999.3"]
TAGS = [0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E, 0x1C, 0x12, 0x04, 0x17]
CHARACTERS = "aB1 ,=+<>#;\"\\\0\r\n\t'()/:?éß日😀\u2028\x7f"


def some_name(random: Random) -> bytes:
    def attribute() -> Attribute:
        text = "".join(random.choice(CHARACTERS) for _ in range(random.randrange(8)))
        content = (
            text.encode()
            if random.random() < 0.9
            else random.choice((random.randbytes(4), b"\xed\xa0" + random.randbytes(2)))
        )
        return random.choice(TYPES), random.choice(TAGS if random.random() < 0.3 else TAGS[:2]), content

    return encoded_name([[attribute() for _ in range(random.choice((1, 1, 1, 2)))] for _ in range(random.randrange(5))])


def test_names_are_those_of_java() -> None:
    random = Random(15)
    names = [some_name(random) for _ in range(2000)]
    common = [encoded_name([[("2.5.4.3", 0x0C, text.encode())]]) for text in test_distinguished_names.TEXTS]
    answers = ask([("name", name) for name in (*common, *names)])
    ours = [name_text(parse(name)) for name in (*common, *names)]
    assert ours == [answer.text for answer in answers]


def test_rules_map_names_as_in_kafka() -> None:
    cases = [(rules, name) for rules, name, _ in test_principals.MAPPED]
    cases += test_principals.NOT_MAPPED
    cases += [(rules, test_principals.NAME) for rules in test_principals.MALFORMED]
    # Java's way to name a group; RE2 has it, too.
    cases = [(rules.replace("?P<", "?<"), name) for rules, name in cases]
    theirs = ["refused" if answer.is_refusal else answer.text for answer in ask([("map", *case) for case in cases])]
    assert [mapped(*case) for case in cases] == theirs


def mapped(rules: str, name: str) -> str:
    try:
        return PrincipalMapper(rules).name(name)
    except (NoRuleMatches, ConfigurationError):
        return "refused"


def test_all_suites_of_java_but_those_of_dsa_have_a_name() -> None:
    (answer,) = ask([("suites",)])
    offered = {suite for suite in answer.text.split(",") if "_DSS_" not in suite}
    assert offered == {*OPENSSL_NAMES, *TLS_1_3_SUITES, SIGNALLING}


def inline(key: str, chain: str) -> Values:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}


def configurations(directory: Path) -> dict[str, Values]:
    """Return configurations by what is special about them."""
    key, chain, store = pem_key(SERVER), pem_certificates(SERVER.chain), key_store(SERVER)
    other = ROOT.server()
    old_key = SERVER.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    jks = store_file("keystore", STORES / "two-keys.jks", "JKS", STORE_PASSWORD) | {"ssl.key.password": KEY_PASSWORD}
    p12 = store_file("keystore", STORES / "two-keys.p12", "PKCS12", STORE_PASSWORD)
    (directory / "empty.pem").touch()
    (directory / "text").write_text("no store")
    return {
        "inline PEM": store,
        "inline PEM in one line": inline(key.replace("\n", " "), chain.replace("\n", " ")),
        "a comment before the key": inline("Bag Attributes\n  x: y\n" + key, chain),
        "the root in the chain": inline(key, pem_certificates([*SERVER.chain, ROOT.certificate])),
        "a chain out of order": inline(key, pem_certificates(SERVER.chain[::-1])),
        "a certificate that is no part of the chain": inline(key, pem_certificates([*SERVER.chain, other.certificate])),
        "a certificate twice": inline(key, pem_certificates([*SERVER.chain[:1], *SERVER.chain])),
        "two keys": inline(key + key, chain),
        "no key in the text": inline("none", chain),
        "no certificate in the text": inline(key, "none"),
        "a key of PKCS#1": inline(old_key, chain),
        "an encrypted key without a password": inline(pem_key(SERVER, "secret"), chain),
        "a password without an encrypted key": store | {"ssl.key.password": "secret"},
        "a key without a chain": {"ssl.keystore.type": "PEM", "ssl.keystore.key": key},
        "a chain without a key": {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain},
        "a key and type JKS": store | {"ssl.keystore.type": "JKS"},
        "a key and a location": store | {"ssl.keystore.location": "/a"},
        "a key and a store password": store | {"ssl.keystore.password": "secret"},
        "an empty file": store_file("keystore", directory / "empty.pem", "PEM"),
        "a PEM file and a store password": store_file("keystore", directory / "empty.pem", "PEM", "secret"),
        "PEM in small letters": store_file("keystore", directory / "empty.pem", "pem"),
        "a store password alone": store | {"ssl.keystore.type": "JKS", "ssl.keystore.password": "secret"},
        "an expired certificate": key_store(ROOT.server(lifetime=EXPIRED)),
        "JKS": jks,
        "JKS in small letters": jks | {"ssl.keystore.type": "jks"},
        "JKS called PKCS12": jks | {"ssl.keystore.type": "PKCS12"},
        "JKS with a wrong password": jks | {"ssl.keystore.password": "wrong"},
        "JKS with a wrong password of the key": jks | {"ssl.key.password": "wrong"},
        "JKS without a password": {key: value for key, value in jks.items() if key != "ssl.keystore.password"},
        "PKCS12": p12,
        "PKCS12 called JKS": p12 | {"ssl.keystore.type": "JKS"},
        "PKCS12 with a wrong password": p12 | {"ssl.keystore.password": "wrong"},
        "PKCS12 with a wrong password of the key": p12 | {"ssl.key.password": "wrong"},
        "PKCS12 of Java 8": store_file("keystore", STORES / "of-java-8.p12", "PKCS12", STORE_PASSWORD),
        "PKCS12 of openssl": store_file("keystore", STORES / "openssl.p12", "PKCS12", STORE_PASSWORD),
        "an old PKCS12 of openssl": store_file("keystore", STORES / "openssl-legacy.p12", "PKCS12", STORE_PASSWORD),
        "an unknown type": p12 | {"ssl.keystore.type": "BCFKS"},
        "a missing file": store_file("keystore", directory / "missing", "JKS", STORE_PASSWORD),
        "a directory": store_file("keystore", directory, "JKS", STORE_PASSWORD),
        "an empty location": {"ssl.keystore.location": "", "ssl.keystore.password": "secret"},
        "a text": store_file("keystore", directory / "text", "JKS", STORE_PASSWORD),
        "trusted PEM": store | trust_store(ROOT),
        "no trusted certificate": store | {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "none"},
        "trusted PEM and type JKS": store | trust_store(ROOT) | {"ssl.truststore.type": "JKS"},
        "trusted PEM and a location": store | trust_store(ROOT) | {"ssl.truststore.location": "/a"},
        "trusted PEM and a password": store | trust_store(ROOT) | {"ssl.truststore.password": "secret"},
        "a trust password alone": store | {"ssl.truststore.password": "secret"},
        "trusted JKS": store | store_file("truststore", STORES / "trust.jks", "JKS", STORE_PASSWORD),
        "trusted JKS without a password": store | store_file("truststore", STORES / "trust.jks", "JKS"),
        "trusted JKS with a wrong password": store | store_file("truststore", STORES / "trust.jks", "JKS", "wrong"),
        "trusted PKCS12": store | store_file("truststore", STORES / "trust.p12", "PKCS12", STORE_PASSWORD),
        "trusted PKCS12 without password": store
        | store_file("truststore", STORES / "trust-without-password.p12", "JKS"),
        "a trusted text": store | store_file("truststore", directory / "text", "JKS"),
        "an unknown protocol": store | {"ssl.enabled.protocols": "TLSv1.2,TLSv9"},
        "a protocol in small letters": store | {"ssl.enabled.protocols": "tlsv1.2"},
        "old protocols beside new ones": store | {"ssl.enabled.protocols": "SSLv2Hello,TLSv1,TLSv1.1,TLSv1.2"},
        "no protocols": store | {"ssl.enabled.protocols": ""},
        "the older context": store | {"ssl.protocol": "TLSv1.2"},
        "a context of any version": store | {"ssl.protocol": "TLS"},
        "a context called SSL": store | {"ssl.protocol": "SSL"},
        "an unknown context": store | {"ssl.protocol": "TLSv9"},
        "a suite": store | {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
        "an unknown suite": store | {"ssl.cipher.suites": "TLS_ROT13"},
        "a suite of OpenSSL": store | {"ssl.cipher.suites": "ECDHE-ECDSA-AES128-GCM-SHA256"},
        "Java's provider": store | {"ssl.provider": "SunJSSE"},
        "an unknown provider": store | {"ssl.provider": "Nobody"},
        "a provider without a name": store | {"ssl.provider": ""},
        "an unknown key manager": store | {"ssl.keymanager.algorithm": "Nobody"},
        "another key manager": store | {"ssl.keymanager.algorithm": "PKIX"},
        "an unknown trust manager": store | {"ssl.trustmanager.algorithm": "Nobody"},
        "a source of randomness": store | {"ssl.secure.random.implementation": "SHA1PRNG"},
        "an unknown source of randomness": store | {"ssl.secure.random.implementation": "Nobody"},
        "host names in capitals": store | {"ssl.endpoint.identification.algorithm": "HTTPS"},
        **ONLY_REFUSED_HERE,
        **ONLY_REFUSED_BY_KAFKA,
    }


_MISMATCHED = inline(pem_key(ROOT.server()), pem_certificates(SERVER.chain))
ONLY_REFUSED_HERE: dict[str, Values] = {
    "a key of another certificate": _MISMATCHED,
    "no store": {},
    "a context that is switched off": key_store(SERVER) | {"ssl.protocol": "TLSv1.1"},
    "JCEKS": store_file("keystore", STORES / "two-keys.jceks", "JCEKS", STORE_PASSWORD),
    "old protocols alone": key_store(SERVER) | {"ssl.enabled.protocols": "TLSv1.1"},
    "some suites of TLS 1.3": key_store(SERVER) | {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"},
    "nothing trusted": key_store(SERVER)
    | store_file("truststore", STORES / "openssl-trust.p12", "PKCS12", STORE_PASSWORD),
    "an encrypted trust store without its password": key_store(SERVER)
    | store_file("truststore", STORES / "trust.p12", "PKCS12"),
    "an unknown check of names": key_store(SERVER) | {"ssl.endpoint.identification.algorithm": "LDAP"},
    "another trust manager": key_store(SERVER) | {"ssl.trustmanager.algorithm": "SunX509"},
    "an unknown type of a store that is not given": key_store(SERVER) | {"ssl.truststore.type": "BCFKS"},
}
"""Kafka starts, and then refuses every connection, or does not protect as it was told to."""

ONLY_REFUSED_BY_KAFKA: dict[str, Values] = {
    # Java 17 knows the scheme by no name; Java 19 does.
    "a key encrypted by PBES2": inline(pem_key(SERVER, "secret"), pem_certificates(SERVER.chain))
    | {"ssl.key.password": "secret"},
    "a key of Ed25519": key_store(ROOT.server(key=ed25519.Ed25519PrivateKey.generate())),  # type: ignore[arg-type]
}
"""OpenSSL does more than Java 17 and Kafka do."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str | None, str | None]]:
    """What Kafka says of each configuration, and what we do in its words; None where it is served."""
    given = configurations(tmp_path_factory.mktemp("stores"))
    answers = ask([("configure", values) for values in given.values()])
    theirs = [answer.text if answer.is_refusal else None for answer in answers]
    return {name: (said, refusal(given[name])) for name, said in zip(given, theirs, strict=True)}


def test_what_kafka_refuses_is_refused_and_what_it_serves_is_served(
    cases: dict[str, tuple[str | None, str | None]],
) -> None:
    theirs = {name for name, (said, _) in cases.items() if said is not None}
    ours = {name for name, (_, said) in cases.items() if said is not None}
    assert ours - theirs == set(ONLY_REFUSED_HERE)
    assert theirs - ours == set(ONLY_REFUSED_BY_KAFKA)


OF_JAVA = (
    "java.lang.",
    "org.apache.kafka.common.KafkaException: java.lang.",
    "org.apache.kafka.common.KafkaException: java.security.NoSuch",
)
"""Java has refused a name, in words of its own."""


def test_what_is_refused_of_stores_is_told_in_kafkas_words(cases: dict[str, tuple[str | None, str | None]]) -> None:
    compared = 0
    for name, (theirs, ours) in cases.items():
        if theirs is not None and ours is not None and not theirs.startswith(OF_JAVA):
            assert told(ours) == told(theirs), name
            compared += 1
    assert compared > 25


def told(exceptions: str) -> str:
    """The outer exception alone, without what Java's formats say of a key's password."""
    return re.sub(r"(UnrecoverableKeyException): .*", r"\1", exceptions.split(" <- ")[0])


def refusal(values: Values) -> str | None:
    try:
        settings = TlsSettings.of(values)
        server_context(settings)
        client_context(settings)
    except ConfigurationError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert "secret" not in str(error) + kafka_text(error)  # noqa: PT017
        return kafka_text(error)
    return None


def replacements() -> dict[str, tuple[Credential, Credential, Values]]:
    return {
        "renewed": (ROOT.server(), ROOT.server(), {}),
        "another name": (ROOT.server("CN=a,O=x"), ROOT.server("CN=b,O=x"), {}),
        "another name that is allowed": (ROOT.server("CN=a"), ROOT.server("CN=b"), {"ssl.allow.dn.changes": "true"}),
        "another case": (ROOT.server("CN=A b,O=x"), ROOT.server("CN=a  B,O=X"), {}),
        "one name more": (ROOT.server(hosts=["a"]), ROOT.server(hosts=["b", "a"]), {}),
        "one name fewer": (ROOT.server(hosts=["a", "b"]), ROOT.server(hosts=["b"]), {}),
        "one name fewer that is allowed": (
            ROOT.server(hosts=["a", "b"]),
            ROOT.server(hosts=["b"]),
            {"ssl.allow.san.changes": "true"},
        ),
        "a name in another case": (ROOT.server(hosts=["a.b"]), ROOT.server(hosts=["A.b"]), {}),
        "an address fewer": (ROOT.server(hosts=["::1", "127.0.0.1"]), ROOT.server(hosts=["127.0.0.1"]), {}),
        "no names any more": (ROOT.server(), ROOT.server(hosts=()), {}),
    }


def test_a_key_store_replaces_another_where_kafka_lets_it() -> None:
    cases = replacements()
    questions = [("replace", key_store(old), key_store(new) | allowed) for old, new, allowed in cases.values()]
    # Both values are no part of what may change at run time: Kafka takes them from the listener's own.
    questions = [
        (word, before | {k: v for k, v in after.items() if "allow" in k}, after) for word, before, after in questions
    ]
    theirs = {name for name, answer in zip(cases, ask(questions), strict=True) if answer.is_refusal}
    ours = {name for name, (old, new, allowed) in cases.items() if not may_replace(old, new, allowed)}
    assert ours == theirs
    assert {"another name", "one name fewer"} <= theirs


def may_replace(old: Credential, new: Credential, allowed: Values) -> bool:
    settings = TlsSettings.of(allowed)
    before, after = (server_context(TlsSettings.of(key_store(each))).identity for each in (old, new))
    try:
        check_replacement(
            before, after, allow_dn_changes=settings.allow_dn_changes, allow_san_changes=settings.allow_san_changes
        )
    except ConfigurationError:
        return False
    return True


def test_aliases_may_change_where_there_is_one(tmp_path: Path) -> None:
    first = store_file("keystore", write_jks(tmp_path / "a.jks", SERVER, alias="a"), "JKS", STORE_PASSWORD)
    second = store_file("keystore", write_pkcs12(tmp_path / "b.p12", SERVER, alias="b"), "PKCS12", STORE_PASSWORD)
    (answer,) = ask([("replace", first, second)])
    assert not answer.is_refusal
    before, after = (server_context(TlsSettings.of(each)).identity for each in (first, second))
    check_replacement(before, after, allow_dn_changes=False, allow_san_changes=False)


def test_the_authorities_of_java_itself_are_read() -> None:
    from compat_tests.apache_kafka import find_java

    path = Path(find_java()).resolve().parents[1] / "lib" / "security" / "cacerts"
    settings = TlsSettings.of(store_file("truststore", path, "JKS", "changeit"))
    context = client_context(settings)
    assert len(context.get_ca_certs()) > 50
