"""Two brokers of each kind for the tests of this folder, each started once: one whose stores stay as they are, and one
whose stores are replaced.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from compat_tests.apache_kafka.java import JavaMissing
from compat_tests.conftest import assert_all_went_well, watch_log

from .identities import Identities
from .java_clients import JavaClients
from .listeners import SecuredBroker, Settings, jks_listener, standard_listeners
from .reload_listeners import reload_listeners
from .reload_scene import ReloadScene
from .tls_clients import CLIENTS, TlsClient

StartScene = Callable[..., ReloadScene]


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
    with running(SecuredBroker(kind, directory / "broker", listeners)) as secured:
        yield secured


@pytest.fixture
def secured(shared_secured_broker: SecuredBroker, request: pytest.FixtureRequest) -> SecuredBroker:
    watch_log(request.node, shared_secured_broker.broker)
    return shared_secured_broker


@pytest.fixture(scope="session")
def shared_reload_scene(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReloadScene]:
    directory = tmp_path_factory.mktemp(f"reload-{kind}")
    stores = directory / "stores"
    stores.mkdir()
    with running(SecuredBroker(kind, directory / "broker", reload_listeners(stores))) as secured:
        yield ReloadScene(secured, stores)


@pytest.fixture
def scene(shared_reload_scene: ReloadScene, request: pytest.FixtureRequest) -> ReloadScene:
    """The running broker whose stores are replaced."""
    watch_log(request.node, shared_reload_scene.secured.broker)
    return shared_reload_scene


@pytest.fixture
def own_scene(
    kind: str, tmp_path: Path, stores_directory: Path, request: pytest.FixtureRequest
) -> Iterator[StartScene]:
    """A broker of the test's own: `own_scene(listeners, properties)`, whose stores lie in the directory `stores`."""
    with ExitStack() as stack:

        def start(listeners: Mapping[str, Settings], properties: Mapping[str, str] | None = None) -> ReloadScene:
            secured = SecuredBroker(kind, tmp_path / "broker", listeners, properties)
            watch_log(request.node, secured.broker)
            return ReloadScene(stack.enter_context(running(secured)), stores_directory)

        yield start


@pytest.fixture
def stores_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "stores"
    directory.mkdir()
    return directory


@contextmanager
def running(secured: SecuredBroker) -> Iterator[SecuredBroker]:
    secured.broker.start()
    try:
        yield secured
    finally:
        secured.broker.close()
    assert_all_went_well(secured.broker)


@pytest.fixture(scope="session")
def java_clients() -> Iterator[JavaClients]:
    clients = JavaClients()
    yield clients
    clients.close()


@pytest.fixture
def client_called(request: pytest.FixtureRequest) -> Callable[[str], TlsClient]:
    """The client of that name; Java's needs a JVM, which is started for the first test that asks for it."""
    return lambda name: request.getfixturevalue("java_clients") if name == "java" else CLIENTS[name]
