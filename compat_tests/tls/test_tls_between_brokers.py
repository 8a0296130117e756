"""Stores that were set at run time outlast a restart, and those of the listener between brokers fit together."""

from __future__ import annotations

from pathlib import Path

from compat_tests.answers import TestAnswers
from compat_tests.broker_configs import SET
from compat_tests.certificates import EXPIRED, LOCAL_HOSTS
from compat_tests.key_stores import write_pem, write_pem_trust
from compat_tests.waiting import until

from .conftest import StartScene
from .listeners import REQUIRED, pem, pem_trust, prefixed
from .reasons import REFUSED
from .reload_listeners import AUTHORITY, UNTRUSTED
from .reload_scene import LOCATION, TRUST_LOCATION

LISTENER = "BETWEEN"


def test_what_was_set_at_run_time_is_there_after_a_restart(
    own_scene: StartScene, stores_directory: Path, kind: str, answers: TestAnswers
) -> None:
    """Apache Kafka's listeners take other keys of TLS than those of stores from the properties alone."""
    first, second = AUTHORITY.server(), AUTHORITY.server(hosts=(*LOCAL_HOSTS, "broker.example.org"))
    trust = pem_trust(write_pem_trust(stores_directory / "trust.pem", AUTHORITY))
    scene = own_scene({LISTENER: {**pem(write_pem(stores_directory / "first.pem", first)), **trust}})
    assert scene.set(LISTENER, {LOCATION: scene.pem("second", second)}) == "NONE"
    scene.await_certificate(LISTENER, second)
    answers.same("client.auth of the broker", scene.alter(("ssl.client.auth", SET, "required")))
    answers.same("versions of the listener", scene.set(LISTENER, {"ssl.enabled.protocols": "TLSv1.2"}))
    until(lambda: prefixed(LISTENER, "ssl.enabled.protocols") in scene.dynamic_keys(), "it is stored")
    assert scene.shown_serial(LISTENER) == second.certificate.serial_number, "nothing of it has an effect so far"
    scene.secured.broker.stop()
    scene.secured.broker.start()
    alice = AUTHORITY.client()
    assert scene.shown_serial(LISTENER, alice) == second.certificate.serial_number
    answers.same("without a certificate", scene.shown_serial(LISTENER) == second.certificate.serial_number)
    with scene.connected(LISTENER, alice) as connection:
        answers.expect("the version", connection.version(), "TLSv1.3" if kind == "apache-kafka" else "TLSv1.2")


def test_stores_between_brokers_must_trust_each_other(
    own_scene: StartScene, stores_directory: Path, answers: TestAnswers
) -> None:
    first, second, alice = AUTHORITY.server(), UNTRUSTED.server(), AUTHORITY.client()
    key_store = write_pem(stores_directory / "first.pem", first)
    trust = write_pem_trust(stores_directory / "trust.pem", AUTHORITY)
    settings = {**pem(key_store), **pem_trust(trust), **REQUIRED}
    scene = own_scene({LISTENER: settings}, {"inter.broker.listener.name": LISTENER})
    other = scene.pem("other", second)
    both = str(write_pem_trust(stores_directory / "both.pem", AUTHORITY, UNTRUSTED))
    only_other = str(write_pem_trust(stores_directory / "only-other.pem", UNTRUSTED))
    for name, change in {
        "another authority": {LOCATION: other},
        "an expired certificate": {LOCATION: scene.pem("expired", AUTHORITY.server(lifetime=EXPIRED))},
        "its own authority not trusted": {TRUST_LOCATION: only_other},
        "both at once": {LOCATION: other, TRUST_LOCATION: only_other},
    }.items():
        answers.same(name, scene.set(LISTENER, change))
    assert scene.shown_serial(LISTENER, alice) == first.certificate.serial_number
    # In three steps the authority is replaced.
    assert scene.set(LISTENER, {TRUST_LOCATION: both}) == "NONE"
    scene.await_certificate(LISTENER, first, UNTRUSTED.client())
    assert scene.set(LISTENER, {LOCATION: other}) == "NONE"
    scene.await_certificate(LISTENER, second, alice)
    assert scene.set(LISTENER, {TRUST_LOCATION: only_other}) == "NONE"
    until(lambda: scene.shown_serial(LISTENER, alice) == REFUSED, "the old authority is gone")
