"""Many of something at once: partitions, connections, small requests, consumers of one topic."""

import asyncio
import socket
from contextlib import ExitStack

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from .brokers import Broker, answers_api_versions
from .clients import READERS, WRITERS, Message
from .conftest import FreshBroker
from .topics import create_topic
from .waiting import DEADLINE_S, until

PARTITIONS = 300


def test_hundreds_of_partitions_are_written_and_read_together(broker: Broker, topic: str) -> None:
    """One Fetch names them all: sessions, budgets and the order of the answer are at work."""
    create_topic(broker, topic, PARTITIONS)
    messages = [Message(b"%d" % number, partition=number % PARTITIONS) for number in range(3 * PARTITIONS)]
    for writer in ("confluent-kafka", "kafka-python"):
        written = WRITERS[writer](broker.bootstrap, topic, messages)
        assert {each.offset for each in written} <= set(range(6))
    for name, read in READERS.items():
        found = read(broker.bootstrap, topic, PARTITIONS, 2 * len(messages))
        assert len({(each.message.partition, each.offset) for each in found}) == 2 * len(messages), name


def test_a_fetch_of_many_large_partitions_reaches_them_all(broker: Broker, topic: str) -> None:
    """What exceeds `fetch.max.bytes` comes with later fetches; no partition starves."""
    create_topic(broker, topic, 20)
    value = bytes(200_000)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 1_000_000})
    for number in range(200):
        producer.produce(topic, value, partition=number % 20)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, fetch_max_bytes=1_000_000, max_partition_fetch_bytes=300_000
    )
    partitions = [TopicPartition(topic, partition) for partition in range(20)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    seen = dict.fromkeys(range(20), 0)

    def read() -> bool:
        for partition, records in consumer.poll(500).items():
            seen[partition.partition] += len(records)
        return sum(seen.values()) == 200

    until(read, "all records")
    consumer.close()
    assert set(seen.values()) == {10}


def test_hundreds_of_connections_are_served(broker: Broker) -> None:
    with ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection(broker.address, timeout=10))
        assert answers_api_versions(broker.address)


def test_an_asynchronous_producer_and_consumer_pass_each_other_records(broker: Broker, topic: str) -> None:
    """Ping-pong: each record is sent only when the one before was read, so every long poll ends early."""
    create_topic(broker, topic)

    async def ping_pong() -> list[bytes]:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        found = []
        async with consumer, producer, asyncio.timeout(DEADLINE_S):
            for number in range(200):
                await producer.send_and_wait(topic, b"%d" % number)
                found.append((await consumer.getone()).value)
        return found

    assert asyncio.run(ping_pong()) == [b"%d" % number for number in range(200)]


def test_a_topic_rolls_many_segments_and_is_read_across_them(fresh_broker: FreshBroker, topic: str) -> None:
    broker = fresh_broker()
    create_topic(broker, topic, 1, {"segment.bytes": "1048576", "index.interval.bytes": "4096"})
    messages = [Message(b"%05d" % number * 200) for number in range(20_000)]
    written = WRITERS["confluent-kafka"](broker.bootstrap, topic, messages)
    assert [each.offset for each in written] == list(range(20_000))
    for name, read in READERS.items():
        found = read(broker.bootstrap, topic, 1, 20_000)
        assert [each.message.value for each in found] == [each.value for each in messages], name
