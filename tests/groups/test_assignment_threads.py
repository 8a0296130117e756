"""Large assignments behind the driver: what happens to the shard while a thread computes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pykbroker.groups.consumer.assignment_tasks import AssignmentTask, ComputedAssignment
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.coordinators import assignment_threads
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS

from .consumer_requests import JOINING, assigned, consumer_beat
from .test_refused_appends import find_replicas, lose_replicas
from .world import World, run_simulated

CONFIG = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}
PARTITIONS = 3
COMPUTED_MS = 10
"""Longer than a simulated thread takes."""


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment_threads, "SMALL", 0)


def in_world(main: Callable[[World], Awaitable[None]], **settings: str) -> None:
    world = World({**CONFIG, **settings})

    async def run() -> None:
        world.create_topic("events", PARTITIONS)
        world.create_topic(CONSUMER_OFFSETS, 1)
        async with world.running():
            await world.sleep(100)
            await main(world)

    run_simulated(run)


async def beat(world: World, epoch: int = JOINING) -> Any:
    topics = ["events"] if epoch == JOINING else None
    owned: dict[bytes, list[int]] = {}
    request = consumer_beat("g", "a", epoch, topics=topics, owned=owned, rebalance=None if epoch else 30_000)
    return await world.call("a", request, 1)


def has_all(world: World, answer: Any) -> bool:
    return assigned(answer) == {world.topic_ids["events"]: list(range(PARTITIONS))}


def test_a_member_is_told_of_a_large_assignment_in_its_next_heartbeat() -> None:
    async def main(world: World) -> None:
        joined = await beat(world)
        assert not assigned(joined)
        await world.sleep(COMPUTED_MS)
        assert has_all(world, await beat(world, joined.member_epoch))

    in_world(main)


def test_a_shard_that_is_led_anew_while_an_assignment_is_computed_has_its_own_computed() -> None:
    async def main(world: World) -> None:
        joined = await beat(world)
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        await world.sleep(COMPUTED_MS)
        shard = world.driver.shard(0)
        assert shard is not None
        assert shard.groups["g"].target_assignment == {}  # type: ignore[union-attr]
        joined = await beat(world, joined.member_epoch)
        await world.sleep(COMPUTED_MS)
        assert has_all(world, await beat(world, joined.member_epoch))

    in_world(main)


def test_an_assignment_is_nobodys_when_its_partition_is_led_elsewhere() -> None:
    async def main(world: World) -> None:
        await beat(world)
        end_offset = world.partitions[0].log.log_end_offset
        world.resign(0)
        await world.sleep(COMPUTED_MS)
        assert world.partitions[0].log.log_end_offset == end_offset
        assert (await beat(world)).error_code == ErrorCode.NOT_COORDINATOR

    in_world(main)


def test_an_assignment_that_cannot_be_written_now_is_written_when_the_replicas_are_back() -> None:
    async def main(world: World) -> None:
        joined = await beat(world)
        lose_replicas(world.partitions[0])
        await world.sleep(1_000)
        find_replicas(world.partitions[0])
        await world.sleep(1_000)
        assert has_all(world, await beat(world, joined.member_epoch))

    in_world(main)


def test_an_assignment_that_fails_in_its_thread_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = AssignmentTask.run

    def fail_once(task: AssignmentTask) -> ComputedAssignment:
        monkeypatch.setattr(AssignmentTask, "run", run)
        raise ZeroDivisionError

    async def main(world: World) -> None:
        monkeypatch.setattr(AssignmentTask, "run", fail_once)
        joined = await beat(world)
        await world.sleep(COMPUTED_MS)
        assert not assigned(await beat(world, joined.member_epoch))
        await world.sleep(COMPUTED_MS)
        assert has_all(world, await beat(world, joined.member_epoch))

    in_world(main)
