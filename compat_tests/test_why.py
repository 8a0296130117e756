"""`pykbroker why` asks Apache Kafka, as it asks any broker: by Kafka's own protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer

from pykbroker.cli.main import main
from pykbroker.client.quotas import alter_quotas
from pykbroker.testing.apache_kafka import ApacheKafka

from .apache_kafka.jars import kafka_libs
from .brokers import ExternalBroker
from .transacting import leave_hanging


def why(kafka: ApacheKafka, *words: str) -> dict[str, Any]:
    outcome = CliRunner().invoke(main, ["why", "--bootstrap-server", kafka.bootstrap_servers, "--json", *words])
    assert outcome.exit_code == 0, outcome.output
    answer: dict[str, Any] = json.loads(outcome.output)
    return answer


@pytest.mark.java
def test_apache_kafka_is_asked_as_any_broker(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "libs").symlink_to(kafka_libs(), target_is_directory=True)
    with ApacheKafka(str(tmp_path / "kafka"), {"transaction.partition.verification.enable": False}) as kafka:
        kafka.create_topic("t", partitions=2)
        kafka.topic("t").produce(b"a", b"b", partition=0)
        for protocol in ("classic", "consumer"):
            assert why(kafka, "group", protocol)["reason"] == "no-such-group"
            consumer = member(kafka, protocol)
            group = why(kafka, "group", protocol)
            assert (group["type"], group["reason"], group["lag"]) == (protocol, "stable", 1)
            assert group["members"][0]["assignment"] == {"t": [0, 1]}
            of_consumer = why(kafka, "consumer", protocol, "--topic", "t", "--partition", "0")
            assert of_consumer["partitions"][0]["committed"] == 1
            consumer.close()
            assert why(kafka, "group", protocol)["reason"] == "no-members"

        assert why(kafka, "lso", "t", "1")["reason"] == "nothing-holds-it"
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "x"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"z", partition=1)
        producer.flush(30)
        lso = why(kafka, "lso", "t", "1")
        assert (lso["reason"], lso["transactions"][0]["transactional_id"]) == ("open-transaction", "x")
        producer.abort_transaction(30)
        leave_hanging(ExternalBroker(kafka.bootstrap_servers), "gone", "t")
        assert why(kafka, "lso", "t", "0")["reason"] == "hanging-transaction"
        assert why(kafka, "lso", "t", "7")["reason"] == "no-such-partition"

        kafka.call(alter_quotas, frozenset({("client-id", "app")}), {"producer_byte_rate": 1000.0}, [])
        assert why(kafka, "throttle", "app")["quotas"][0]["entity"] == "client-id app"


def member(kafka: ApacheKafka, protocol: str) -> Consumer:
    """A member that has committed the first of two records."""
    config = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "group.protocol": protocol}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": protocol, **config})
    consumer.subscribe(["t"])
    record = consumer.poll(60)
    assert record is not None
    consumer.commit(record, asynchronous=False)
    return consumer
