"""Offsets committed by an administrator, for what the console says of groups."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.waiting import until

CALL_TIMEOUT_S = 60
COMING_UP = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""What a coordinator answers that has not heard yet of its groups, or of a new topic."""


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """offsets: by partition. A coordinator that comes up refuses each partition, and librdkafka does not ask again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]

    def is_committed() -> bool:
        (asked,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)]).values()
        refused = {each.error.code() for each in asked.result(CALL_TIMEOUT_S).topic_partitions if each.error}
        assert refused <= COMING_UP, refused
        return not refused

    until(is_committed, f"the offsets of {group} are committed")
