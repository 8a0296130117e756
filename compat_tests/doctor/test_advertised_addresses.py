"""Advertised addresses that lead nowhere, or elsewhere: what the doctor says, and the address that it names instead."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker, Pykbroker
from compat_tests.ports import take_ports

from .examined import examine

FreshBroker = Callable[..., Broker]


def test_a_healthy_broker_has_no_findings(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    broker = fresh_broker()
    found = examine(broker.bootstrap, tmp_path)
    answers.same("findings", found.document["findings"])
    assert (found.code, found.document["findings"], found.document["unknown"]) == (0, [], [])
    assert (found.document["controller_id"], abs(found.document["clock_ahead_ms"]) < 5_000) == (1, True)
    [address] = found.document["brokers"]
    assert (address["outcome"], address["is_same_cluster"], address["is_this_broker"]) == ("served", True, True)


def test_a_name_that_only_containers_know(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    broker = fresh_broker({"advertised.listeners": "PLAINTEXT://broker.invalid:9092"})
    found = examine(broker.bootstrap, tmp_path)
    answers.same("ids", found.ids)
    assert (found.code, found.ids) == (1, ["advertised-unresolved"])
    finding = found.finding("advertised-unresolved")
    assert "broker 1 is at broker.invalid:9092 (advertised.listeners, PLAINTEXT)" in finding["seen"]
    assert f"It answered at {broker.bootstrap}: set advertised.listeners of broker 1" in finding["advice"]
    assert f"PLAINTEXT://{broker.bootstrap}" in finding["advice"]


def test_a_port_where_nobody_listens(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    (port,) = take_ports(1)
    broker = fresh_broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    found = examine(broker.bootstrap, tmp_path)
    answers.same("ids", found.ids)
    assert (found.code, found.ids) == (1, ["advertised-refused"])
    assert f"It answered at {broker.bootstrap}" in found.finding("advertised-refused")["advice"]


def test_a_mapped_port_is_named(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    """As with `docker run -p`: the client reaches one port, and is told another one."""
    (hidden, mapped) = take_ports(2)
    broker = fresh_broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{hidden}"})
    with _forwarder(mapped, broker.address):
        found = examine(f"127.0.0.1:{mapped}", tmp_path)
    answers.same("ids", found.ids)
    assert found.ids == ["advertised-refused"]
    advice = found.finding("advertised-refused")["advice"]
    assert f"It answered at 127.0.0.1:{mapped}: set advertised.listeners" in advice
    assert "auto" not in advice


def test_another_cluster_behind_the_address(fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path) -> None:
    other = Pykbroker(tmp_path / "other")
    broker = fresh_broker({"advertised.listeners": f"PLAINTEXT://{other.bootstrap}"})
    other.start()
    try:
        found = examine(broker.bootstrap, tmp_path)
    finally:
        other.close()
    answers.same("ids", found.ids)
    assert (found.code, found.ids) == (1, ["advertised-other-cluster"])
    assert f"It answered at {broker.bootstrap}" in found.finding("advertised-other-cluster")["advice"]


def test_an_internal_topic_that_wants_more_brokers(
    fresh_broker: FreshBroker, kind: str, answers: TestAnswers, tmp_path: Path
) -> None:
    """Groups and transactions hang on Apache Kafka then; pykbroker takes the replicas that there are."""
    wanted = {"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3"}
    found = examine(fresh_broker(wanted).bootstrap, tmp_path)
    answers.expect("ids", found.ids, [] if kind == "pykbroker" else ["internal-topic-replicas"])


@contextlib.contextmanager
def _forwarder(port: int, to: tuple[str, int]) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", port)) as server:
        threading.Thread(target=_serve, args=(server, to), daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket, to: tuple[str, int]) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            there = socket.create_connection(to)
            for source, target in ((client, there), (there, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError), source, target:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
