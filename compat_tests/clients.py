"""The stock clients behind one shape: each writes messages, and each reads a topic from its beginning.

Nothing here knows a broker; groups and administration are used by the tests in the clients' own words.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from .waiting import DEADLINE_S

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int = 0
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """A message and the offset at which it was written or read."""

    message: Message
    offset: int


class NotAllRead(AssertionError):
    """The deadline passed; the text says how many were read."""


Writer = Callable[..., list[Stored]]
"""(bootstrap, topic, messages, codec=, acks=, idempotent=) -> where each message was stored; offset -1 for acks=0."""
Reader = Callable[..., list[Stored]]
"""(bootstrap, topic, partitions, count, isolation_level=) -> that many, by partition and offset."""


def write_with_kafka_python(
    bootstrap: str,
    topic: str,
    messages: Sequence[Message],
    *,
    codec: str = "none",
    acks: int | str = "all",
    idempotent: bool = False,
) -> list[Stored]:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks=acks,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
    )
    try:
        sent = [
            producer.send(
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
            )
            for message in messages
        ]
        producer.flush(DEADLINE_S)
        return [Stored(message, future.get(DEADLINE_S).offset) for message, future in zip(messages, sent, strict=True)]
    finally:
        producer.close()


def write_with_confluent(
    bootstrap: str,
    topic: str,
    messages: Sequence[Message],
    *,
    codec: str = "none",
    acks: int | str = "all",
    idempotent: bool = False,
) -> list[Stored]:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": idempotent,
        }
    )
    offsets: dict[int, int] = {}
    errors: list[Any] = []

    def delivered(number: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[number] = message.offset()

        return report

    for number, message in enumerate(messages):
        producer.produce(
            topic,
            value=message.value,
            key=message.key,
            headers=list(message.headers),
            partition=message.partition,
            timestamp=message.timestamp_ms,
            on_delivery=delivered(number),
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0, "not everything was delivered"
    assert not errors, errors[0]
    return [Stored(message, offsets[number]) for number, message in enumerate(messages)]


def write_with_aiokafka(
    bootstrap: str,
    topic: str,
    messages: Sequence[Message],
    *,
    codec: str = "none",
    acks: int | str = "all",
    idempotent: bool = False,
) -> list[Stored]:
    async def write() -> list[Stored]:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=message.partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            answers = await asyncio.gather(*sent)
        offsets = [-1 if answer is None else answer.offset for answer in answers]
        return [Stored(message, offset) for message, offset in zip(messages, offsets, strict=True)]

    return asyncio.run(write())


def produce(producer: Producer, topic: str, value: bytes, key: bytes, **options: Any) -> None:
    """As `Producer.produce`, which raises BufferError where librdkafka's queue is full: this waits for room."""
    while True:
        try:
            producer.produce(topic, value, key, **options)
            return
        except BufferError:
            producer.poll(0.1)


MEMBER_POLL_MS = 30_000
"""How long a poll() of a group's member waits where no records come, with kafka-python 3.0.12. One that ends between
SyncGroup's answer and what follows it loses the assignment: the member neither reads nor sends heartbeats any more.
"""


def poll_member(member: KafkaConsumer) -> list[bytes]:
    """The values of the next records."""
    return [record.value for records in member.poll(MEMBER_POLL_MS).values() for record in records]


def read_with_kafka_python(
    bootstrap: str, topic: str, partitions: int, count: int, *, isolation_level: str = "read_uncommitted"
) -> list[Stored]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation_level)
    assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer.assign(assigned)
    consumer.seek_to_beginning(*assigned)
    found: list[Stored] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(found) < count:
            _check_deadline(deadline, found, count)
            for records in consumer.poll(timeout_ms=500).values():
                found += [_stored(record) for record in records]
    finally:
        consumer.close()
    return _in_order(found)


def read_with_confluent(
    bootstrap: str, topic: str, partitions: int, count: int, *, isolation_level: str = "read_uncommitted"
) -> list[Stored]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation_level,
        }
    )
    consumer.assign([ConfluentTopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    found: list[Stored] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(found) < count:
            _check_deadline(deadline, found, count)
            for record in consumer.consume(1000, timeout=0.5):
                assert record.error() is None, record.error()
                headers = tuple((name, value) for name, value in record.headers() or [])
                message = Message(record.value(), record.key(), headers, record.timestamp()[1], record.partition())
                found.append(Stored(message, record.offset()))
    finally:
        consumer.close()
    return _in_order(found)


def read_with_aiokafka(
    bootstrap: str, topic: str, partitions: int, count: int, *, isolation_level: str = "read_uncommitted"
) -> list[Stored]:
    async def read() -> list[Stored]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation_level)
        found: list[Stored] = []
        deadline = time.monotonic() + DEADLINE_S
        async with consumer:
            assigned = [AioTopicPartition(topic, partition) for partition in range(partitions)]
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            while len(found) < count:
                _check_deadline(deadline, found, count)
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [_stored(record) for record in records]
        return _in_order(found)

    return asyncio.run(read())


WRITERS: Mapping[str, Writer] = {
    "kafka-python": write_with_kafka_python,
    "confluent-kafka": write_with_confluent,
    "aiokafka": write_with_aiokafka,
}
READERS: Mapping[str, Reader] = {
    "kafka-python": read_with_kafka_python,
    "confluent-kafka": read_with_confluent,
    "aiokafka": read_with_aiokafka,
}


def _stored(record: Any) -> Stored:
    headers = tuple((name, value) for name, value in record.headers)
    message = Message(record.value, record.key, headers, record.timestamp, record.partition)
    return Stored(message, record.offset)


def _in_order(found: Iterable[Stored]) -> list[Stored]:
    return sorted(found, key=lambda stored: (stored.message.partition, stored.offset))


def _check_deadline(deadline: float, found: Sequence[Stored], count: int) -> None:
    if time.monotonic() > deadline:
        raise NotAllRead(f"{len(found)} of {count} messages were read within {DEADLINE_S} s")
