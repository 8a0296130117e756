"""Clients whose security settings do not fit the listener: what is wrong is told, and what would fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well, make_broker, watch_log
from compat_tests.sasl.modules import PLAIN_MODULE, SCRAM_MODULE
from compat_tests.sasl.secured import PASSWORDS, Secured, add_scram_users, secure
from compat_tests.tls.identities import Identities
from compat_tests.tls.listeners import SecuredBroker, standard_listeners

from .examined import Examined, examine


@pytest.fixture(scope="module")
def shared_secured(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    broker = make_broker(kind, tmp_path_factory.mktemp(kind) / "secured", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    found = secure(broker)
    # GSSAPI aside, the mechanism that this listener leaves out.
    broker.properties["listener.name.expiring.sasl.enabled.mechanisms"] = "SCRAM-SHA-256"
    for key in [each for each in broker.properties if each.startswith("listener.name.expiring.plain")]:
        del broker.properties[key]
    broker.start()
    add_scram_users(broker)
    yield found
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def secured(shared_secured: Secured, request: pytest.FixtureRequest) -> Secured:
    watch_log(request.node, shared_secured.broker)
    return shared_secured


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Identities:
    return Identities(tmp_path_factory.mktemp("identities"))


@pytest.fixture(scope="module")
def with_tls(kind: str, identities: Identities, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp(f"tls-{kind}")
    found = SecuredBroker(kind, directory / "broker", standard_listeners(identities, directory))
    found.broker.start()
    yield found
    found.broker.close()
    assert_all_went_well(found.broker)


def _plain(user: str = "alice", password: str = PASSWORDS["alice"], protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    line = f'{PLAIN_MODULE} required username="{user}" password="{password}";'
    return {"security.protocol": protocol, "sasl.mechanism": "PLAIN", "sasl.jaas.config": line}


def _scram(mechanism: str) -> dict[str, str]:
    line = f'{SCRAM_MODULE} required username="alice" password="{PASSWORDS["alice"]}";'
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": line}


def _trusting(path: Path) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}


def _only(found: Examined) -> dict[str, str]:
    assert found.code == 1, found
    [finding] = found.document["findings"]
    assert found.document["served_by"] is None
    return dict(finding)


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def test_clients_in_plain_and_listeners_with_sasl(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    without_sasl = _only(examine(_text(secured.sasl), tmp_path))
    answers.same("no log-in", [without_sasl["id"], without_sasl["advice"]])
    assert without_sasl["id"] == "bootstrap-needs-sasl"
    assert "security.protocol=SASL_PLAINTEXT, and sasl.mechanism of PLAIN, SCRAM-SHA-256" in without_sasl["advice"]
    without_tls = _only(examine(_text(secured.tls), tmp_path))
    answers.same("no TLS", [without_tls["id"], without_tls["advice"]])
    assert without_tls["id"] == "bootstrap-needs-tls"
    assert "security.protocol=SASL_SSL, and sasl.mechanism of PLAIN" in without_tls["advice"]


def test_log_ins_at_a_listener_without_any(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    found = _only(examine(secured.broker.bootstrap, tmp_path, _plain()))
    answers.same("finding", [found["id"], found["advice"]])
    assert found["id"] == "bootstrap-no-sasl"
    assert "security.protocol=PLAINTEXT" in found["advice"]


def test_a_mechanism_that_is_not_offered(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    found = _only(examine(_text(secured.expiring), tmp_path, _plain()))
    answers.same("finding", [found["id"], found["seen"]])
    assert found["id"] == "bootstrap-sasl-mechanism"
    assert found["seen"].endswith("does not offer the SASL mechanism PLAIN, only SCRAM-SHA-256")


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", "x")])
def test_a_log_in_that_is_refused(
    secured: Secured, answers: TestAnswers, tmp_path: Path, user: str, password: str
) -> None:
    found = _only(examine(_text(secured.sasl), tmp_path, _plain(user, password)))
    answers.same("finding", [found["id"], found["advice"]])
    assert found["id"] == "bootstrap-authentication"
    assert password not in found["seen"].split()


def test_tls_at_listeners_in_plain(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    trusting = _trusting(secured.authority)
    found = _only(examine(secured.broker.bootstrap, tmp_path, {"security.protocol": "SSL"} | trusting))
    answers.same("no log-in", [found["id"], found["advice"]])
    assert found["id"] == "bootstrap-no-tls"
    assert "security.protocol=PLAINTEXT" in found["advice"]
    found = _only(examine(_text(secured.sasl), tmp_path, _plain(protocol="SASL_SSL") | trusting))
    answers.same("with a log-in", [found["id"], found["advice"]])
    assert found["id"] == "bootstrap-no-tls"
    assert "security.protocol=SASL_PLAINTEXT" in found["advice"]


def test_certificates_over_which_clients_stumble(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    settings = _plain(protocol="SASL_SSL")
    stranger = _only(examine(_text(secured.tls), tmp_path, settings | _trusting(secured.stranger)))
    elsewhere = _only(examine(_text(secured.elsewhere), tmp_path, settings | _trusting(secured.authority)))
    answers.same("ids", [stranger["id"], elsewhere["id"]])
    assert [stranger["id"], elsewhere["id"]] == ["bootstrap-certificate-authority", "bootstrap-certificate-host"]


def test_whoever_fits_is_served(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    for name, address, settings in (
        ("PLAIN", secured.sasl, _plain()),
        ("SCRAM", secured.expiring, _scram("SCRAM-SHA-256")),
        ("over TLS", secured.tls, _plain(protocol="SASL_SSL") | _trusting(secured.authority)),
    ):
        found = examine(_text(address), tmp_path, settings)
        answers.same(name, [found.code, found.ids, found.document["brokers"][0]["is_this_broker"]])
        assert (found.code, found.ids) == (0, [])


def test_a_user_without_rights_is_told_what_was_not_looked_at(
    kind: str, answers: TestAnswers, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    broker = make_broker(kind, tmp_path / "broker", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    secured = secure(broker)
    broker.properties |= {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    watch_log(request.node, broker)
    broker.start()
    try:
        found = examine(_text(secured.sasl), tmp_path, _plain())
    finally:
        broker.close()
    assert_all_went_well(broker)
    answers.same("findings", [found.code, found.ids])
    answers.same("unknown", [each.split(":")[0] for each in found.document["unknown"]])
    assert (found.code, found.ids) == (0, [])
    assert len(found.document["unknown"]) >= 3


TLS_OUTCOMES = {
    "TLS": [],
    "EXPIRED": ["bootstrap-certificate-expired"],
    "REQUIRED": ["bootstrap-client-certificate"],
}


@pytest.mark.parametrize("listener", TLS_OUTCOMES)
def test_tls_without_a_log_in(
    with_tls: SecuredBroker, identities: Identities, answers: TestAnswers, tmp_path: Path, listener: str
) -> None:
    settings = {"security.protocol": "SSL"} | _trusting(identities.trust("the authority"))
    found = examine(with_tls.bootstrap(listener), tmp_path, settings)
    answers.same("errors", found.errors)
    assert found.errors == TLS_OUTCOMES[listener]
