"""A broker inside the test process: its life, its port, its data, and what is left of it."""

from __future__ import annotations

import gc
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from pykbroker.testing import Broker, BrokerFailed, BrokerNotRunning, ConfigurationError

BROKERS = 200


def address_of(broker: Broker) -> tuple[str, int]:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    return host, int(port)


def ephemeral_directories() -> list[str]:
    return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("pykbroker-ephemeral-")]


def test_stock_clients_are_served() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as other:
            other.send("orders", b"two").get(30)
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"])
        assert {consumer.poll(30).value(), consumer.poll(30).value()} == {b"one", b"two"}
        consumer.commit(asynchronous=False)
        assert broker.group("g").lag() == 0
        consumer.close()
        reader = KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=30000,
        )
        assert [next(reader).value, next(reader).value] == [b"one", b"two"]
        reader.close()


def test_the_port_and_the_data_stay_while_the_broker_is_stopped() -> None:
    with Broker() as broker:
        address = address_of(broker)
        topic = broker.create_topic("t")
        topic.produce("kept")
        for end in (broker.stop, broker.kill):
            end()
            assert not broker.is_running
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, timeout=5)
            with pytest.raises(BrokerNotRunning, match="stopped"):
                topic.records()
            broker.start()
            assert address_of(broker) == address
            assert topic.values() == [b"kept"]
        broker.restart()
        assert topic.values() == [b"kept"]


def test_data_in_a_directory_of_ones_own_stays(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        broker.create_topic("t").produce("kept")
    with Broker(data_dir=tmp_path) as broker:
        assert broker.topic("t").values() == [b"kept"]


def test_a_given_port_is_taken_and_a_taken_one_is_an_error() -> None:
    with Broker() as first:
        port = address_of(first)[1]
        with pytest.raises(BrokerFailed, match=f"cannot listen on 127.0.0.1:{port}"):
            Broker(port=port).open()
    with Broker(port=port) as second:
        assert address_of(second)[1] == port


def test_configurations_are_those_of_kafka() -> None:
    with Broker({"auto.create.topics.enable": False, "num.partitions": 3, "log.cleanup.policy": ["delete"]}) as broker:
        assert broker.create_topic("t").partition_count() == 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"auto.create.topic.enable": True}, "did you mean auto.create.topics.enable"),
        ({"no.such.thing": 1}, "there is no configuration no.such.thing"),
        ({"num.partitions": "many"}, "num.partitions"),
    ],
)
def test_a_bad_configuration_is_an_error_and_leaves_nothing(config: dict[str, object], message: str) -> None:
    before = ephemeral_directories()
    broker = Broker(config)
    with pytest.raises(ConfigurationError, match=message):
        broker.open()
    assert not broker.is_open
    assert ephemeral_directories() == before


def test_what_is_not_open_says_so() -> None:
    broker = Broker()
    for use in (lambda: broker.bootstrap_servers, broker.topics, broker.stop, broker.topic("t").records):
        with pytest.raises(BrokerNotRunning, match="`with` block"):
            use()
    with broker, pytest.raises(RuntimeError, match="open already"):
        broker.open()
    broker.close()
    with pytest.raises(BrokerNotRunning):
        broker.topics()


def test_a_directory_that_is_no_log_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(BrokerFailed):
        Broker(data_dir=tmp_path).open()
    assert threading.active_count() < 50


def test_log_lines_are_each_brokers_own_and_the_programs_handlers_see_what_they_saw(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("pykbroker")
    before = (logger.level, logger.propagate, list(logger.handlers))
    caplog.set_level(logging.WARNING)
    with Broker() as one, Broker() as two:
        mark = two.log.count
        one.restart()
        assert any("shuts down" in line for line in one.log.lines())
        assert two.log.lines(mark) == []
        assert not [record for record in caplog.records if record.levelno < logging.WARNING]
        caplog.set_level(logging.INFO)
        one.restart()
        seen = [record for record in caplog.records if "shuts down" in record.getMessage()]
        assert len(seen) == 1  # once, also where pytest looks at loggers that pass nothing on
        caplog.set_level(logging.WARNING)
        caplog.set_level(logging.INFO, logger="pykbroker.server")
        two.restart()
        assert len([record for record in caplog.records if "shuts down" in record.getMessage()]) == 2
        caplog.clear()
        caplog.set_level(logging.WARNING, logger="pykbroker.server")
        one.restart()
        assert caplog.records == []
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_two_hundred_brokers_leave_no_file_no_thread_and_no_port() -> None:
    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    with Broker() as broker:
        broker.create_topic("t").produce("warm")
    directories, files = ephemeral_directories(), descriptors()
    ports = []
    for _ in range(BROKERS):
        with Broker() as broker:
            assert broker.create_topic("t").produce("x") == [(0, 0)]
            ports.append(address_of(broker)[1])
    assert ephemeral_directories() == directories
    assert descriptors() <= files + 2, "Trio's worker threads may still have theirs"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pykbroker")]
    sockets = psutil.Process().net_connections()  # another process may have one of the ports by now
    listening = {each.laddr.port for each in sockets if each.status == psutil.CONN_LISTEN}
    assert listening.isdisjoint(ports)


def test_a_program_that_forgets_to_close_leaves_nothing_behind(tmp_path: Path) -> None:
    program = (
        "from pykbroker.testing import Broker\n"
        "broker = Broker(); broker.open(); broker.create_topic('t').produce('x')\n"
        "print(broker.bootstrap_servers)\n"
    )
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not os.listdir(tmp_path)


def test_a_forked_child_keeps_neither_port_nor_data(tmp_path: Path) -> None:
    """Its copy of the listening socket would keep the port; its exit handlers would wait for a thread it has not."""
    program = (
        "import os, socket, sys, time\n"
        "from pykbroker.testing import Broker, BrokerNotRunning\n"
        "broker = Broker(); broker.open(); topic = broker.create_topic('t')\n"
        "host, port = broker.bootstrap_servers.split(':')\n"
        "reads, writes = os.pipe()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os.close(writes)\n"
        "    try:\n"
        "        topic.records()\n"
        "    except BrokerNotRunning:\n"
        "        os.read(reads, 1)\n"  # until the parent has closed the broker
        "        sys.exit(7)\n"
        "    sys.exit(1)\n"
        "topic.produce('x'); assert topic.values() == [b'x']\n"
        "broker.close()\n"
        "try:\n"
        "    socket.create_connection((host, int(port)), 5); raise SystemExit('the child listens')\n"
        "except ConnectionRefusedError:\n"
        "    pass\n"
        "os.close(writes)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not os.listdir(tmp_path)


def test_the_import_brings_neither_trio_nor_the_server(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pykbroker.testing import Broker, Cluster, KafkaUnderTest, pytest_plugin\n"
        "heavy = {'trio', 'pykbroker.api', 'pykbroker.client.cluster', 'construct', 'click'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr


def run_program(text: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
