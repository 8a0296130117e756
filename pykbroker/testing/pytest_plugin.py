"""A plugin of pytest, there wherever pykbroker is installed: brokers and topics as fixtures.

`kafka_broker` is one broker for the session, or for each worker of pytest-xdist; `kafka_topic` a fresh topic for each
test; `kafka_fork` a broker of its own for each test, with what `kafka_seed` has made once; `kafka_cluster` a cluster of
its own for a test that stops nodes; `kafka_admin` an admin client of the libraries
that users have. `--kafka-home` and `--kafka-bootstrap-servers` put another broker in the place of pykbroker's.
What a failed test leaves is the business of `failed_tests`.

Nothing is imported before a test asks for a fixture: this module is loaded in every run of pytest.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pykbroker.control.audit.findings import Kind

    from .broker import Broker
    from .cluster import Cluster
    from .failed_tests import Marks
    from .kafka import KafkaUnderTest, Topic

_LONGEST_NAME: Final = 120
_marks: Final[pytest.StashKey[Marks]] = pytest.StashKey()
_allowed_findings: Final = pytest.StashKey["frozenset[Kind]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pykbroker", "brokers for tests (pykbroker)")
    group.addoption(
        "--kafka-bootstrap-servers",
        metavar="HOST:PORT",
        help="Use this running cluster in the place of pykbroker's broker.",
    )
    group.addoption(
        "--kafka-home", metavar="DIR", help="Start Apache Kafka from this distribution in the place of pykbroker."
    )
    group.addoption(
        "--kafka-journal",
        metavar="DIR",
        help="Write the requests of failed tests there, as JSON lines and for Wireshark; else beside tmp_path.",
    )
    group.addoption(
        "--kafka-audit",
        action="store_true",
        help="Fail tests whose clients lose records or repeat them on the wire; the marker kafka_audit allows some.",
    )
    parser.addini("kafka_broker_config", "Lines of KEY=VALUE for the broker of kafka_broker.", type="linelist")


class _PlainImports:
    """Imports this package as any other program does.

    pytest rewrites the assertions of every module in a plugin's distribution, which takes seconds for a broker, in each
    run where Python writes no bytecode. This finder comes before pytest's own.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("pykbroker.") else None


_plain_imports: Final = _PlainImports()


def pytest_unconfigure() -> None:
    if _used("audit_option"):
        from . import audit_option

        audit_option.turn(is_on=False)
    if _plain_imports in sys.meta_path:
        sys.meta_path.remove(_plain_imports)


def pytest_configure(config: pytest.Config) -> None:
    sys.meta_path.insert(0, _plain_imports)
    config.addinivalue_line(
        "markers",
        "kafka_topic(partitions=1, replication_factor=-1, configs={}): how the topic of kafka_topic is created",
    )
    config.addinivalue_line(
        "markers", "kafka_audit(allow=['commit-rewind']): what --kafka-audit may find without failing the test"
    )
    if config.getoption("kafka_audit"):
        from . import audit_option

        audit_option.turn(is_on=True)
    config.addinivalue_line("markers", "kafka_cluster(brokers=3, config={}): what the cluster of kafka_cluster is like")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that the audit does not reach a broker that the command line has put in pykbroker's place."""
    is_other = config.getoption("kafka_bootstrap_servers") or config.getoption("kafka_home")
    if not is_other or not config.getoption("kafka_audit"):
        return None
    return "--kafka-audit: pykbroker's brokers are audited, and the one of the command line is not"


@pytest.fixture(scope="session")
def kafka_broker_config(pytestconfig: pytest.Config) -> dict[str, object]:
    """Configurations of the broker, from the ini file; override this fixture for others."""
    config: dict[str, object] = {}
    for line in pytestconfig.getini("kafka_broker_config"):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise pytest.UsageError(f"kafka_broker_config expects lines of KEY=VALUE, not '{line}'")
        config[key.strip()] = value.strip()
    return config


@pytest.fixture(scope="session")
def kafka_broker(pytestconfig: pytest.Config, kafka_broker_config: dict[str, object]) -> Iterator[KafkaUnderTest]:
    """A broker for the session: pykbroker in this process, or what the command line has put in its place."""
    bootstrap, home = pytestconfig.getoption("kafka_bootstrap_servers"), pytestconfig.getoption("kafka_home")
    if bootstrap and home:
        raise pytest.UsageError("--kafka-bootstrap-servers and --kafka-home exclude each other")
    if bootstrap:
        from .external_kafka import ExternalKafka

        with ExternalKafka(bootstrap) as external:
            yield external
    elif home:
        from .apache_kafka import ApacheKafka

        with ApacheKafka(home, kafka_broker_config) as apache:
            yield apache
    else:
        from .broker import Broker

        with Broker(kafka_broker_config) as broker:
            yield broker


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: KafkaUnderTest) -> Iterator[Topic]:
    """A new topic, named after the test, which is deleted behind it. It is a `str`, its name."""
    marker = request.node.get_closest_marker("kafka_topic")
    topic = kafka_broker.create_topic(_topic_name(request.node.name), **_options(marker))
    yield topic
    _delete(topic, kafka_broker)


@pytest.fixture(scope="session")
def kafka_seed_broker(pytestconfig: pytest.Config, kafka_broker_config: dict[str, object]) -> Iterator[Broker]:
    """The broker that `kafka_seed` fills and that `kafka_fork` forks. Tests leave it alone."""
    if pytestconfig.getoption("kafka_bootstrap_servers") or pytestconfig.getoption("kafka_home"):
        pytest.skip("kafka_fork forks a broker of pykbroker alone")
    from .broker import Broker

    with Broker(kafka_broker_config) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_seed(kafka_seed_broker: Broker) -> None:
    """Fill `kafka_seed_broker`, once a session; override this fixture with what each test is to begin with."""


@pytest.fixture
def kafka_fork(kafka_seed: object, kafka_seed_broker: Broker) -> Iterator[Broker]:
    """A broker for this test alone, which begins with everything that `kafka_seed` has made."""
    with kafka_seed_broker.fork() as fork:
        yield fork


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster for this test alone, whose nodes it may stop, kill and start."""
    if request.config.getoption("kafka_bootstrap_servers") or request.config.getoption("kafka_home"):
        pytest.skip("kafka_cluster runs nodes of pykbroker alone")
    from .cluster import Cluster

    with Cluster(**_options(request.node.get_closest_marker("kafka_cluster"))) as cluster:
        yield cluster


@pytest.fixture
def kafka_admin(kafka_broker: KafkaUnderTest) -> Iterator[Any]:
    """An admin client of confluent-kafka, or of kafka-python where the other one is not installed."""
    try:
        from confluent_kafka.admin import AdminClient

        yield AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
        return
    except ImportError:
        pass
    try:
        from kafka import KafkaAdminClient
    except ImportError:
        pytest.fail(
            "the fixture kafka_admin needs confluent-kafka or kafka-python: pip install 'pykbroker[kafka-admin]'",
            pytrace=False,
        )
    client = KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers)
    yield client
    client.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_allowed_findings] = _allowed(item)
    if _used("journal"):
        from .journal import forget_closed

        forget_closed()
    if _used("threaded_kafka"):
        from .failed_tests import marks

        item.stash[_marks] = marks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _audited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Clients that a fixture closes commit once more."""
    return (yield from _audited(item))


def _audited(item: pytest.Item) -> Generator[None, object, object]:
    """Fail where an audit has found something; a test that has failed anyway says that alone."""
    try:
        result = yield
    except BaseException:
        _findings(item)
        raise
    found = _findings(item)
    if found:
        pytest.fail(found, pytrace=False)
    return result


def _findings(item: pytest.Item) -> str:
    """Return what the audits have found since the last call, for people; empty where it is nothing."""
    if not _used("broker_audit"):
        return ""
    from .broker_audit import take_findings, text_of

    found = take_findings(item.stash.get(_allowed_findings, frozenset()))
    return text_of(found) if found else ""


def _allowed(item: pytest.Item) -> frozenset[Kind]:
    """Return what an audit may find in this test."""
    marker = item.get_closest_marker("kafka_audit")
    if marker is None:
        return frozenset()
    from pykbroker.control.audit.findings import UnknownKind, kinds_of

    allow = _options(marker).get("allow", ())
    try:
        return kinds_of(allow)
    except UnknownKind as error:
        message = f"the marker kafka_audit: {error}"
    pytest.fail(message, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what brokers have logged and were asked since the test began, where it fails."""
    report = yield
    if report.failed and _used("threaded_kafka"):
        from .failed_tests import journal_directory, sections

        report.sections.extend(sections(item.nodeid, item.stash.get(_marks, None), journal_directory(item.config)))
    return report


def _used(module: str) -> bool:
    """Tell whether anybody has used brokers; otherwise nothing is imported."""
    return f"{__package__}.{module}" in sys.modules


def _topic_name(test: str) -> str:
    """Return a name that no other test or worker has: Kafka's characters, and none that Kafka takes for each other."""
    readable = re.sub("[^a-zA-Z0-9]+", "-", test).strip("-")[:_LONGEST_NAME]
    return f"{readable}-{os.urandom(4).hex()}"


def _options(marker: pytest.Mark | None) -> dict[str, Any]:
    if marker is None:
        return {}
    if marker.args:
        raise pytest.UsageError(f"the marker {marker.name} takes named options alone, such as {marker.name}(…=…)")
    return dict(marker.kwargs)


def _delete(topic: Topic, kafka: KafkaUnderTest) -> None:
    """Delete the topic unless the test has done so, or nobody would answer: the broker is stopped, paused, cut off."""
    from pykbroker.client.errors import ClientError

    from .errors import BrokerNotRunning

    controls = getattr(kafka, "controls", None)  # which only brokers of this process have
    if controls is not None and not any(each.answers for each in controls):
        return
    try:
        topic.delete()
    except (ClientError, BrokerNotRunning):
        pass
