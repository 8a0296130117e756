"""Key stores and trust stores that are replaced while the broker runs."""

from __future__ import annotations

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.certificates import LOCAL_HOSTS, rsa_key
from compat_tests.key_stores import write_pem_trust
from compat_tests.waiting import until

from .listeners import prefixed
from .reasons import REFUSED
from .reload_listeners import AUTHORITY, ELSEWHERE, FIRST, TRUSTING, UNTRUSTED
from .reload_scene import LOCATION, TRUST_LOCATION, ReloadScene, ask


def test_a_new_key_store_is_shown_to_new_connections_and_old_ones_live_on(scene: ReloadScene) -> None:
    with scene.connected("KEYS") as old:
        ask(old)
        second = AUTHORITY.server()
        assert scene.set("KEYS", {LOCATION: scene.pkcs12("second", second)}) == "NONE"
        scene.await_certificate("KEYS", second)
        assert scene.unset("KEYS", LOCATION) == "NONE"
        scene.await_certificate("KEYS", FIRST["KEYS"])
        ask(old)


def test_a_file_that_has_changed_is_read_when_its_path_is_set_again(scene: ReloadScene) -> None:
    path = scene.pkcs12("SAME", FIRST["SAME"])
    second, third = AUTHORITY.server(), AUTHORITY.server()
    scene.pkcs12("SAME", second)
    assert scene.shown_serial("SAME") == FIRST["SAME"].certificate.serial_number, "a file alone changes nothing"
    assert scene.set("SAME", {LOCATION: path}) == "NONE"
    scene.await_certificate("SAME", second)
    scene.pkcs12("SAME", third)
    assert scene.set("SAME", {LOCATION: path}) == "NONE"
    scene.await_certificate("SAME", third)


def test_a_change_that_is_only_validated_changes_nothing(scene: ReloadScene, answers: TestAnswers) -> None:
    good, bad = scene.pkcs12("tried", AUTHORITY.server()), scene.pkcs12("tried-bad", AUTHORITY.server(ELSEWHERE))
    answers.same("a good store", scene.set("BAD", {LOCATION: good}, validate_only=True))
    answers.same("a bad store", scene.set("BAD", {LOCATION: bad}, validate_only=True))
    assert prefixed("BAD", LOCATION) not in scene.dynamic_keys()
    assert scene.shown_serial("BAD") == FIRST["BAD"].certificate.serial_number


def test_a_key_store_may_be_of_another_kind(scene: ReloadScene, answers: TestAnswers) -> None:
    """Whatever clients make of it: only names are compared."""
    for name, credential in {
        "an RSA key": AUTHORITY.server(key=rsa_key()),
        "another authority": UNTRUSTED.server(),
        "an intermediate authority": AUTHORITY.intermediate().server(),
        "more names": AUTHORITY.server(hosts=(*LOCAL_HOSTS, "broker.example.org")),
    }.items():
        answers.same(name, scene.set("KINDS", {LOCATION: scene.pkcs12(name, credential)}))
        scene.await_certificate("KINDS", credential)
    answers.same("the names that were added are gone again", scene.unset("KINDS", LOCATION))


def test_names_of_a_key_store_stay(scene: ReloadScene, answers: TestAnswers) -> None:
    for name, credential in {
        "another DN": AUTHORITY.server(ELSEWHERE),
        "a DN in another order": AUTHORITY.server("O=Example,CN=localhost"),
        "a DN with more in it": AUTHORITY.server("CN=localhost,OU=brokers,O=Example,C=DE"),
        "fewer names": AUTHORITY.server(hosts=("localhost",)),
        "no name": AUTHORITY.server(hosts=()),
        "another name": AUTHORITY.server(hosts=("localhost", "127.0.0.2", "::1")),
        "a DN and names": AUTHORITY.server(ELSEWHERE, hosts=("elsewhere",)),
    }.items():
        answers.same(name, scene.set("NAMES", {LOCATION: scene.pkcs12(name, credential)}))
    renamed = AUTHORITY.server(ELSEWHERE)
    answers.same("another alias", scene.set("NAMES", {LOCATION: scene.pkcs12("alias", renamed, alias="renamed")}))
    assert scene.shown_serial("NAMES") == FIRST["NAMES"].certificate.serial_number


def test_names_may_change_where_the_properties_say_so(scene: ReloadScene, answers: TestAnswers) -> None:
    other_dn, fewer = AUTHORITY.server(ELSEWHERE), AUTHORITY.server(hosts=("localhost",))
    dn_path, fewer_path = scene.pkcs12("dn", other_dn), scene.pkcs12("fewer", fewer)
    answers.same("fewer names where the DN may change", scene.set("DN", {LOCATION: fewer_path}))
    answers.same("another DN where names may change", scene.set("SAN", {LOCATION: dn_path}))
    assert scene.set("DN", {LOCATION: dn_path}) == "NONE"
    assert scene.set("SAN", {LOCATION: fewer_path}) == "NONE"
    scene.await_certificate("DN", other_dn)
    scene.await_certificate("SAN", fewer)


def test_a_permission_that_is_set_at_run_time_has_no_effect(scene: ReloadScene, answers: TestAnswers) -> None:
    other_dn = scene.pkcs12("dn-at-run-time", AUTHORITY.server(ELSEWHERE))
    allowed = {"ssl.allow.dn.changes": "true"}
    answers.same("beside the store", scene.set("NAMES", {LOCATION: other_dn, **allowed}))
    answers.same("alone", scene.set("NAMES", allowed))
    until(lambda: prefixed("NAMES", "ssl.allow.dn.changes") in scene.dynamic_keys(), "it is stored")
    answers.same("and then the store", scene.set("NAMES", {LOCATION: other_dn}))


@pytest.mark.parametrize("listener", ["TRUST", "PEMTRUST"])
def test_a_client_of_an_authority_that_is_not_trusted_any_more_is_refused(listener: str, scene: ReloadScene) -> None:
    alice, bob = AUTHORITY.client(), UNTRUSTED.client("CN=bob,O=Example")
    if listener == "TRUST":
        path = scene.trust("other-trust", UNTRUSTED)
    else:
        path = str(write_pem_trust(scene.directory / "other-trust.pem", UNTRUSTED))
    assert scene.shown_serial(listener, bob) == REFUSED
    with scene.connected(listener, alice) as old:
        ask(old)
        assert scene.set(listener, {TRUST_LOCATION: path}) == "NONE"
        until(lambda: scene.shown_serial(listener, alice) == REFUSED, "alice is refused")
        assert scene.shown_serial(listener, bob) == TRUSTING.certificate.serial_number
        ask(old)
    assert scene.unset(listener, TRUST_LOCATION) == "NONE"
    until(lambda: scene.shown_serial(listener, bob) == REFUSED, "bob is refused again")
    assert scene.shown_serial(listener, alice) == TRUSTING.certificate.serial_number


def test_a_trust_store_that_has_changed_is_read_when_its_path_is_set_again(scene: ReloadScene) -> None:
    bob = UNTRUSTED.client("CN=bob,O=Example")
    path = scene.trust("trusted", AUTHORITY, UNTRUSTED)
    assert scene.shown_serial("TRUST", bob) == REFUSED, "a file alone changes nothing"
    assert scene.set("TRUST", {TRUST_LOCATION: path}) == "NONE"
    scene.await_certificate("TRUST", TRUSTING, bob)
    scene.trust("trusted", AUTHORITY)
    assert scene.set("TRUST", {TRUST_LOCATION: path}) == "NONE"
    until(lambda: scene.shown_serial("TRUST", bob) == REFUSED, "bob is refused again")
