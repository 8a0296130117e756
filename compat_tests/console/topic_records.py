"""Topics and records for tests of the console, made with librdkafka as users' programs make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .console_broker import ConsoleBroker

Headers = Sequence[tuple[str, bytes | None]]


def make_topic(
    console: ConsoleBroker, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    topic = NewTopic(name, partitions, 1, config=dict(configs or {}))
    admin.create_topics([topic])[name].result(timeout=60)


def make_records(
    console: ConsoleBroker,
    topic: str,
    values: Iterable[bytes | str | None],
    *,
    partition: int = 0,
    key: bytes | None = None,
    headers: Headers = (),
    **properties: str,
) -> None:
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    producer = Producer({"bootstrap.servers": console.bootstrap, **settings})
    errors: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    for value in values:
        while True:
            try:
                producer.produce(
                    topic, value=value, key=key, partition=partition, headers=list(headers), on_delivery=on_delivery
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not errors


def make_transaction(console: ConsoleBroker, topic: str, values: Iterable[str], *, aborts: bool) -> None:
    producer = Producer({"bootstrap.servers": console.bootstrap, "transactional.id": f"of.{topic}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value, partition=0)
    producer.flush(60)
    if aborts:
        producer.abort_transaction(60)
    else:
        producer.commit_transaction(60)
