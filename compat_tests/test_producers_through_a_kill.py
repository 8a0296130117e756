"""Idempotent producers other than librdkafka whose broker is killed under them: each record is there once.

`test_restarts` has the same for librdkafka, with every offset compared.
"""

import asyncio
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from .apache_kafka.tools import Tool, tool_command
from .brokers import Broker
from .conftest import FreshBroker
from .topics import create_topic
from .waiting import DEADLINE_S, until

pytestmark = pytest.mark.flaky(reruns=0)

TOPIC, PARTITIONS = "kept", 3
BEFORE_THE_KILL, IN_ALL = 3_000, 9_000


def java(broker: Broker, sends_all: threading.Event) -> None:
    sends_all.set()
    command = tool_command(
        Tool.PRODUCER_PERFORMANCE,
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--num-records", str(IN_ALL)),
        *("--record-size", "100", "--throughput", "1500", "--command-property", "reconnect.backoff.max.ms=500"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert f"{IN_ALL} records sent" in done.stdout, done.stdout + done.stderr


def kafka_python(broker: Broker, sends_all: threading.Event) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, enable_idempotence=True, linger_ms=5, reconnect_backoff_max_ms=500
    )
    pending = []
    for number in range(IN_ALL):
        if number == 2 * BEFORE_THE_KILL:
            sends_all.wait()
        pending.append(producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS))
    for future in pending:
        future.get(DEADLINE_S)
    producer.close()


def aiokafka(broker: Broker, sends_all: threading.Event) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer:
            for number in range(0, IN_ALL, 100):
                if number == 2 * BEFORE_THE_KILL:
                    await asyncio.to_thread(sends_all.wait)
                await asyncio.gather(
                    *[producer.send_and_wait(TOPIC, b"%d" % each) for each in range(number, number + 100)]
                )

    asyncio.run(send())


@pytest.mark.parametrize("produce", [pytest.param(java, marks=pytest.mark.java), kafka_python, aiokafka])
def test_every_record_is_stored_once(
    fresh_broker: FreshBroker, produce: Callable[[Broker, threading.Event], None]
) -> None:
    broker = fresh_broker()
    create_topic(broker, TOPIC, PARTITIONS)
    sends_all = threading.Event()
    """Until then a fast producer keeps something back, so that the kill comes in the middle."""
    with ThreadPoolExecutor(1) as thread:
        producer = thread.submit(produce, broker, sends_all)
        try:
            until(lambda: producer.done() or stored(broker) >= BEFORE_THE_KILL, "records before the kill")
            assert not producer.done(), producer.result()
            broker.kill()
        finally:
            sends_all.set()
        broker.start()
        producer.result(DEADLINE_S)
    assert stored(broker) == IN_ALL


def stored(broker: Broker) -> int:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    ends = consumer.end_offsets([TopicPartition(TOPIC, index) for index in range(PARTITIONS)])
    consumer.close()
    return sum(ends.values())
