"""Consumer groups behind the driver: what metadata, settings and the cluster's features mean to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from pykbroker.metadata.features import GROUP_VERSION
from pykbroker.metadata.image import GROUP_RESOURCE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
)
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS

from .world import World, run_simulated

GROUP = "g"
CONFIG = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}


def in_world(main: Callable[[World], Awaitable[None]], config: Mapping[str, str] = MappingProxyType({})) -> World:
    world = World({**CONFIG, **config})

    async def run() -> None:
        world.create_topic("events", 3)
        world.create_topic(CONSUMER_OFFSETS, 1)
        async with world.running():
            await world.sleep(100)
            await main(world)

    run_simulated(run)
    return world


async def join(world: World, member_id: str) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["events"],
        topic_partitions=[],
    )
    return await world.call("a", request, 1)


async def beat(world: World, member_id: str, epoch: int) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch)
    return await world.call("a", request, 1)


async def described(world: World) -> Any:
    answer: Any = await world.call("a", ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1)
    (group,) = answer.groups
    return group


def test_a_group_has_its_settings_from_the_metadata() -> None:
    async def main(world: World) -> None:
        assert (await join(world, "a")).heartbeat_interval_ms == 5_000
        for name, value in (("consumer.heartbeat.interval.ms", "6000"), ("consumer.session.timeout.ms", "50000")):
            world.replay(ConfigRecord(resource_type=GROUP_RESOURCE, resource_name=GROUP, name=name, value=value))
        assert (await beat(world, "a", 2)).heartbeat_interval_ms == 6_000
        await world.sleep(49_900)
        assert (await described(world)).members
        await world.sleep(200)
        assert not (await described(world)).members

    in_world(main)


def test_a_cluster_that_has_not_agreed_on_the_protocol_does_not_speak_it() -> None:
    async def main(world: World) -> None:
        world.replay(FeatureLevelRecord(name=GROUP_VERSION, feature_level=0))
        assert (await join(world, "a")).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await described(world)).error_code == ErrorCode.UNSUPPORTED_VERSION

    in_world(main)


def test_a_broker_whose_settings_leave_the_protocol_out_does_not_speak_it() -> None:
    async def main(world: World) -> None:
        assert (await join(world, "a")).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await described(world)).error_code == ErrorCode.UNSUPPORTED_VERSION

    in_world(main, {"group.coordinator.rebalance.protocols": "classic"})


def test_a_group_goes_on_in_a_new_leader_epoch() -> None:
    async def main(world: World) -> None:
        epoch = (await join(world, "a")).member_epoch
        before = await described(world)
        world.elect(0)
        assert await world.driver.wait_until_active(0)
        assert await described(world) == before
        answer = await beat(world, "a", epoch)
        assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, epoch)
        assert await described(world) == before, "the topics are those that the group knows"

    world = in_world(main)
    assert len(world.records()) == 5, "a member, the group, its target, and what it has"


def test_a_topic_is_gone_whose_deletion_comes_together_with_news_of_a_broker() -> None:
    async def main(world: World) -> None:
        epoch = (await join(world, "a")).member_epoch
        changes = world.image.replay(RemoveTopicRecord(topic_id=world.topic_ids["events"]), world.image.offset + 1)
        broker = RegisterBrokerRecord(broker_id=2, broker_epoch=1, fenced=True)
        changes.merge(world.image.replay(broker, world.image.offset + 1))
        world.driver.apply(world.image, changes)
        answer = await beat(world, "a", epoch)
        assert answer.assignment is not None
        assert not answer.assignment.topic_partitions

    in_world(main)
