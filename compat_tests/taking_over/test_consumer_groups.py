"""A consumer group (KIP-848) goes on while pykbroker and Apache Kafka take its directory over from each other.

Its members notice nothing but the pause: the same epochs, the same partitions, and no rebalance.
"""

from pathlib import Path
from typing import Any

import pytest

from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.hostile.scene import code
from compat_tests.topics import create_topic
from compat_tests.wire import Wire
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

from .inventory import wait_for_coordinator

pytestmark = pytest.mark.java

PROPERTIES = {
    "node.id": "1",
    "offsets.topic.num.partitions": "2",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}
GROUP, TOPIC = "handed-over", "shared"
PARTITIONS = 6


class Member:
    """What a consumer knows of itself; it outlives brokers."""

    def __init__(self, member_id: str, instance_id: str | None = None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.topic_id = b""
        self.partitions: list[int] = []

    def beat(self, wire: Wire, epoch: int | None = None) -> Any:
        """A heartbeat that says everything, as after a reconnection; the answer is heeded."""
        owned = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self.topic_id, partitions=self.partitions)]
        is_joining = not (self.epoch if epoch is None else epoch)
        answer: Any = wire.call(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                instance_id=self.instance_id,
                member_epoch=self.epoch if epoch is None else epoch,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=owned if self.partitions and not is_joining else [],
            ),
            1,
        )
        assert code(answer.error_code) == "NONE", answer
        self.epoch = answer.member_epoch
        for topic in answer.assignment.topic_partitions if answer.assignment is not None else ():
            self.topic_id, self.partitions = topic.topic_id, topic.partitions
        return answer

    def commit(self, wire: Wire, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=self.partitions[0], committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=self.member_id,
            generation_id_or_member_epoch=self.epoch,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        answer: Any = wire.call(request, 9)
        (topic,) = answer.topics
        assert code(topic.partitions[0].error_code) == "NONE", topic


def described(wire: Wire) -> Any:
    answer: Any = wire.call(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1)
    (group,) = answer.groups
    assert code(group.error_code) == "NONE", group
    group.members.sort(key=lambda member: member.member_id)
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            assignment.topic_partitions.sort(key=lambda topic: topic.topic_id)
    return group


def pykbroker(directory: Path, number: int) -> BrokerProcess:
    return Pykbroker(directory / f"pykbroker-{number}", PROPERTIES | {"log.dirs": str(directory / "data")})


def apache_kafka(directory: Path, number: int) -> BrokerProcess:
    properties = PROPERTIES | {"log.dirs": str(directory / "data")}
    return ApacheKafka(directory / f"kafka-{number}", properties, is_formatted=number > 0)


@pytest.mark.parametrize(
    "order", [(apache_kafka, pykbroker, apache_kafka), (pykbroker, apache_kafka, pykbroker)], ids=["kafka", "ours"]
)
def test_a_consumer_group_changes_hands(tmp_path: Path, order: Any, request: pytest.FixtureRequest) -> None:
    first, second, third = Member("first"), Member("second", "static"), Member("third", "static")
    seen = None
    for turn, make in enumerate(order):
        broker = make(tmp_path, turn)
        watch_log(request.node, broker)
        broker.start()
        try:
            with Wire(broker.address) as wire:
                wait_for_coordinator(wire, GROUP)
                if turn == 0:
                    create_topic(broker, TOPIC, PARTITIONS)
                    settle(wire, first, second)
                else:
                    assert described(wire) == seen
                    epochs = first.epoch, second.epoch
                    first.beat(wire)
                    second.beat(wire)
                    assert (first.epoch, second.epoch) == epochs, "nobody has to rebalance"
                    assert described(wire) == seen
                if turn == 1:
                    second.beat(wire, epoch=-2)
                    third.partitions, second = [], third
                    second.beat(wire)
                    assert len(second.partitions) == PARTITIONS // 2, "the place of a static member is kept"
                first.commit(wire, 10 * turn + 1)
                seen = described(wire)
        finally:
            broker.stop()
        assert_all_went_well(broker)
    assert seen is not None
    assert seen.group_state == "Stable"


def settle(wire: Wire, *members: Member) -> None:
    for _ in range(4):
        for member in members:
            member.beat(wire)
    assert [len(member.partitions) for member in members] == [PARTITIONS // len(members)] * len(members)
