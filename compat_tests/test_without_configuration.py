"""A single node as it comes, where Kafka's own defaults ask for three brokers: groups work out of the box."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from .brokers import BrokerProcess, Pykbroker
from .waiting import DEADLINE_S

INITIAL_REBALANCE_DELAY_S = 3


@pytest.fixture
def bare_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = Pykbroker(tmp_path / "broker")
    del broker.properties["group.initial.rebalance.delay.ms"]
    broker.start()
    yield broker
    broker.close()


def test_the_first_member_of_a_group_waits_for_others_and_gets_its_partitions(bare_broker: BrokerProcess) -> None:
    producer = KafkaProducer(bootstrap_servers=bare_broker.bootstrap)
    producer.send("greetings", b"hello").get(DEADLINE_S)
    producer.close()
    consumer = KafkaConsumer(
        "greetings", bootstrap_servers=bare_broker.bootstrap, group_id="readers", auto_offset_reset="earliest"
    )
    started = time.monotonic()
    values = [record.value for records in consumer.poll(30_000).values() for record in records]
    assert values == [b"hello"]
    assert time.monotonic() - started >= INITIAL_REBALANCE_DELAY_S
    consumer.commit()
    consumer.close()


def test_the_topic_of_committed_offsets_is_created_with_the_brokers_there_are(bare_broker: BrokerProcess) -> None:
    consumer = KafkaConsumer("any", bootstrap_servers=bare_broker.bootstrap, group_id="readers")
    consumer.poll(1000)
    consumer.close()
    admin = KafkaAdminClient(bootstrap_servers=bare_broker.bootstrap)
    offsets = admin.describe_topics(["__consumer_offsets"])[0]
    admin.close()
    assert offsets["error_code"] == 0
    assert offsets["is_internal"]
    assert len(offsets["partitions"]) == 50
    assert {tuple(each["replica_nodes"]) for each in offsets["partitions"]} == {(1,)}
