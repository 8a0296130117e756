"""TxnOffsetCommit 6, which has topic ids (KIP-1319), and DeleteGroups 3, which has messages."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.transacting import RawProducer
from compat_tests.waiting import until
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.messages.transactions import (
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from .asking import call
from .conftest import FreshNode

UNKNOWN_ID = b"\xe5" * 16
GROUP, SIMPLE_GROUP = "readers", "simple"
MEMBER = "a-member-of-readers-12"
PASSING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
PASSING_IN_TRANSACTIONS = (*PASSING, ErrorCode.CONCURRENT_TRANSACTIONS)


class Scene:
    """A topic of two partitions, and a group of the consumer protocol with one member."""

    def __init__(self, node: BrokerProcess) -> None:
        self.node = node
        wanted = CreatableTopic(name="books", num_partitions=2, replication_factor=1)
        (made,) = call(node.address, CreateTopicsRequest(topics=[wanted]), 7).topics
        assert not made.error_code
        self.topic_id = bytes(made.topic_id)
        self.member_epoch = 0
        self._owned = 0
        until(self._has_coordinator, "a group coordinator")
        until(self._has_joined, "the member has joined")

    def _has_coordinator(self) -> bool:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        return not call(self.node.address, request, 6).coordinators[0].error_code

    def _has_joined(self) -> bool:
        joining = {"subscribed_topic_names": ["books"], "topic_partitions": [], "rebalance_timeout_ms": 60_000}
        answer = self.beat(self.member_epoch, **({} if self.member_epoch else joining))
        if answer.error_code in PASSING:
            return False
        assert not answer.error_code, answer
        self.member_epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = sum(len(each.partitions) for each in answer.assignment.topic_partitions)
        return self._owned == 2

    def beat(self, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=MEMBER, member_epoch=epoch, **fields)
        return call(self.node.address, request, 1)


class Producer(RawProducer):
    def commit(
        self, topic_id: bytes, *, group: str = SIMPLE_GROUP, epoch: int = -1, member: str = "", index: int = 0
    ) -> list[tuple[str, str, int, str]]:
        """For each partition of the answer the topic's name and id, the partition, and the error."""
        partition = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="m")
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            topics=[TxnOffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])],
        )
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            answer = self.call(request, 6)
            codes = {each.error_code for topic in answer.topics for each in topic.partitions}
            return not codes & set(PASSING_IN_TRANSACTIONS)

        until(is_answered, "an answer to TxnOffsetCommit")
        ids = {topic_id: "as asked"}
        return [
            (
                topic.name,
                ids.get(bytes(topic.topic_id), "another"),
                each.partition_index,
                ErrorCode(each.error_code).name,
            )
            for topic in answer.topics
            for each in topic.partitions
        ]

    def end(self) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        answer = self.call(request, 5)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code)


def committed(node: BrokerProcess, group: str) -> list[tuple[int, int]]:
    """The committed offset of partition 0, and the error."""
    topics = [OffsetFetchRequestTopics(name="books", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True)
    (found,) = call(node.address, request, 9).groups
    return [(each.committed_offset, each.error_code) for topic in found.topics for each in topic.partitions]


def test_offsets_are_committed_in_transactions_by_topic_id(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node()
    scene = Scene(node)
    producer = Producer(node, "a-copy", "books")
    assert producer.init() is ErrorCode.NONE
    books, epoch = scene.topic_id, scene.member_epoch
    answers.same("by nobody", producer.commit(books))
    answers.same("a topic that is not there", producer.commit(UNKNOWN_ID))
    answers.same("no topic", producer.commit(bytes(16)))
    answers.same("a partition that is not there", producer.commit(books, index=2))
    answers.same("a group that is not there", producer.commit(books, group="nobody", epoch=1, member="m"))
    answers.same("by the member", producer.commit(books, group=GROUP, epoch=epoch, member=MEMBER))
    answers.same("by a stranger", producer.commit(books, group=GROUP, epoch=epoch, member="stranger"))
    answers.same("of an epoch to come", producer.commit(books, group=GROUP, epoch=epoch + 1, member=MEMBER))
    answers.same("of an epoch before", producer.commit(books, group=GROUP, epoch=epoch - 1, member=MEMBER))
    answers.same("end", producer.end())
    for group in (GROUP, SIMPLE_GROUP):
        until(lambda of=group: committed(node, of) == [(7, 0)], f"the offset of {group} is committed")
    producer.close()


@pytest.mark.parametrize("version", [2, 3])
def test_groups_are_deleted(fresh_node: FreshNode, answers: TestAnswers, version: int) -> None:
    node = fresh_node()
    Scene(node)
    producer = Producer(node, "a-copy", "books")
    producer.init()
    producer.close()

    def deleted(group: str) -> tuple[str, str | None]:
        (result,) = call(node.address, DeleteGroupsRequest(groups_names=[group]), version).results
        return ErrorCode(result.error_code).name, result.error_message

    answers.same("a group with a member", deleted(GROUP))
    answers.same("a group that is not there", deleted("nobody"))
    answers.same("a group without a name", deleted(""))
