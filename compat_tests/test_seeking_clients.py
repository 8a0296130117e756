"""Stock clients that cannot reach the advertised address: the log has one line for each, and none for others.

kafka-python asks once, and never again: nothing tells it from a client that has nothing to do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from .apache_kafka.tools import Tool, tool_command
from .brokers import BrokerProcess, Pykbroker
from .conftest import assert_all_went_well
from .ports import take_ports
from .topics import create_topic
from .waiting import until

LOST = "has sent nothing else: so does a client that cannot reach that address"
TOPIC = "records"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One listener is advertised where nobody listens, and another one where the broker is."""
    (nowhere, outside) = take_ports(2)
    broker = Pykbroker(tmp_path_factory.mktemp("seeking"))
    broker.properties |= {
        "listeners": f"{broker.properties['listeners']},OUTSIDE://127.0.0.1:{outside}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "auto.create.topics.enable": "false",
        "advertised.listeners": f"PLAINTEXT://{broker.bootstrap},OUTSIDE://127.0.0.1:{nowhere}",
    }
    broker.start()
    create_topic(broker, TOPIC)
    yield broker
    broker.close()
    assert_all_went_well(broker)


def _outside(broker: BrokerProcess) -> str:
    return broker.properties["listeners"].rsplit("://", 1)[1]


def _told(broker: BrokerProcess, client_id: str) -> list[str]:
    return [line for line in broker.log_text().splitlines() if LOST in line and f"client {client_id} of" in line]


def _produce(bootstrap: str) -> Callable[[], object]:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "lost-producer", "log_level": 0})
    producer.produce(TOPIC, b"never")
    return lambda: producer.poll(0.1)


def _consume(bootstrap: str) -> Callable[[], object]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "client.id": "lost-consumer", "group.id": "lost", "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    return lambda: consumer.poll(0.1)


@pytest.mark.parametrize(("client_id", "start"), [("lost-producer", _produce), ("lost-consumer", _consume)])
def test_a_client_that_is_lost_is_told_of_once(
    broker: BrokerProcess, client_id: str, start: Callable[[str], Callable[[], object]]
) -> None:
    go_on = start(_outside(broker))

    def is_told() -> bool:
        go_on()
        return bool(_told(broker, client_id))

    until(is_told, "the broker tells of the client", 90)
    assert len(_told(broker, client_id)) == 1


@pytest.mark.java
def test_kafkas_own_producer_is_told_of(broker: BrokerProcess, tmp_path: Path) -> None:
    properties = tmp_path / "producer.properties"
    properties.write_text(f"bootstrap.servers={_outside(broker)}\nclient.id=lost-java\n")
    options = ("--topic", TOPIC, "--num-records", "1", "--record-size", "10", "--throughput", "-1")
    command = tool_command(Tool.PRODUCER_PERFORMANCE, *options, "--command-config", str(properties))
    producer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: _told(broker, "lost-java"), "the broker tells of the client", 90)
    finally:
        producer.kill()
        producer.wait()


def test_a_client_that_waits_for_a_topic_and_one_that_works_are_not(broker: BrokerProcess) -> None:
    """By the address that leads to the broker; the one waits for longer than a lost client has to."""
    bootstrap = broker.bootstrap
    waiting = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "waits",
            "message.timeout.ms": 14_000,
            "log_level": 0,
        }
    )
    failed: list[object] = []
    waiting.produce("missing", b"never", on_delivery=lambda error, _: failed.append(error))
    working = Producer({"bootstrap.servers": bootstrap, "client.id": "works", "log_level": 0})

    def is_over() -> bool:
        waiting.poll(0.1)
        working.produce(TOPIC, b"one")
        working.flush(10)
        return bool(failed)

    until(is_over, "the producer gives up")
    assert _told(broker, "waits") == _told(broker, "works") == []
