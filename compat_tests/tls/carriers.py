"""Records over TLS by each client: written to one partition, and read from its beginning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.waiting import DEADLINE_S

from .tls_clients import Connection, librdkafka_options, python_options

LARGEST_REQUEST = 8 << 20

Write = Callable[[Connection, str, Sequence[bytes], str], None]
"""(connection, topic, values, codec)"""
Read = Callable[[Connection, str, int], list[bytes]]
"""(connection, topic, count) -> the values of so many records"""


def write_with_librdkafka(connection: Connection, topic: str, values: Sequence[bytes], codec: str) -> None:
    options = {"compression.type": codec, "message.max.bytes": LARGEST_REQUEST}
    producer = Producer(librdkafka_options(connection) | options)
    errors = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_S) == 0, "not everything was delivered"
    assert errors == [None] * len(values)


def write_with_kafka_python(connection: Connection, topic: str, values: Sequence[bytes], codec: str) -> None:
    producer = KafkaProducer(
        **python_options(connection), compression_type=codec_or_none(codec), max_request_size=LARGEST_REQUEST
    )
    try:
        for future in [producer.send(topic, value, partition=0) for value in values]:
            future.get(DEADLINE_S)
    finally:
        producer.close()


def write_with_aiokafka(connection: Connection, topic: str, values: Sequence[bytes], codec: str) -> None:
    async def write() -> None:
        options = python_options(connection) | {"max_request_size": LARGEST_REQUEST}
        async with AIOKafkaProducer(**options, compression_type=codec_or_none(codec)) as producer:
            for value in values:
                await producer.send_and_wait(topic, value, partition=0)

    asyncio.run(write())


def read_with_librdkafka(connection: Connection, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(librdkafka_options(connection) | {"group.id": "unused", "enable.auto.commit": False})
    consumer.assign([ConfluentTopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(found) < count and time.monotonic() < deadline:
            for record in consumer.consume(count, timeout=0.5):
                assert record.error() is None, record.error()
                found.append(record.value())
    finally:
        consumer.close()
    return found


def read_with_kafka_python(connection: Connection, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(**python_options(connection))
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    found: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(found) < count and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=500).values():
                found += [record.value for record in records]
    finally:
        consumer.close()
    return found


def read_with_aiokafka(connection: Connection, topic: str, count: int) -> list[bytes]:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_S
        async with AIOKafkaConsumer(**python_options(connection)) as consumer:
            consumer.assign([AioTopicPartition(topic, 0)])
            await consumer.seek_to_beginning()
            while len(found) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [record.value for record in records]
        return found

    return asyncio.run(read())


def codec_or_none(codec: str) -> str | None:
    return None if codec == "none" else codec


WRITERS: dict[str, Write] = {
    "librdkafka": write_with_librdkafka,
    "kafka-python": write_with_kafka_python,
    "aiokafka": write_with_aiokafka,
}
READERS: dict[str, Read] = {
    "librdkafka": read_with_librdkafka,
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}
