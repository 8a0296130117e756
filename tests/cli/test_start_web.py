"""`start`: the console's listener, metrics and health of a broker that runs as a process."""

from __future__ import annotations

import gzip
import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Producer

from compat_tests.waiting import until
from pykbroker.cli import start_web
from pykbroker.cli.start_web import MOST_DEFAULT_LISTENERS, StartWeb
from pykbroker.config import BrokerConfig
from pykbroker.web.address import WebAddress
from pykbroker.web.sockets import listen
from tests.metrics.scraping import OPEN_METRICS, Scraped, read

from .child_brokers import Place, hang_up_counts, place  # noqa: F401 - fixtures

ADDRESS = re.compile(r"metrics and health at http://(\S+)/")
TIMEOUT_S = 60
StartBroker = Callable[..., "Started"]
WEB = "console.listener=127.0.0.1:0"


class Started:
    """A broker that serves. addresses: of its web listeners, in the order of the log's lines."""

    def __init__(self, place: Place, process: subprocess.Popen[str]) -> None:  # noqa: F811
        self.process = process
        assert process.stdout is not None
        self.ready = process.stdout.readline()
        self.log = place.log
        until(lambda: ADDRESS.search(place.log.read_text()), "a line that says where the metrics are")
        self.addresses = ADDRESS.findall(place.log.read_text())

    @property
    def bootstrap(self) -> str:
        found = re.search(r"PLAINTEXT://(\S+)", self.ready)
        assert found, self.ready
        return found[1]

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, *, number: int = 0, method: str = "GET"
    ) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection(self.addresses[number], timeout=TIMEOUT_S)) as connection:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()

    def scrape(self, number: int = 0) -> Scraped:
        status, body = self.ask("/metrics", {"Accept": OPEN_METRICS}, number=number)
        assert status == 200
        return read(body.decode())


@pytest.fixture
def start(place: Place) -> Iterator[StartBroker]:  # noqa: F811
    processes: list[subprocess.Popen[str]] = []

    def start_broker(*overrides: str, flags: tuple[str, ...] = ()) -> Started:
        chosen = [word for override in overrides for word in ("--override", override)]
        processes.append(place.start(*chosen, *flags))
        return Started(place, processes[-1])

    yield start_broker
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout is not None
        process.stdout.close()
    assert "Traceback" not in place.log.read_text()


def test_metrics_and_health_are_at_the_listener_that_is_given(start: StartBroker) -> None:
    broker = start("console.listener=127.0.0.1:0", "metrics.listener=localhost:0")
    assert len(broker.addresses) == 2
    for number in (0, 1):
        assert broker.ask("/healthz", number=number) == (200, b"ok\n")
        assert broker.ask("/readyz", number=number) == (200, b"ok\n")
        assert broker.scrape(number).value("kafka_server_kafkaserver_brokerstate") == 3
    assert broker.ask("/", number=1)[0] == 404


def test_what_a_client_does_shows_in_the_next_scrape_with_times_of_the_loop(start: StartBroker) -> None:
    broker = start("console.listener=127.0.0.1:0")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(300):
        producer.produce("t", b"x" * 100)
    assert producer.flush(TIMEOUT_S) == 0
    scraped = broker.scrape()
    assert scraped.value("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 300
    assert scraped.value("pykbroker_loop_delay_ms_count") > 0
    assert scraped.value("pykbroker_loop_longest_hold_ms") > 0
    assert scraped.value("process_resident_memory_bytes") > 10_000_000


def test_a_scrape_is_compressed_for_who_takes_that(start: StartBroker) -> None:
    broker = start("console.listener=127.0.0.1:0")
    status, body = broker.ask("/metrics", {"Accept-Encoding": "gzip", "Accept": OPEN_METRICS})
    assert status == 200
    assert read(gzip.decompress(body).decode()).value("kafka_server_kafkaserver_brokerstate") == 3
    assert broker.ask("/metrics", method="HEAD") == (200, b"")
    assert broker.ask("/metrics", method="POST")[0] == 405


def started_by(place: Place, program: str) -> Started:  # noqa: F811
    """A broker with a console that Python runs as `-c program`."""
    with place.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "start", "--ephemeral", "--port", "0", "--override", WEB],
            stdout=subprocess.PIPE,
            stderr=log,
            env=place.environment,
            text=True,
        )
    return Started(place, process)


def ended(broker: Started) -> str:
    """End a broker, and return what it has printed since it was ready."""
    broker.process.terminate()
    assert broker.process.stdout is not None
    with broker.process.stdout as stdout:
        printed = stdout.read()
    assert broker.process.wait(TIMEOUT_S) == 0
    return printed


def test_the_console_is_imported_for_who_asks_for_its_pages_alone(place: Place) -> None:  # noqa: F811
    program = (
        "import atexit, sys; atexit.register(lambda: print('imported:', 'starlette' in sys.modules));"
        "from pykbroker.cli.main import main; main()"
    )
    for path, is_imported in (("/metrics", False), ("/", True)):
        broker = started_by(place, program)
        assert broker.ask(path)[0] == 200
        assert f"imported: {is_imported}\n" in ended(broker)


UNUSED_WHILE_IDLE = (
    *("cramjam", "re2", "cryptography"),
    *("argparse", "csv", "h2.connection", "h2.events", "h2.stream", "hpack", "priority", "snappy"),  # of libraries
    *("bz2", "hashlib", "html", "html.entities", "lzma", "xml.etree.ElementTree"),
    *("pykbroker.groups.shard", "pykbroker.groups.assignors", "pykbroker.transactions.shard"),
    *("pykbroker.security.sasl.credentials", "pykbroker.security.sasl.server_handshake"),
    *("pykbroker.server.node.node_sasl", "pykbroker.server.node.node_tls", "pykbroker.server.network.tls_transport"),
    *("pykbroker.storage.log.timestamp_search", "pykbroker.replication.follower"),
    *("pykbroker.storage.compaction.segment_cleaner", "pykbroker.sharing.coordinator.shard"),
)
"""What a broker without groups, transactions, users, compressed records and other brokers has no need of."""


def test_what_a_broker_does_not_use_is_not_in_memory(place: Place) -> None:  # noqa: F811
    program = (
        "import atexit, sys, types\n"
        "def executed(name):\n"
        "    return type(sys.modules.get(name)) is types.ModuleType\n"
        f"atexit.register(lambda: print('used:', [each for each in {UNUSED_WHILE_IDLE} if executed(each)]))\n"
        "from pykbroker.cli.main import main; main()"
    )
    broker = started_by(place, program)
    for path in ("/metrics", "/", "/static/app.js", "/api/overview", "/api/topics", "/api/cluster", "/api/groups"):
        assert broker.ask(path)[0] == 200
    assert "used: []\n" in ended(broker)


def test_a_page_of_another_site_learns_nothing(start: StartBroker) -> None:
    broker = start("console.listener=127.0.0.1:0", "console.hosts=broker.example")
    for path in ("/metrics", "/healthz", "/readyz", "/"):
        status, body = broker.ask(path, {"Host": "evil.example"})
        assert (status, b"evil.example" in body) == (403, True)
    assert broker.ask("/healthz", {"Host": "broker.example:9480"}) == (200, b"ok\n")


def test_scrapers_that_never_read_or_leave_keep_nobody_from_anything(start: StartBroker) -> None:
    broker = start("console.listener=127.0.0.1:0")
    host, port = broker.addresses[0].rsplit(":", 1)
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(closing(_asking(host, int(port))))
        for _ in range(50):
            _asking(host, int(port)).close()
        assert broker.ask("/healthz") == (200, b"ok\n")
        assert broker.scrape().value("kafka_server_kafkaserver_brokerstate") == 3


def _asking(host: str, port: int) -> socket.socket:
    client = socket.create_connection((host, port), TIMEOUT_S)
    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


def test_two_hundred_connections_wait_for_each_other_and_are_answered(start: StartBroker) -> None:
    broker = start("console.listener=127.0.0.1:0")
    host, port = broker.addresses[0].rsplit(":", 1)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(closing(socket.create_connection((host, int(port)), TIMEOUT_S))) for _ in range(200)
        ]
        for each in clients:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        for each in clients:
            assert each.makefile("rb").read().endswith(b"ok\n")


def test_a_mere_controller_has_metrics_and_health(start: StartBroker, place: Place) -> None:  # noqa: F811
    properties = place.directory / "controller.properties"
    with listen(WebAddress("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    properties.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:{port}\ncontroller.quorum.voters=1@127.0.0.1:{port}\n"
        "console.listener=127.0.0.1:0\n"
    )
    with place.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pykbroker", "start", "--ephemeral", str(properties)],
            stdout=subprocess.PIPE,
            stderr=log,
            env=place.environment,
            text=True,
        )
    try:
        controller = Started(place, process)
        assert controller.ask("/readyz") == (200, b"ok\n")
        assert controller.scrape().value("kafka_controller_kafkacontroller_activecontrollercount") == 1
        assert controller.ask("/")[0] == 404
    finally:
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout is not None
        process.stdout.close()


def test_a_node_that_waits_for_its_quorum_is_healthy_and_not_ready(place: Place) -> None:  # noqa: F811
    with listen(WebAddress("127.0.0.1", 0)) as one, listen(WebAddress("127.0.0.1", 0)) as two:
        own, web = one.getsockname()[1], two.getsockname()[1]
    with listen(WebAddress("127.0.0.1", 0)) as silent:  # the other voter, which says nothing
        voters = f"1@127.0.0.1:{own},2@127.0.0.1:{silent.getsockname()[1]}"
        process = place.start(
            *("--override", f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{own}"),
            *("--override", f"controller.quorum.voters={voters}"),
            *("--override", f"console.listener=127.0.0.1:{web}"),
        )
        assert process.stdout is not None
        try:
            until(lambda: _answer(web, "/healthz") == (200, b"ok\n"), "an answer before the node serves")
            status, reason = _answer(web, "/readyz")
            assert (status, reason.startswith(b"the node starts")) == (503, True)
            status, body = _answer(web, "/metrics")
            assert status == 200
            assert read(body.decode(), strictly=False).value("kafka_server_kafkaserver_brokerstate") == 1
        finally:
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0, place.log.read_text()
            process.stdout.close()


def _answer(port: int, path: str) -> tuple[int, bytes]:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
    except OSError:
        return 0, b""


def refused(*overrides: str, missing: str | None = None) -> str:
    """Run a start that must fail; returns the last line. missing: a package that is not installed."""
    program = "from pykbroker.cli.main import main; main()"
    if missing is not None:
        program = f"import sys; from importlib import util; found = util.find_spec\n{_HIDES.format(missing)}; {program}"
    chosen = [word for override in overrides for word in ("--override", override)]
    done = subprocess.run(
        [sys.executable, "-c", program, "start", "--ephemeral", "--port", "0", *chosen],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


_HIDES = "util.find_spec = lambda name: None if name == '{}' else found(name)"


def test_a_listener_that_is_given_and_taken_ends_the_start() -> None:
    with listen(WebAddress("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for key in ("console.listener", "metrics.listener"):
            line = refused(f"{key}=127.0.0.1:{port}")
            assert line == f"Error: {key}=127.0.0.1:{port}: cannot listen there: Address already in use"


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("console.listener=9480", "Invalid value 9480 for configuration console.listener: HOST:PORT, such as"),
        ("metrics.listener=no.such.host.invalid:1", "metrics.listener=no.such.host.invalid:1: cannot listen there: "),
        ("metrics.listener=192.0.2.1:9480", "metrics.listener=192.0.2.1:9480: cannot listen there: "),
    ],
)
def test_an_address_that_is_none_is_one_line(override: str, line: str) -> None:
    assert refused(override).startswith(f"Error: {line}")


def test_a_listener_that_is_given_and_lacks_its_package_ends_the_start() -> None:
    for key, package in (("console.listener", "hypercorn"), ("metrics.listener", "prometheus_client")):
        line = refused(f"{key}=127.0.0.1:0", missing=package)
        assert line == f"Error: {key} needs {package}: pip install 'pykbroker[console,metrics]'"


class TestDefaultListener:
    """The listener that nobody asked for."""

    def start_web(self, monkeypatch: pytest.MonkeyPatch, port: int) -> StartWeb:
        config = BrokerConfig({})
        actual = BrokerConfig.str
        monkeypatch.setattr(
            BrokerConfig,
            "str",
            lambda self, name: f"127.0.0.1:{port}" if name == "console.listener" else actual(self, name),
        )
        return StartWeb(config)

    def test_further_nodes_of_a_host_take_the_next_ports(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with listen(WebAddress("127.0.0.1", 0)) as free:
            port = min(free.getsockname()[1], 65_000)
        with ExitStack() as stack:
            started = []
            for _ in range(MOST_DEFAULT_LISTENERS + 1):
                started.append(self.start_web(monkeypatch, port))
                stack.callback(started[-1].close)
            addresses = [each.url for each in started if each.url is not None]
            assert len(set(addresses)) == len(addresses) >= MOST_DEFAULT_LISTENERS // 2  # others take ports as well
            assert started[-1].url is None

    def test_without_its_package_there_is_none_and_a_line_says_so(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "pykbroker")
        monkeypatch.setattr("pykbroker.cli.start_web.find_spec", lambda name: None)
        web = self.start_web(monkeypatch, 0)
        assert web.url is None
        web.node_serves(None)  # type: ignore[arg-type]  # the line alone is wanted
        assert "pip install 'pykbroker[console,metrics]'" in caplog.text


@pytest.mark.parametrize(
    ("properties", "missing", "expected"),
    [
        ({"console.listener": "", "metrics.listener": "127.0.0.1:0"}, "", True),
        ({"console.listener": "127.0.0.1:0"}, "", True),
        ({"console.listener": ""}, "", False),
        ({"console.listener": "127.0.0.1:0"}, "opentelemetry.proto", False),
    ],
)
def test_clients_are_asked_for_metrics_where_a_page_shows_them_and_they_can_be_read(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], missing: str, expected: bool
) -> None:
    monkeypatch.setattr(start_web, "_is_there", lambda name: name != missing)
    web = StartWeb(BrokerConfig(properties))
    web.close()
    assert web.shows_telemetry is expected


def test_an_empty_value_closes_the_listener(place: Place) -> None:  # noqa: F811
    process = place.start("--override", "console.listener=")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("pykbroker ready:")
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()
    assert "http://" not in place.log.read_text()
