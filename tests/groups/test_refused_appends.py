"""The log takes no records: too few replicas are in sync, the disk is full. What is refused did not happen, what needs
no record goes on, other partitions are served, and no log is read again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from pykbroker.java_hash import abs_java_hash
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest
from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.coordinator_loading import CoordinatorLoading
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.state_machine import CoordinatorContext

from .scenarios import beat, commit, fetch, join, leave, sync
from .world import World, run_simulated

PARTITIONS = 3
GROUPS = {abs_java_hash(name) % PARTITIONS: name for name in ("g0", "g1", "g2")}
"""By the partition that each is in."""
CONFIG = {"offsets.topic.num.partitions": str(PARTITIONS), "group.initial.rebalance.delay.ms": "100"}
GROUP, NEIGHBOUR = GROUPS[0], "g5"
"""The neighbour's records are in the same partition; nobody is a member of it."""
OTHERS = (1, 2)


class Loads:
    """count: how often a log was read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        load = CoordinatorLoading.load

        async def counted(loading: Any, led: Any, replayer: Any) -> bool:
            self.count += 1
            return await load(loading, led, replayer)

        monkeypatch.setattr(CoordinatorLoading, "load", counted)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(monkeypatch)


def in_world(main: Callable[[World], Awaitable[None]], **settings: str) -> World:
    world = World({**CONFIG, **settings})

    async def run() -> None:
        world.create_topic("events", 3)
        world.create_topic(CONSUMER_OFFSETS, PARTITIONS)
        async with world.running():
            await world.sleep(100)
            await main(world)

    run_simulated(run)
    return world


def lose_replicas(partition: Partition) -> None:
    """Two have to be in sync, and this node is alone."""
    partition.replicas = (1, 2)
    partition.log.update_config(replace(partition.log.config, min_insync_replicas=2))
    assert partition.is_under_min_isr


def find_replicas(partition: Partition) -> None:
    partition.log.update_config(replace(partition.log.config, min_insync_replicas=1))
    partition.notify()


async def code_of_commit(world: World, group: str, offset: int = 5) -> ErrorCode:
    answer: Any = await world.call("c", commit(group, {"events": {0: (offset, "")}}), 9)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(world: World, group: str) -> int:
    answer: Any = await world.call("c", fetch(9, [group], {"events": [0]}, {}), 9)
    assert answer.groups[0].error_code == ErrorCode.NONE
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


async def stable(world: World, group: str = GROUP) -> str:
    answer: Any = await world.call("a", join(group), 3)
    await world.call("a", sync(group, 1, answer.member_id, {answer.member_id: b"x"}), 3)
    member_id: str = answer.member_id
    return member_id


def test_a_rebalance_goes_on_while_appends_elsewhere_are_refused(loads: Loads) -> None:
    """Three clients that try again and again kept all timers of the node from running."""

    async def main(world: World) -> None:
        for index in OTHERS:
            for number in range(30):
                await code_of_commit(world, GROUPS[index], number)
            lose_replicas(world.partitions[index])
        loads.count = 0

        async def commit_again_and_again(group: str) -> None:
            while True:
                assert await code_of_commit(world, group) is ErrorCode.COORDINATOR_NOT_AVAILABLE
                await world.sleep(10)

        async with trio.open_nursery() as nursery:
            for index in OTHERS:
                nursery.start_soon(commit_again_and_again, GROUPS[index])
            await world.sleep(1000)
            started = trio.current_time()
            answer: Any = await world.call("m", join(GROUP), 3)
            assert answer.error_code == ErrorCode.NONE
            assert trio.current_time() - started == pytest.approx(0.1, abs=0.05)
            nursery.cancel_scope.cancel()
        assert loads.count == 0

    in_world(main)


def test_what_needs_no_record_is_answered_without_the_replicas(loads: Loads) -> None:
    async def main(world: World) -> None:
        assert abs_java_hash(NEIGHBOUR) % PARTITIONS == abs_java_hash(GROUP) % PARTITIONS
        member_id = await stable(world)
        loads.count = 0
        lose_replicas(world.partitions[0])
        for _ in range(10):
            answer: Any = await world.call("a", beat(GROUP, 1, member_id), 4)
            assert answer.error_code == ErrorCode.NONE
            assert await code_of_commit(world, NEIGHBOUR) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await committed(world, NEIGHBOUR) == -1
        answer = await world.call("a", DescribeGroupsRequest(groups=[GROUP]), 5)
        assert (answer.groups[0].group_state, len(answer.groups[0].members)) == ("Stable", 1)
        assert loads.count == 0

    in_world(main)


def test_a_member_whose_leaving_was_refused_is_still_there() -> None:
    async def main(world: World) -> None:
        member_id = await stable(world)
        lose_replicas(world.partitions[0])
        answer: Any = await world.call("a", leave(GROUP, (member_id, None)), 4)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        find_replicas(world.partitions[0])
        answer = await world.call("a", beat(GROUP, 1, member_id), 4)
        assert answer.error_code == ErrorCode.NONE
        answer = await world.call("a", leave(GROUP, (member_id, None)), 4)
        assert answer.error_code == ErrorCode.NONE

    in_world(main)


def test_followers_get_their_assignment_when_the_leader_comes_again() -> None:
    """Its first SyncGroup is refused; theirs wait."""

    async def main(world: World) -> None:
        joins = {name: world.start(name, join(GROUP), 3) for name in ("a", "b")}
        answers: dict[str, Any] = {name: await parked for name, parked in joins.items()}
        ids = {name: answer.member_id for name, answer in answers.items()}
        leader = next(name for name, answer in answers.items() if answer.leader == answer.member_id)
        (follower,) = ids.keys() - {leader}
        lose_replicas(world.partitions[0])
        waiting = world.start(follower, sync(GROUP, 1, ids[follower]), 3)
        assignments = {member_id: member_id.encode() for member_id in ids.values()}
        answer: Any = await world.call(leader, sync(GROUP, 1, ids[leader], assignments), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        find_replicas(world.partitions[0])
        answer = await world.call(leader, sync(GROUP, 1, ids[leader], assignments), 3)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, ids[leader].encode())
        answer = await waiting
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, ids[follower].encode())

    in_world(main)


def test_sessions_end_when_the_replicas_are_back() -> None:
    async def main(world: World) -> None:
        await stable(world)
        lose_replicas(world.partitions[0])
        await world.sleep(60_000)
        shard = world.driver.shard(0)
        assert shard is not None
        assert shard.groups[GROUP].members, "the end of a session could not be written down"
        find_replicas(world.partitions[0])
        await world.sleep(1)
        assert not shard.groups[GROUP].members

    world = in_world(main)
    assert len(world.records()) == 3, "created, stable, empty"


def test_a_topic_that_is_deleted_without_the_replicas_takes_its_offsets_along_later() -> None:
    async def main(world: World) -> None:
        answer: Any = await world.call("c", commit(GROUP, {"events": {0: (5, "")}}), 9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        lose_replicas(world.partitions[0])
        world.delete_topic("events")
        world.create_topic("events", 3)
        assert await committed(world, GROUP) == 5
        find_replicas(world.partitions[0])
        await world.sleep(1)
        assert await committed(world, GROUP) == -1

    in_world(main)


def test_what_nobody_waits_to_hear_of_happens_when_the_replicas_are_back(loads: Loads) -> None:
    """As with markers that are written: nobody says it a second time."""

    async def main(world: World) -> None:
        loads.count = 0
        lose_replicas(world.partitions[0])
        led = world.driver._shards[0]
        for offset in (7, 8):
            request = commit(GROUP, {"events": {0: (offset, "")}})
            world.driver.tell(led, request, CoordinatorContext(api_version=9))
        await world.sleep(60_000)
        assert await committed(world, GROUP) == -1
        find_replicas(world.partitions[0])
        await world.sleep(1)
        assert await committed(world, GROUP) == 8
        assert (len(world.records()), loads.count) == (2, 0)

    in_world(main)


@pytest.mark.parametrize(
    "failure", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_an_append_that_fails_for_ever_has_the_log_read_once(failure: ErrorCode, loads: Loads) -> None:
    """Nobody expects the first time; sessions that end, and who asks, only try."""

    async def main(world: World) -> None:
        await stable(world)
        loads.count = 0
        world.replicas.failure = failure
        for _ in range(100):
            assert await code_of_commit(world, NEIGHBOUR) is not ErrorCode.NONE
            await world.sleep(200)
        assert loads.count == 1
        shard = world.driver.shard(0)
        assert shard is not None
        assert shard.groups[GROUP].members
        world.replicas.failure = None
        await world.sleep(10_000)
        assert not shard.groups[GROUP].members, "its session was over long ago"
        assert await code_of_commit(world, GROUP) is ErrorCode.NONE
        assert loads.count == 1

    in_world(main)


def test_a_step_that_does_not_fit_leaves_nothing_in_the_log() -> None:
    """The second of its batches is too large; the first one is not written either."""

    async def main(world: World) -> None:
        world.create_topic("many", 31)
        partition = world.partitions[0]
        end_offset = partition.log.log_end_offset
        partition.log.update_config(replace(partition.log.config, max_message_bytes=2_000))
        offsets = {index: (index, "x" * (100 if index < 30 else 3000)) for index in range(31)}
        answer: Any = await world.call("c", commit(GROUP, {"many": offsets}), 9)
        assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert partition.log.log_end_offset == end_offset
        assert await world.driver.wait_until_active(0)
        assert await committed(world, GROUP) == -1

    in_world(main)


def test_a_log_that_cannot_be_read_keeps_no_other_from_being_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        disk_is_back = trio.Event()
        run = world.threads.run
        stuck: list[Any] = []

        async def stick_at_first(fn: Any, *args: Any) -> Any:
            if not stuck:
                stuck.append(fn)
                await disk_is_back.wait()
            return await run(fn, *args)

        for index in range(PARTITIONS):
            assert await code_of_commit(world, GROUPS[index]) is ErrorCode.NONE
        monkeypatch.setattr(world.threads, "run", stick_at_first)
        world.elect(1)
        await trio.testing.wait_all_tasks_blocked()
        for index in (0, 2):
            world.elect(index)
        with trio.fail_after(5):
            for index in (0, 2):
                assert await world.driver.wait_until_active(index)
        assert world.driver.loading_partitions == [1]
        world.resign(1)
        assert not await world.driver.wait_until_active(1)
        world.elect(1)
        assert await world.driver.wait_until_active(1)
        disk_is_back.set()
        await world.sleep(100)
        assert await committed(world, GROUPS[1]) == 5

    in_world(main)


def test_records_may_be_deleted_while_a_log_is_read() -> None:
    async def main(world: World) -> None:
        for number in range(40):
            offsets = dict.fromkeys(range(10), (number, "x" * 3000))
            await world.call("c", commit(GROUP, {"events": offsets}), 9)
        log = world.partitions[0].log
        world.elect(0)
        await trio.testing.wait_all_tasks_blocked()
        log.increment_log_start_offset(log.log_end_offset - 1)
        assert await world.driver.wait_until_active(0)
        assert await code_of_commit(world, GROUP) is ErrorCode.NONE

    in_world(main)
