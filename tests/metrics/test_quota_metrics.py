"""What a scrape tells of clients that have a quota."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.waiting import until
from pykbroker.cli.main import main
from pykbroker.config.own_keys import MOST_PARTITIONS_SHOWN
from pykbroker.testing import Broker

from .scraping import scrape

NAME = "kafka_server_quota_"
WAIT_S = 60


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({MOST_PARTITIONS_SHOWN: "20"}) as broker:
        broker.create_topic("t")
        yield broker


def limit(broker: Broker, quota: str) -> None:
    """Limit each client id by itself."""
    asked = ["--bootstrap-server", broker.bootstrap_servers, "--alter", "--client-defaults", "--add-config", quota]
    assert CliRunner().invoke(main, ["quotas", *asked]).exit_code == 0


def produce(broker: Broker, client_id: str, size: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": client_id})
    producer.produce("t", b"x" * size)
    assert producer.flush(WAIT_S) == 0


def told(broker: Broker, name: str, resource: str, client_id: str) -> float | None:
    return scrape(broker).get(f"{NAME}{name}", resource=resource, user="", clientid=client_id)


def test_bytes_and_throttles_of_producers_and_consumers_are_told(broker: Broker) -> None:
    assert not list(scrape(broker).of(f"{NAME}byte_total")), "nobody has a quota"
    limit(broker, "producer_byte_rate=1000,consumer_byte_rate=1000000")
    produce(broker, "quick", 20_000)
    produce(broker, "slow", 100)
    assert (told(broker, "byte_total", "Produce", "quick") or 0) > 20_000
    assert told(broker, "throttle_time_count", "Produce", "quick") == 1
    assert (told(broker, "throttle_time_sum", "Produce", "quick") or 0) > 1_000
    assert told(broker, "throttle_time_count", "Produce", "slow") == 0
    settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "client.id": "reader"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("t", 0, 0)])
    assert len(consumer.consume(2, WAIT_S)) == 2
    consumer.close()
    assert (told(broker, "byte_total", "Fetch", "reader") or 0) > 20_000
    assert told(broker, "byte_total", "Produce", "reader") is None


def test_time_on_the_event_loop_and_changes_of_partitions_are_told(broker: Broker) -> None:
    limit(broker, "request_percentage=100,controller_mutation_rate=0.001")
    produce(broker, "worker", 100)
    until(lambda: told(broker, "request_time_ms_total", "Request", "worker"), "its requests took some time")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "creator"})
    for topic in ("first", "second"):
        producer.list_topics(topic, timeout=WAIT_S)
    until(lambda: told(broker, "throttle_time_count", "ControllerMutation", "creator"), "the second is refused")
    assert told(broker, "mutation_total", "ControllerMutation", "creator") == 1


def test_more_clients_than_a_page_shows_are_counted(broker: Broker) -> None:
    limit(broker, "producer_byte_rate=1000000")
    for number in range(21):
        produce(broker, f"c{number}", 1)
    scraped = scrape(broker)
    assert not list(scraped.of(f"{NAME}byte_total"))
    assert scraped.value("pykbroker_left_out", what="clients with a quota of Produce") == 21
