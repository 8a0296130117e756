"""A partition of a topic, as every layer names it."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Kafka's `org.apache.kafka.common.TopicPartition`; its text is `topic-0`, as in logs and directory names."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
