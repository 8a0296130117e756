"""A stock client as a program, for networks that a test is not in: one record there and back.

python -m compat_tests.container.client HOST:PORT TOPIC [PROPERTY=VALUE]...
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, Producer

from compat_tests.waiting import DEADLINE_S


def there_and_back(bootstrap: str, topic: str, **properties: str) -> None:
    """Write a record and read it. Raises AssertionError."""
    common = {"bootstrap.servers": bootstrap, **properties}
    failures: list[object] = []
    producer = Producer(common)
    producer.produce(topic, b"value", b"key", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert failures == [None]
    consumer = Consumer({**common, "group.id": "client", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None, message.error()
        assert (message.key(), message.value()) == (b"key", b"value")
    finally:
        consumer.close()


if __name__ == "__main__":
    there_and_back(sys.argv[1], sys.argv[2], **dict(each.split("=", 1) for each in sys.argv[3:]))
