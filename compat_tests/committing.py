"""Offsets that a consumer commits who is not a member of its group."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .waiting import until

_STARTING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


def commit_offsets(bootstrap: str, group: str, offsets: Sequence[TopicPartition]) -> None:
    """Raises KafkaException."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        until(lambda: _are_committed(consumer, offsets), "the coordinator takes the offsets")
    finally:
        consumer.close()


def _are_committed(consumer: Consumer, offsets: Sequence[TopicPartition]) -> bool:
    """Apache Kafka names a coordinator a moment before that serves the group; librdkafka then gives up at once."""
    try:
        answered = consumer.commit(offsets=list(offsets), asynchronous=False)
    except KafkaException as refused:
        if refused.args[0].code() in _STARTING:
            return False
        raise
    assert answered is not None
    errors = [each.error for each in answered if each.error is not None]
    assert not errors, errors
    return True
