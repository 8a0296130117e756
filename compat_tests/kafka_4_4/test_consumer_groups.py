"""Consumer groups by the rules of Kafka 4.4: another assignor begins an epoch, and a full group lets static members
come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.topics import create_topic
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, JoinGroupRequest, JoinGroupRequestProtocol

from .asking import call
from .conftest import FreshNode

PROPERTIES: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
GROUP, TOPIC = "readers", "books"
PASSING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
LEAVES, LEAVES_FOR_A_WHILE = -1, -2


class Member:
    """A member of the group, by the consumer protocol."""

    def __init__(self, node: BrokerProcess, member_id: str, instance_id: str | None = None) -> None:
        self._node = node
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []

    def joins(self, **fields: Any) -> tuple[str, int]:
        subscription = {"subscribed_topic_names": [TOPIC], "topic_partitions": [], "rebalance_timeout_ms": 60_000}
        return self._told(self._beat(0, **subscription, **fields))

    def beats(self, **fields: Any) -> tuple[str, int]:
        return self._told(self._beat(self.epoch, topic_partitions=self.owned, **fields))

    def leaves(self, epoch: int = LEAVES) -> str:
        return ErrorCode(self._beat(epoch).error_code).name

    def _told(self, answer: Any) -> tuple[str, int]:
        """Return the error and the epoch that it is told."""
        if not answer.error_code:
            self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in answer.assignment.topic_partitions
            ]
        return ErrorCode(answer.error_code).name, answer.member_epoch

    def _beat(self, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, instance_id=self.instance_id, member_epoch=epoch, **fields
        )
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            answer = call(self._node.address, request, 1)
            return answer.error_code not in PASSING

        until(is_answered, "an answer to ConsumerGroupHeartbeat")
        return answer


def new_members(
    fresh_node: FreshNode, *members: tuple[str, str | None], partitions: int, most_members: int = 3
) -> Sequence[Member]:
    node = fresh_node(PROPERTIES | {"group.consumer.max.size": f"{most_members}"})
    create_topic(node, TOPIC, partitions)
    finding = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    until(lambda: not call(node.address, finding, 6).coordinators[0].error_code, "the group has a coordinator")
    return [Member(node, *each) for each in members]


def test_another_assignor_begins_an_epoch(fresh_node: FreshNode, answers: TestAnswers) -> None:
    one, other, third = new_members(
        fresh_node,
        ("one-member-of-readers1", None),
        ("another-of-readers-123", None),
        ("third-of-the-readers-1", None),
        partitions=3,
    )
    answers.same("joins", one.joins())
    until(lambda: one.beats()[0] == "NONE" and [len(each.partitions) for each in one.owned] == [3], "all is assigned")
    before = one.epoch
    answers.same("asks for the default", one.beats(server_assignor="uniform")[1] - before)
    answers.same("asks for another", one.beats(server_assignor="range")[1] - before)
    answers.same("asks for it once more", one.beats(server_assignor="range")[1] - before)
    answers.same("says nothing of it", one.beats()[1] - before)
    answers.same("joins without a wish", other.joins()[1] - before)
    until(lambda: one.beats()[1] == other.beats()[1], "both are in one epoch")
    answers.same("the vote of one more", other.beats(server_assignor="range")[1] - before)
    answers.same("joins with a wish", third.joins(server_assignor="range")[1] - before)
    until(lambda: one.beats()[1] == other.beats()[1] == third.beats()[1], "all are in one epoch")
    answers.same("one of three asks for another", one.beats(server_assignor="uniform")[1] - before)
    answers.same("two of three do", other.beats(server_assignor="uniform")[1] - before)
    answers.same("the others hear of it", one.beats()[1] - before)


def test_a_full_group_lets_a_static_member_come_back(fresh_node: FreshNode, answers: TestAnswers) -> None:
    static, other, third = new_members(
        fresh_node,
        ("static-member-of-books", "instance"),
        ("another-of-readers-123", None),
        ("third-of-the-readers-1", None),
        partitions=2,
        most_members=2,
    )
    answers.same("static", static.joins()[0])
    answers.same("other", other.joins()[0])
    answers.same("third", third.joins()[0])
    answers.same("leaves for a while", static.leaves(LEAVES_FOR_A_WHILE))
    answers.same("third, while it is away", third.joins()[0])
    back = Member(static._node, "static-member-is-back-1", "instance")
    answers.same("comes back", back.joins()[0])
    answers.same("third, when it is back", third.joins()[0])
    answers.same("leaves for a while again", back.leaves(LEAVES_FOR_A_WHILE))
    answers.same("comes back by the classic protocol", _joins_by_the_classic_protocol(static._node, "instance"))


def _joins_by_the_classic_protocol(node: BrokerProcess, instance_id: str) -> str:
    subscription = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x05books" + b"\xff\xff\xff\xff"
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
    )
    with Wire(node.address) as wire:
        answer = wire.call(request, 9)
    return ErrorCode(answer.error_code).name  # type: ignore[attr-defined]
