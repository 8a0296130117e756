"""Offsets committed by an administrator, for what the console says of groups."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.waiting import until

CALL_TIMEOUT_S = 60


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """offsets: by partition. A coordinator that comes up refuses each partition, and librdkafka does not ask again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]

    def is_committed() -> bool:
        (asked,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)]).values()
        return all(each.error is None for each in asked.result(CALL_TIMEOUT_S).topic_partitions)

    until(is_committed, f"the offsets of {group} are committed")
