"""`advertised.listeners=auto`: stock clients that come by different addresses work with the one that they came by.

Apache Kafka refuses the value, which the last test shows.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykbroker.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)

from .answers import TestAnswers
from .apache_kafka.tools import ToolFailed
from .brokers import BrokerFailed, BrokerProcess, Pykbroker, loopback_place
from .chaos.network import IN_NEW_NAMESPACES, Network
from .clients import READERS, WRITERS, Message
from .clusters.cluster import Cluster
from .clusters.layout import PYKBROKER, NodeSpec
from .clusters.topics import create_replicated_topic
from .conftest import assert_all_went_well, make_broker
from .wire import Wire

LOOPBACK = ("127.0.0.1", "127.0.0.2", "::1")


def _is_there(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe, contextlib.suppress(OSError):
        probe.bind((host, 0))
        return True
    return False


def _own_address() -> str:
    """This host's address on its network; a loopback address where it has none. No packet is sent."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.3"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    place = loopback_place()
    properties = {
        "listeners": f"PLAINTEXT://:{place.port},CONTROLLER://127.0.0.1:{place.controller_port}",
        "advertised.listeners": "auto",
    }
    broker = Pykbroker(tmp_path_factory.mktemp("auto"), properties, place=place)
    broker.start()
    yield broker
    broker.close()
    assert_all_went_well(broker)


def _told(address: tuple[str, int]) -> set[tuple[str, int]]:
    """The broker's addresses in all answers that have one."""
    with Wire(address) as wire:
        metadata = wire.call(MetadataRequest(topics=[]), 12)
        coordinator = wire.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"]), 4)
        cluster = wire.call(DescribeClusterRequest(), 1)
    assert isinstance(metadata, MetadataResponse)
    assert isinstance(coordinator, FindCoordinatorResponse)
    assert isinstance(cluster, DescribeClusterResponse)
    assert [each.error_code for each in coordinator.coordinators] == [0]
    return {(each.host, each.port) for each in [*metadata.brokers, *coordinator.coordinators, *cluster.brokers]}


@pytest.mark.parametrize("host", [*LOOPBACK, _own_address()])
def test_each_answer_has_the_address_that_the_client_came_by(broker: BrokerProcess, host: str) -> None:
    if not _is_there(host):
        pytest.skip(f"{host} is no address of this host")
    assert _told((host, broker.port)) == {(host, broker.port)}


@pytest.mark.parametrize("host", [*LOOPBACK, _own_address()])
@pytest.mark.parametrize("client", WRITERS)
def test_stock_clients_write_and_read_by_the_address_that_they_know(
    broker: BrokerProcess, client: str, host: str
) -> None:
    if not _is_there(host):
        pytest.skip(f"{host} is no address of this host")
    bootstrap = f"[{host}]:{broker.port}" if ":" in host else f"{host}:{broker.port}"
    topic = f"{client}-{host.replace(':', '.')}"
    messages = [Message(b"one"), Message(b"two")]
    WRITERS[client](bootstrap, topic, messages)
    read = READERS[client](bootstrap, topic, 1, 2)
    assert [each.message.value for each in read] == [b"one", b"two"]


@pytest.mark.kcat
@pytest.mark.parametrize("host", LOOPBACK)
def test_kcat_is_told_the_address_that_it_came_by(broker: BrokerProcess, host: str) -> None:
    if not _is_there(host):
        pytest.skip(f"{host} is no address of this host")
    shown = f"[{host}]:{broker.port}" if ":" in host else f"{host}:{broker.port}"
    done = subprocess.run(["kcat", "-b", shown, "-L"], capture_output=True, text=True, timeout=60, check=True)
    assert f"broker 1 at {host}:{broker.port}" in done.stdout


def test_a_forwarded_connection_is_told_where_the_forwarder_came(tmp_path: Path) -> None:
    """The broker sees the forwarder's own connection: its clients go on without it, if they reach that address."""
    place = loopback_place()
    broker = Pykbroker(tmp_path, {"advertised.listeners": "PLAINTEXT://auto"}, place=place)
    broker.start()
    try:
        with _forwarder(("127.0.0.9", broker.port), broker.address):
            assert _told(("127.0.0.9", broker.port)) == {("127.0.0.1", broker.port)}
            WRITERS["confluent-kafka"](f"127.0.0.9:{broker.port}", "forwarded", [Message(b"one")])
    finally:
        broker.close()
    assert_all_went_well(broker)


@contextlib.contextmanager
def _forwarder(at: tuple[str, int], to: tuple[str, int]) -> Iterator[None]:
    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(to) as there:
                back = threading.Thread(target=_pump, args=(there, self.request), daemon=True)
                back.start()
                _pump(self.request, there)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(at, Forward) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


_CALL = """
import sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
sent = []
producer = Producer({"bootstrap.servers": sys.argv[1]})
producer.produce("records", b"one", on_delivery=lambda error, message: sent.append(error))
assert producer.flush(30) == 0 and sent == [None], sent
[only] = AdminClient({"bootstrap.servers": sys.argv[1]}).list_topics(timeout=30).brokers.values()
print(f"{only.host}:{only.port}")
"""


def main() -> None:
    """Run the broker in one namespace, and clients in two others, beside one on the broker's own loopback."""
    with Network(2) as network:
        there, elsewhere = network.places
        directory = Path(sys.argv[1])
        listeners = f"PLAINTEXT://0.0.0.0:{there.port},CONTROLLER://127.0.0.1:{there.controller_port}"
        broker = Pykbroker(directory, {"listeners": listeners, "advertised.listeners": "auto"}, place=there)
        broker.start()
        try:
            for enter, host in (
                ((), there.host),
                (elsewhere.enter, there.host),
                (there.enter, "127.0.0.1"),
            ):
                bootstrap = f"{host}:{there.port}"
                command = [*enter, sys.executable, "-c", _CALL, bootstrap]
                told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
                assert told.stdout.strip() == bootstrap, told
        finally:
            broker.close()
        assert_all_went_well(broker)


@pytest.mark.netns
def test_a_container_is_reached_from_inside_and_from_outside(tmp_path: Path) -> None:
    """The broker has a network of its own, as in a container without a mapped port."""
    command = [*IN_NEW_NAMESPACES, sys.executable, "-m", "compat_tests.test_auto_advertised", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def test_nodes_that_advertise_by_auto_find_each_other(tmp_path: Path) -> None:
    """What another node is told is where the listener is bound; who asks the node itself is told where he came."""
    spec = NodeSpec(PYKBROKER, properties={"advertised.listeners": "auto"})
    with Cluster(tmp_path, [spec, spec]) as cluster:
        cluster.start()
        create_replicated_topic(cluster, "replicated", replication_factor=2)
        WRITERS["confluent-kafka"](cluster.bootstrap, "replicated", [Message(b"one")])
        cluster.wait_until_in_sync("replicated")
        with Wire(cluster.nodes[1].address) as wire:
            metadata = wire.call(MetadataRequest(topics=[]), 12)
        assert isinstance(metadata, MetadataResponse)
        addresses = {each.node_id: (each.host, each.port) for each in metadata.brokers}
        assert addresses == {number: node.address for number, node in cluster.nodes.items()}
        cluster.stop()


def test_apache_kafka_does_not_start_with_auto(kind: str, answers: TestAnswers, tmp_path: Path) -> None:
    if kind == "external":
        pytest.skip("needs brokers that the test starts itself")
    for value in ("auto", "PLAINTEXT://auto"):
        broker = make_broker(kind, tmp_path / value.replace("/", ""), {"advertised.listeners": value})
        try:
            broker.start()
        except (BrokerFailed, ToolFailed):  # Kafka's directories cannot even be formatted
            started = False
        else:
            started = True
        finally:
            broker.close()
        answers.expect(value, started, kind == "pykbroker")


if __name__ == "__main__":
    main()
