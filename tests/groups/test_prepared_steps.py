"""Steps of large members that are computed beside the event loop, and what may happen meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from pykbroker.groups.common.context import Step
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.preparations import StepPreparation
from pykbroker.groups.consumer.reconciliation import Reconciliation
from pykbroker.groups.modern.preparations import is_large
from pykbroker.groups.share.heartbeats import ShareHeartbeats
from pykbroker.groups.share.preparations import PreparedShareStep, ShareStepPreparation
from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.groups.share.share_group_member import ShareGroupMember
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from pykbroker.server.coordinators import assignment_threads
from tests.examples import examples

from .consumer_requests import VERSION, assigned, consumer_beat
from .share_talk import ShareTalk
from .test_driver import GROUP, in_world
from .test_share_properties import ShareGroupsMachine
from .world import World

ALL = [0, 1, 2]


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment_threads, "SMALL", 0)


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[Reconciliation]:
    """The steps with partitions that were computed, but for those of preparations."""
    computed: list[Reconciliation] = []
    compute = Reconciliation.next
    prepare = StepPreparation.run
    prepared: list[StepPreparation] = []

    def counted(reconciliation: Reconciliation) -> Any:
        if not prepared and (reconciliation.target or reconciliation.member.assigned):
            computed.append(reconciliation)
        return compute(reconciliation)

    def preparing(preparation: StepPreparation) -> Any:
        prepared.append(preparation)
        try:
            return prepare(preparation)
        finally:
            prepared.clear()

    monkeypatch.setattr(Reconciliation, "next", counted)
    monkeypatch.setattr(StepPreparation, "run", preparing)
    return computed


class Member:
    def __init__(self, world: World, member_id: str) -> None:
        self.world = world
        self.member_id = member_id
        self.epoch = 0
        self.partitions: list[int] = []
        self.refused: Any = None

    async def beat(self, **said: Any) -> None:
        topics = ["events"] if self.epoch == 0 else None
        request = consumer_beat(GROUP, self.member_id, self.epoch, topics=topics, **said)
        answer: Any = await self.world.call(self.member_id, request, VERSION)
        if answer.error_code:
            self.refused = answer
            return
        self.epoch = answer.member_epoch
        told = assigned(answer)
        if told is not None:
            self.partitions = told.get(self.world.topic_ids["events"], [])

    async def until(self, partitions: list[int]) -> None:
        for _ in range(6):
            if self.partitions == partitions:
                return
            await self.beat(owned={self.world.topic_ids["events"]: self.partitions} if self.epoch else None)
            await self.world.sleep(1_100)
        assert self.partitions == partitions


def group_of(world: World) -> ConsumerGroup:
    shard = world.driver.shard(0)
    assert shard is not None
    group = shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


def meanwhile(world: World, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[None]]) -> list[int]:
    """Have that happen while a step is computed. Returns a list that has an entry for each that was."""
    run = world.driver._preparing.run
    computed: list[int] = []

    async def interrupted(function: Callable[..., Any], *args: Any) -> Any:
        result = await run(function, *args)
        computed.append(len(computed))
        await happens()
        return result

    monkeypatch.setattr(world.driver._preparing, "run", interrupted)
    return computed


def test_members_share_partitions_by_steps_that_are_computed_beside_the_loop(on_the_loop: list[Reconciliation]) -> None:
    async def main(world: World) -> None:
        anna, bert = Member(world, "anna"), Member(world, "bert")
        await anna.until(ALL)
        await bert.beat()
        await world.sleep(1_100)
        await anna.until([0, 1])
        await anna.beat(owned={world.topic_ids["events"]: [0, 1]})
        await bert.until([2])
        owners = [group_of(world).owner_of(world.topic_ids["events"], index) for index in ALL]
        assert owners == ["anna", "anna", "bert"]
        world.elect(0)
        await world.sleep(1_000)
        again = [group_of(world).owner_of(world.topic_ids["events"], index) for index in ALL]
        assert again == owners

    in_world(main)
    assert not on_the_loop


def test_a_group_that_changes_while_a_step_is_computed_has_it_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        anna = Member(world, "anna")
        await anna.beat()
        await world.sleep(1_100)
        times = iter(range(2))

        async def another_comes() -> None:
            for number in times:
                bert = Member(world, f"bert{number}")
                await bert.beat()
                await world.sleep(1_100)
                return

        computed = meanwhile(world, monkeypatch, another_comes)
        await anna.beat()
        assert len(computed) == 3
        assert anna.partitions == [0], "of the newest target assignment"

    in_world(main)


def test_a_member_whose_group_never_stands_still_hears_of_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        anna = Member(world, "anna")
        await anna.beat()
        await world.sleep(1_100)
        before = anna.epoch

        async def its_owners_change() -> None:
            group = group_of(world)
            group.ownership = type(group.ownership)()

        with monkeypatch.context() as patched:
            computed = meanwhile(world, patched, its_owners_change)
            await anna.beat()
            assert len(computed) == 3
            assert (anna.partitions, anna.epoch) == ([], before)
        await anna.until(ALL)

    in_world(main)


def test_a_member_whose_partitions_have_no_room_in_a_record_is_refused_and_nobody_loads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(world: World) -> None:
        anna = Member(world, "anna")
        await anna.beat()
        await world.sleep(1_100)
        shard = world.driver.shard(0)
        assert shard is not None
        monkeypatch.setattr(shard.consumer.classic_members._progress, "_max_record_bytes", 50)
        await anna.beat()
        assert anna.refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "partitions" in anna.refused.error_message
        assert world.driver.shard(0) is shard
        assert group_of(world).owner_of(world.topic_ids["events"], 0) is None

    in_world(main)


def test_who_loses_the_partition_while_a_step_is_computed_answers_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        anna = Member(world, "anna")
        await anna.beat()
        await world.sleep(1_100)

        async def it_is_led_elsewhere() -> None:
            if 0 in world.driver.active_partitions:
                world.resign(0)

        meanwhile(world, monkeypatch, it_is_led_elsewhere)
        await anna.beat()
        assert anna.refused.error_code == ErrorCode.NOT_COORDINATOR

    in_world(main)


def test_topics_cost_more_than_their_partitions() -> None:
    few = {bytes([number]): range(2) for number in range(10)}
    assert not is_large([few], 70)
    assert is_large([few], 69)
    assert is_large([{}, few, few], 139)
    assert not is_large([{}, few, few], 140)


# Share groups


def test_share_members_get_partitions_by_steps_that_are_computed_beside_the_loop() -> None:
    async def main(world: World) -> None:
        member_id, epoch, told = "a" * 22, 0, []
        for _ in range(5):
            request = ShareGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=member_id,
                member_epoch=epoch,
                subscribed_topic_names=["events"] if epoch == 0 else None,
            )
            answer: Any = await world.call("c", request, 1)
            assert answer.error_code == ErrorCode.NONE
            epoch = answer.member_epoch
            told += [] if answer.assignment is None else [answer.assignment.topic_partitions]
            await world.sleep(1_100)
        assert [(each.topic_id, each.partitions) for each in told[-1]] == [(world.topic_ids["events"], ALL)]
        shard = world.driver.shard(0)
        assert shard is not None
        member = shard.groups[GROUP].members[member_id]  # type: ignore[union-attr]
        assert (member.member_epoch, member.assigned) == (epoch, {world.topic_ids["events"]: frozenset(ALL)})
        world.elect(0)
        await world.sleep(1_000)
        assert world.driver.shard(0).groups[GROUP].members[member_id].assigned == member.assigned  # type: ignore[union-attr]

    prepared: list[ShareStepPreparation] = []
    run = ShareStepPreparation.run
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ShareStepPreparation, "run", lambda each: prepared.append(each) or run(each))
        in_world(main)
    assert prepared


def test_what_is_prepared_for_a_share_member_is_what_its_step_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[ShareGroupMember] = []
    reconcile = ShareHeartbeats._reconcile

    def comparing(
        heartbeats: ShareHeartbeats,
        group: ShareGroup,
        member: ShareGroupMember,
        prepared: PreparedShareStep | None,
        step: Step,
        **said: bool,
    ) -> ShareGroupMember:
        target = group.target_of(member.member_id)
        of_now = ShareStepPreparation(
            group=group,
            member=member,
            target=target,
            target_epoch=group.assignment_epoch,
            topics=heartbeats._topics,
            version=1,
        )
        computed, written = of_now.run(), len(step.records)
        current = reconcile(heartbeats, group, member, prepared, step, **said)
        if not said["has_subscription_changed"] or member.member_epoch != group.assignment_epoch:
            assert computed.applied_to(member) == current
            records = [] if computed.record is None else [computed.record.encode()]
            assert [each.encode() for each in step.records[written:]] == records
            assert computed.told.count == len(current.assigned)
            compared.append(current)
        return current

    monkeypatch.setattr(ShareHeartbeats, "_reconcile", comparing)
    run_state_machine_as_test(ShareGroupsMachine, settings=examples(50, stateful_step_count=30))  # type: ignore[no-untyped-call]
    talk = ShareTalk()
    talk.join("a")
    talk.initialize()
    talk.settle("a")
    assert any(each.assigned for each in compared)
