"""Offsets in transactions under way: unstable to whoever asks for stable ones, and gone with what is deleted."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

from .brokers import Broker
from .committing import commit_offsets
from .topics import create_topic
from .waiting import DEADLINE_S, until
from .wire import Wire

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"


@dataclass
class Committing:
    """A group without members, and producers that commit offsets for it."""

    broker: Broker
    topic: str
    group_id: str

    def producer(self, number: int) -> Producer:
        transactional_id = f"{self.group_id}-{number}"
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "transactional.id": transactional_id})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        return producer

    def send(self, producer: Producer, offset: int, partition: int = 0) -> None:
        """In the name of a consumer that is no member."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": self.group_id})
        offsets = [TopicPartition(self.topic, partition, offset)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), DEADLINE_S)
        consumer.close()

    def commit(self, offset: int) -> None:
        """Without a transaction."""
        commit_offsets(self.broker.bootstrap, self.group_id, [TopicPartition(self.topic, 0, offset)])

    def fetch(self, *, stable: bool = True) -> list[int | str]:
        """Of both partitions the offset, or the error that stands for it."""
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0, 1])]
        asked = [OffsetFetchRequestGroup(group_id=self.group_id, topics=topics)]
        with Wire(self.broker.address) as wire:
            answer = wire.call(OffsetFetchRequest(groups=asked, require_stable=stable), 9)
        assert isinstance(answer, OffsetFetchResponse)
        (topic,) = answer.groups[0].topics
        return [
            ErrorCode(each.error_code).name if each.error_code else each.committed_offset for each in topic.partitions
        ]

    def delete_offset(self) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=0)]
        topics = [OffsetDeleteRequestTopic(name=self.topic, partitions=partitions)]
        with Wire(self.broker.address) as wire:
            answer = wire.call(OffsetDeleteRequest(group_id=self.group_id, topics=topics), 0)
        assert isinstance(answer, OffsetDeleteResponse)
        assert answer.error_code == ErrorCode.NONE
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.fixture
def committing(broker: Broker, topic: str, unique: Callable[[str], str]) -> Committing:
    create_topic(broker, topic, 2)
    return Committing(broker, topic, unique("group"))


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_offset_is_unstable_until_its_transaction_ends(committing: Committing, is_commit: bool) -> None:
    producer = committing.producer(1)
    committing.send(producer, 5)
    assert committing.fetch() == [UNSTABLE, -1]
    assert committing.fetch(stable=False) == [-1, -1]
    (producer.commit_transaction if is_commit else producer.abort_transaction)(DEADLINE_S)
    until(lambda: committing.fetch() == [5 if is_commit else -1, -1], "the transaction has ended")


def test_what_was_committed_last_counts_whichever_transaction_ends_first(committing: Committing) -> None:
    first, second = committing.producer(1), committing.producer(2)
    committing.send(first, 5)
    committing.send(first, 6, partition=1)
    committing.send(second, 7)
    second.commit_transaction(DEADLINE_S)
    until(lambda: committing.fetch(stable=False) == [7, -1], "the second transaction has ended")
    assert committing.fetch() == [UNSTABLE, UNSTABLE]
    committing.commit(9)
    first.commit_transaction(DEADLINE_S)
    until(lambda: committing.fetch() == [9, 6], "the first transaction has ended")


def test_a_deleted_offset_takes_the_pending_one_along(committing: Committing) -> None:
    producer = committing.producer(1)
    committing.send(producer, 5)
    committing.send(producer, 6, partition=1)
    committing.delete_offset()
    assert committing.fetch() == [-1, UNSTABLE]
    producer.commit_transaction(DEADLINE_S)
    until(lambda: committing.fetch() == [-1, 6], "the transaction has ended")


def test_a_deleted_group_takes_its_pending_offsets_along(committing: Committing) -> None:
    committing.commit(1)
    producer = committing.producer(1)
    committing.send(producer, 5)
    admin = AdminClient({"bootstrap.servers": committing.broker.bootstrap})
    for future in admin.delete_consumer_groups([committing.group_id]).values():
        future.result(DEADLINE_S)
    assert committing.fetch() == [-1, -1]
    producer.commit_transaction(DEADLINE_S)
    producer.begin_transaction()
    committing.send(producer, 6, partition=1)
    producer.commit_transaction(DEADLINE_S)
    until(lambda: committing.fetch() == [-1, 6], "only what came after the deletion is there")
