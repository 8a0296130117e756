"""Whether a key store may take the place of another: Kafka's checks of names, and a handshake between old and new."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.certificates import EXPIRED, Authority, Credential
from compat_tests.key_stores import write_pem
from pykbroker.config import ConfigurationError
from pykbroker.security.tls.contexts import server_context
from pykbroker.security.tls.identity import CertifiedName, Identity
from pykbroker.security.tls.refusals import kafka_text
from pykbroker.security.tls.reload import (
    BothEnds,
    check_replacement,
    check_trust_stores,
    server_in_place_of,
    verify,
)
from pykbroker.security.tls.settings import TlsSettings
from tests.security.handshakes import key_store, store_file, trust_store

STORES = Path(__file__).with_name("stores")
ROOT = Authority.root()


def identity(credential: Credential) -> Identity:
    return server_context(TlsSettings.of(key_store(credential))).identity


def settings(credential: Credential, *trusted: Authority, **values: str) -> TlsSettings:
    given = {key.replace("_", "."): value for key, value in values.items()}
    return TlsSettings.of(key_store(credential) | trust_store(*trusted) | given)


def check(old: Identity, new: Identity, *, dn: bool = False, san: bool = False) -> None:
    check_replacement(old, new, allow_dn_changes=dn, allow_san_changes=san)


def verify_against_itself(stores: TlsSettings) -> None:
    ends = BothEnds.of(stores)
    verify(ends, ends)


def verify_against_each_other(old: TlsSettings, new: TlsSettings) -> None:
    verify(BothEnds.of(old), BothEnds.of(new))


def test_a_renewed_certificate_replaces_the_old_one() -> None:
    check(identity(ROOT.server()), identity(Authority.root().server()))


def test_another_name_is_refused_unless_it_is_allowed() -> None:
    old, new = identity(ROOT.server("CN=a,O=x")), identity(ROOT.server("CN=b,O=x"))
    with pytest.raises(ConfigurationError, match=r"Keystore DistinguishedName does not match: .*CN=a, O=x.*CN=b, O=x"):
        check(old, new)
    check(old, new, dn=True)


def test_names_that_differ_in_case_and_blanks_are_one() -> None:
    check(identity(ROOT.server("CN=Broker A,O=x")), identity(ROOT.server("CN=broker  a,O=X")))


def test_an_alternative_name_may_come_and_may_not_go() -> None:
    fewer, more = identity(ROOT.server(hosts=["a"])), identity(ROOT.server(hosts=["a", "b"]))
    check(fewer, more)
    with pytest.raises(ConfigurationError, match=r"Keystore SubjectAltNames do not match: .*\[2, b\]"):
        check(more, fewer)
    check(more, fewer, san=True)
    with pytest.raises(ConfigurationError, match="SubjectAltNames"):
        check(more, identity(ROOT.server(hosts=())), dn=True)


def test_the_number_of_entries_stays() -> None:
    one = CertifiedName("a", "CN=a", frozenset())
    with pytest.raises(ConfigurationError, match="existing store contains 1 entries, new store contains 2 entries"):
        check(Identity((one,)), Identity((one, one)), dn=True)
    check(Identity((one,)), Identity((one, one)), dn=True, san=True)


def test_a_broker_whose_key_store_verifies_with_its_trust_store_can_reach_others() -> None:
    verify_against_itself(settings(ROOT.server(hosts=["elsewhere"]), ROOT))
    verify_against_itself(settings(ROOT.server(), ROOT, ssl_client_auth="required"))
    verify_against_itself(settings(ROOT.intermediate().server(), ROOT, ssl_enabled_protocols="TLSv1.2"))


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_a_broker_that_does_not_trust_itself_is_refused(client_auth: str) -> None:
    for credential in (Authority.root().server(), ROOT.server(lifetime=EXPIRED)):
        with pytest.raises(ConfigurationError, match="can't connect to a server SSLEngine") as refused:
            verify_against_itself(settings(credential, ROOT, ssl_client_auth=client_auth))
        assert "\n" not in str(refused.value)


def test_old_and_new_brokers_must_reach_each_other_both_ways() -> None:
    other = Authority.root("CN=Other authority")
    old, both, new = (
        settings(ROOT.server(), ROOT),
        settings(ROOT.server(), ROOT, other),
        settings(other.server(), other),
    )
    verify_against_each_other(old, both)
    with pytest.raises(ConfigurationError, match="unable to get local issuer"):
        verify_against_each_other(old, new)
    with pytest.raises(ConfigurationError, match="unable to get local issuer"):
        verify_against_each_other(both, new)
    verify_against_each_other(both, settings(other.server(), ROOT, other))


def test_a_listener_without_a_trust_store_gets_none_while_it_runs() -> None:
    without = TlsSettings.of(key_store(ROOT.server()))
    with_one = settings(ROOT.server(), ROOT)
    check_trust_stores(with_one, without)
    check_trust_stores(with_one, with_one)
    with pytest.raises(ConfigurationError, match="Cannot add SSL truststore to an existing listener"):
        check_trust_stores(without, with_one)


def test_contexts_in_use_are_verified_though_their_files_are_others_by_now(tmp_path: Path) -> None:
    path = write_pem(tmp_path / "server.pem", ROOT.server())
    values = store_file("keystore", path, "PEM") | trust_store(ROOT)
    before = BothEnds.of(TlsSettings.of(values))
    write_pem(path, Authority.root().server())
    after = BothEnds.of(TlsSettings.of(values))
    verify(before, before)
    for old, new in ((before, after), (after, before), (after, after)):
        with pytest.raises(ConfigurationError) as refused:
            verify(old, new)
        assert kafka_text(refused.value).startswith("javax.net.ssl.SSLHandshakeException: ")


def test_a_store_without_a_key_is_compared_before_it_is_refused() -> None:
    old = identity(ROOT.server())
    path = STORES / "trust.p12"
    new = TlsSettings.of(store_file("keystore", path, "PKCS12", "store-password"))
    with pytest.raises(ConfigurationError, match=r"new=\{alias=authority, DN=CN=of-openssl, O=Example\}"):
        server_in_place_of(old, new, allow_dn_changes=False, allow_san_changes=False)
    with pytest.raises(ConfigurationError, match="no private key is in it"):
        server_in_place_of(old, new, allow_dn_changes=True, allow_san_changes=True)
    renewed = server_in_place_of(
        old, TlsSettings.of(key_store(ROOT.server())), allow_dn_changes=False, allow_san_changes=False
    )
    assert renewed.identity == old
