"""Brokers for the scenarios: each test that asks for one is there twice, for Apache Kafka and for pykbroker.

Which of the two run, and how their answers are compared, is decided in `compat_tests.referee`.

PYKBROKER_TEST_BOOTSTRAP=host:port runs the scenarios on that broker alone.
PYKBROKER_TEST_KAFKA=docker takes Apache Kafka from Docker's image instead of from its jars.
"""

import itertools
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest

from .apache_kafka.broker import ApacheKafka, DockerKafka
from .brokers import Broker, BrokerProcess, ExternalBroker, Pykbroker
from .loop_holds import assert_loop_not_held
from .names import EXTERNAL, RUN

FROM_DOCKER = os.environ.get("PYKBROKER_TEST_KAFKA") == "docker"
LOG_LIMIT_CHARS = 20_000

_logs_of_test = pytest.StashKey[dict[Broker, int]]()
_numbers = itertools.count(1)

FreshBroker = Callable[..., Broker]


def _kinds() -> list[object]:
    if EXTERNAL:
        return ["external"]
    referee_needs = () if FROM_DOCKER else (pytest.mark.java,)
    return [pytest.param("apache-kafka", marks=referee_needs), "pykbroker"]


def make_broker(kind: str, directory: Path, properties: dict[str, str]) -> Broker:
    match kind:
        case "pykbroker":
            return Pykbroker(directory, properties)
        case "apache-kafka":
            return (DockerKafka if FROM_DOCKER else ApacheKafka)(directory, properties)
        case _:
            assert EXTERNAL is not None
            return ExternalBroker(EXTERNAL)


@pytest.fixture(scope="session", params=_kinds())
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def shared_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    """Gives the one broker of a kind. Each worker of a parallel run has its own, which stays to the end of the run."""
    running: dict[str, Broker] = {}

    def of_kind(kind: str) -> Broker:
        if kind not in running:
            running[kind] = make_broker(kind, tmp_path_factory.mktemp(kind) / "shared", {})
            running[kind].start()
        return running[kind]

    yield of_kind
    for broker in running.values():
        broker.close()
        assert_all_went_well(broker)


@pytest.fixture(scope="session")
def shared_broker(kind: str, shared_brokers: Callable[[str], Broker]) -> Broker:
    return shared_brokers(kind)


@pytest.fixture
def broker(shared_broker: Broker, request: pytest.FixtureRequest) -> Broker:
    """The running broker that many tests share: each uses topics and groups of its own."""
    watch_log(request.node, shared_broker)
    return shared_broker


@pytest.fixture
def fresh_broker(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FreshBroker]:
    """Starts brokers of the test's own: `fresh_broker({"log.segment.bytes": "1048576"})`."""
    if kind == "external":
        pytest.skip("needs brokers that the test starts itself")
    started: list[Broker] = []

    def start(properties: dict[str, str] | None = None) -> Broker:
        own = make_broker(kind, tmp_path / f"broker-{len(started)}", properties or {})
        started.append(own)
        watch_log(request.node, own)
        own.start()
        return own

    yield start
    for own in started:
        own.close()
        assert_all_went_well(own)


@pytest.fixture
def fresh_process(fresh_broker: FreshBroker) -> Callable[..., BrokerProcess]:
    """As fresh_broker, for tests that look at the process or its files."""

    def start(properties: dict[str, str] | None = None) -> BrokerProcess:
        own = fresh_broker(properties)
        if not isinstance(own, BrokerProcess):
            pytest.skip("needs a broker that is a process of this machine")
        return own

    return start


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


@pytest.fixture
def two_directories(
    fresh_process: Callable[..., BrokerProcess], directories: tuple[Path, Path]
) -> Callable[..., BrokerProcess]:
    def start(properties: Mapping[str, str] | None = None) -> BrokerProcess:
        return fresh_process({"log.dirs": ",".join(map(str, directories)), **(properties or {})})

    return start


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names that no other test uses: `unique("group")`. A test's are of one length, whichever broker it asks."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.originalname)[:80].strip("-")
    return lambda noun: f"{test}.{noun}-{RUN}-{next(_numbers):05d}"


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    """A topic name of the test's own; the topic is not created yet."""
    return unique("topic")


def assert_all_went_well(broker: Broker) -> None:
    """Whatever the clients did: an exception that nobody expected is a bug of ours, as is a loop that was held."""
    if broker.kind == "pykbroker":
        log = broker.log_text()
        assert "Traceback" not in log, log[max(log.index("Traceback") - 2000, 0) :][:LOG_LIMIT_CHARS]
        assert_loop_not_held(log)


def watch_log(item: pytest.Item, broker: Broker) -> None:
    """Where the test fails, what the broker logs from now on is shown."""
    logs = item.stash.setdefault(_logs_of_test, {})
    logs[broker] = len(broker.log_text())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for broker, start in item.stash.get(_logs_of_test, {}).items():
            report.sections.append(
                (f"log of {broker.kind} at {broker.bootstrap}", broker.log_text()[start:][-LOG_LIMIT_CHARS:])
            )
    return report
