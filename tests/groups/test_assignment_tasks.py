"""Target assignments that are computed beside the event loop, and what the group does meanwhile."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pykbroker.groups.common.config import ConsumerGroupConfig, GroupConfig
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.common.topics import FixedTopics
from pykbroker.groups.consumer.assignment_tasks import AssignmentTask
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_group_records import ConsumerGroupTargetAssignmentMetadataKey
from pykbroker.state_machine import CoordinatorContext, Token

from .consumer_requests import LEAVING, LEAVING_FOR_A_WHILE, assigned, consumer_beat, on_the_wire
from .late_assignments import LateAssignments, written

GROUP = "g"
PARTITIONS = 6
TOPIC = b"t" * 16
CONTEXT = CoordinatorContext(api_version=1)


class Talk:
    """A shard whose assignments are all large, and which is there as long as the test does not restart it."""

    def __init__(self, *, at_once: int = 0) -> None:
        self.late = LateAssignments()
        config = GroupConfig(consumer_assigned_at_once=at_once)
        of_group = ConsumerGroupConfig(assignment_interval_ms=0)
        topics = FixedTopics({"events": (TOPIC, PARTITIONS)})
        self.shard = GroupShard(config, Random(1), topics, lambda group_id: of_group, assignments=self.late)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.epochs: dict[str, int] = {}
        self._now_ms = 1_000

    def join(self, member_id: str, instance: str | None = None) -> dict[bytes, list[int]] | None:
        return self._ask(member_id, consumer_beat(GROUP, member_id, topics=["events"], instance=instance))

    def beat(self, member_id: str, *, owned: list[int] | None = None) -> dict[bytes, list[int]] | None:
        has = None if owned is None else {TOPIC: owned}
        return self._ask(member_id, consumer_beat(GROUP, member_id, self.epochs[member_id], owned=has))

    def leave(self, member_id: str, epoch: int = LEAVING, instance: str | None = None) -> None:
        self._ask(member_id, consumer_beat(GROUP, member_id, epoch, instance=instance))

    def _ask(self, member_id: str, request: Any) -> dict[bytes, list[int]] | None:
        self._now_ms += 1
        preparation = self.shard.preparation(request, CONTEXT.api_version)
        context = CONTEXT if preparation is None else replace(CONTEXT, prepared=preparation.run())
        result = self.shard.handle(request, Token(1), self._now_ms, context, self._now_ms)
        self.log += written(result)
        answer: Any = on_the_wire(result.completed[0].response, CONTEXT.api_version)
        assert answer.error_code == ErrorCode.NONE, answer
        self.epochs[member_id] = answer.member_epoch
        return assigned(answer)

    def put(self) -> list[Any]:
        """What is computed takes its place; the records that are left to be encoded then."""
        results = [self.shard.put_assignment(done, self._now_ms, self._now_ms) for done in self.late.done()]
        for result in results:
            self.log += written(result)
        return [record for result in results for record in result.records]

    def read_back(self) -> GroupShard:
        shard = GroupShard(self.shard.config, Random(2))
        for key, value in self.log:
            record = decode_record(key, value)
            shard.replay(record.key, record.value)
        return shard

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def targets(self) -> dict[str, set[int]]:
        """They are what the log says, too."""
        targets = _targets_in(self.shard)
        assert _targets_in(self.read_back()) == targets
        return targets


def _targets_in(shard: GroupShard) -> dict[str, set[int]]:
    group = shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return {member_id: set(target.get(TOPIC, ())) for member_id, target in group.target_assignment.items()}


def test_a_large_assignment_is_not_computed_in_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    with monkeypatch.context() as patched:
        patched.setattr(AssignmentTask, "run", lambda task: pytest.fail("it was computed on the event loop"))
        talk.join("a")
        talk.beat("a")
    assert talk.put()
    assert talk.beat("a", owned=[]) == {TOPIC: list(range(PARTITIONS))}


def test_the_records_of_a_large_assignment_are_encoded_in_its_thread() -> None:
    talk = Talk()
    for number in range(20):
        talk.join(f"m{number}")
    talk.put()
    talk.beat("m0")
    (of_epoch,) = talk.put()
    assert isinstance(of_epoch.key, ConsumerGroupTargetAssignmentMetadataKey)
    assert len(talk.targets) == 20


def test_one_up_to_the_bound_is_computed_at_once() -> None:
    talk = Talk(at_once=PARTITIONS + 1)
    assert talk.join("a") == {TOPIC: list(range(PARTITIONS))}
    talk.join("b")
    assert len(talk.late.tasks) == 1, "two members and the partitions are more than that"


def test_a_group_has_one_assignment_computed_at_a_time() -> None:
    talk = Talk()
    for member_id in "abc":
        talk.join(member_id)
    assert len(talk.late.tasks) == 1


def test_where_there_is_no_room_a_later_heartbeat_asks_again() -> None:
    talk = Talk()
    others, talk.late.tasks = talk.late.tasks, [None] * 3  # type: ignore[list-item]
    talk.join("a")
    talk.late.tasks = others
    talk.beat("a")
    assert talk.put()


def test_who_has_left_meanwhile_gets_nothing_and_who_has_come_gets_it_next_time() -> None:
    talk = Talk()
    talk.join("a")
    talk.join("b")
    talk.put()
    talk.beat("a")
    assert [sorted(task.members) for task in talk.late.tasks] == [["a", "b"]]
    talk.leave("b")
    talk.join("c")
    tombstone, of_epoch = talk.put()
    assert (tombstone.key.member_id, tombstone.value) == ("b", None)
    assert of_epoch.value.assignment_epoch == talk.group.assignment_epoch
    assert set(talk.targets) == {"a"}
    assert talk.group.assignment_epoch < talk.group.group_epoch
    talk.beat("a")
    talk.put()
    assert {member_id: len(target) for member_id, target in talk.targets.items()} == {"a": 3, "c": 3}
    assert talk.group.assignment_epoch == talk.group.group_epoch


def test_a_static_member_that_came_back_meanwhile_has_its_former_selfs_share() -> None:
    talk = Talk()
    talk.join("a", "i")
    talk.put()
    talk.join("b")
    talk.leave("a", LEAVING_FOR_A_WHILE, "i")
    talk.join("again", "i")
    talk.put()
    assert {member_id: len(target) for member_id, target in talk.targets.items()} == {"again": 3, "b": 3}
    assert not talk.targets["again"] & talk.targets["b"]


def test_another_group_of_the_same_id_takes_nothing_of_the_one_before() -> None:
    talk = Talk()
    talk.join("a")
    (task,) = talk.late.tasks
    talk.leave("a")
    del talk.shard.groups[GROUP]
    talk.join("a")
    assert len(talk.late.tasks) == 2, "the new group waits for one of its own"
    talk.late.tasks = [task]
    assert talk.put() == []
    assert talk.group.target_assignment == {}


def test_another_group_that_found_no_room_takes_nothing_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own assignment could not be asked for: what comes is still that of the group that is gone."""
    talk = Talk()
    talk.join("a")
    (of_before,) = talk.late.tasks
    talk.leave("a")
    del talk.shard.groups[GROUP]
    with monkeypatch.context() as patched:
        patched.setattr(LateAssignments, "has_room", False)
        talk.join("a")
    assert talk.late.tasks == [of_before]
    epoch = talk.group.assignment_epoch
    assert talk.put() == []
    assert (talk.group.assignment_epoch, talk.group.target_assignment) == (epoch, {})


def test_a_group_in_a_step_that_did_not_happen_gets_no_assignment() -> None:
    talk = Talk()
    talk.shard.begin_trial()
    talk.join("a")
    talk.shard.end_trial(is_kept=False)
    talk.join("b")
    assert [sorted(task.members) for task in talk.late.tasks] == [["a"], ["b"]]
    talk.put()
    assert set(talk.targets) == {"b"}


def test_an_assignment_that_was_refused_takes_its_place_later() -> None:
    talk = Talk()
    talk.join("a")
    (computed,) = talk.late.done()
    talk.shard.begin_trial()
    talk.shard.put_assignment(computed, 0, 0)
    talk.shard.end_trial(is_kept=False)
    assert talk.targets == {}
    talk.log += written(talk.shard.put_assignment(computed, 0, 0))
    assert talk.targets == {"a": set(range(PARTITIONS))}


def test_another_shard_takes_nothing_that_it_did_not_ask_for() -> None:
    talk, other = Talk(), Talk()
    talk.join("a")
    other.join("a")
    (computed,) = talk.late.done()
    assert not other.shard.put_assignment(computed, 0, 0).records
