"""One broker of each kind with all TLS listeners, started once for the tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka.java import JavaMissing
from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import FROM_DOCKER, assert_all_went_well, make_broker, watch_log

from .identities import Identities
from .java_clients import JavaClients
from .listeners import SecuredBroker, jks_listener, standard_listeners
from .tls_clients import CLIENTS, TlsClient

StartSecured = Callable[..., SecuredBroker]


@pytest.fixture(scope="session")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Identities:
    return Identities(tmp_path_factory.mktemp("identities"))


@pytest.fixture(scope="session")
def shared_secured_broker(
    kind: str, identities: Identities, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """Where Java is missing it has no listener JKS: the tests that need it are left out, as they need Java."""
    directory = tmp_path_factory.mktemp(f"secured-{kind}")
    listeners = standard_listeners(identities, directory)
    try:
        listeners |= jks_listener(identities, directory)
    except JavaMissing:
        pass
    secured = SecuredBroker(process_of_kind(kind, directory / "broker"), listeners)
    secured.broker.start()
    yield secured
    secured.broker.close()
    assert_all_went_well(secured.broker)


@pytest.fixture
def secured(shared_secured_broker: SecuredBroker, request: pytest.FixtureRequest) -> SecuredBroker:
    watch_log(request.node, shared_secured_broker.broker)
    return shared_secured_broker


@pytest.fixture(scope="session")
def java_clients() -> Iterator[JavaClients]:
    clients = JavaClients()
    yield clients
    clients.close()


@pytest.fixture
def client_called(request: pytest.FixtureRequest) -> Callable[[str], TlsClient]:
    """The client of that name; Java's needs a JVM, which is started for the first test that asks for it."""
    return lambda name: request.getfixturevalue("java_clients") if name == "java" else CLIENTS[name]


def process_of_kind(kind: str, directory: Path) -> BrokerProcess:
    if kind == "external" or (kind == "apache-kafka" and FROM_DOCKER):
        pytest.skip("needs a broker whose certificates are files of this machine")
    broker = make_broker(kind, directory, {})
    assert isinstance(broker, BrokerProcess)
    return broker
