"""Requests about very many groups, or offsets of a group: handlers ask the coordinator for some at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from pykbroker.api import list_groups
from pykbroker.groups import shard as shard_module
from pykbroker.groups.common.group import Group
from pykbroker.groups.common.records import offset_commit_record
from pykbroker.groups.common.requests import FetchAllOffsets, ListSomeGroups
from pykbroker.groups.consumer.consumer_group_member import ConsumerGroupMember
from pykbroker.groups.consumer.consumer_records import assignment_record, member_record, member_tombstones
from pykbroker.groups.consumer.descriptions import ConsumerGroupAsOfNow
from pykbroker.groups.deletions import MOST_OFFSETS
from pykbroker.groups.offsets.all_offsets import AllOffsets
from pykbroker.groups.shard import GroupShard
from pykbroker.java_hash import place_in_a_table
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
)
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, ListGroupsRequest, ListGroupsResponse
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.group_records import OffsetCommitValue
from pykbroker.protocol.schema import Message
from pykbroker.server.node.handlers import HANDLERS

from .test_driver import GROUP, code_of_commit, in_world
from .world import World

MANY = 2_500


def shard_of(world: World, index: int = 0) -> GroupShard:
    shard = world.driver.shard(index)
    assert shard is not None
    return shard


def add_offset(shard: GroupShard, group: str, partition: int) -> None:
    record = offset_commit_record(group, "events", partition, OffsetCommitValue(offset=partition))
    shard.replay(record.key, record.value)


async def asked_in_turns(world: World, request: Message, version: int) -> Any:
    """The answer of a handler that took more than one turn."""
    (handler,) = (each for each in HANDLERS.broker if each.request_type is type(request))
    context = world.context("c", type(request), version)
    answer = await handler.function(context, request)
    assert context.turn.is_long
    return answer


def test_groups_are_listed_in_the_order_of_kafkas_tables() -> None:
    """Its own tests expect grp-4 in front of grp-1."""

    async def main(world: World) -> None:
        for number in range(1, 7):
            await code_of_commit(world, f"grp-{number}")
        answer: Any = await world.call("c", ListGroupsRequest(), 5)
        listed = [group.group_id for group in answer.groups]
        assert listed == ["grp-2", "grp-4", "grp-1", "grp-6", "grp-3", "grp-5"]

    in_world(main)


def test_very_many_groups_are_listed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    list_some = shard_module.list_groups

    def counted(groups: Mapping[str, Group], request: ListSomeGroups) -> ListGroupsResponse:
        asked.append(len(request.group_ids))
        return list_some(groups, request)

    monkeypatch.setattr(shard_module, "list_groups", counted)

    async def main(world: World) -> None:
        for number in range(MANY):
            add_offset(shard_of(world), f"g{number}", 0)
        answer = await asked_in_turns(world, ListGroupsRequest(), 5)
        ids = [group.group_id for group in answer.groups]
        assert ids == sorted(shard_of(world).groups, key=place_in_a_table)
        assert (sum(asked), max(asked)) == (MANY, list_groups._GROUPS_AT_ONCE)

    in_world(main)


def test_groups_of_a_partition_that_is_led_elsewhere_by_now_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_groups, "_GROUPS_AT_ONCE", 1)
    list_some = shard_module.list_groups

    async def main(world: World) -> None:
        for number in range(3):
            add_offset(shard_of(world), f"a{number}", 0)
            add_offset(shard_of(world, 1), f"b{number}", 0)

        def resign(groups: Mapping[str, Group], request: ListSomeGroups) -> ListGroupsResponse:
            listed = list_some(groups, request)
            if request.group_ids[0].startswith("a") and 0 in world.driver.active_partitions:
                world.resign(0)
            return listed

        monkeypatch.setattr(shard_module, "list_groups", resign)
        answer: Any = await world.call("c", ListGroupsRequest(), 5)
        assert answer.error_code == ErrorCode.NONE
        assert sorted(group.group_id for group in answer.groups) == ["b0", "b1", "b2"]

    in_world(main, partitions=2)


def fetching_all() -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)], require_stable=True)


def in_world_with_many_offsets(main: Callable[[World, GroupShard], Awaitable[None]]) -> None:
    async def run(world: World) -> None:
        shard = shard_of(world)
        for partition in range(MANY):
            add_offset(shard, GROUP, partition)
        await main(world, shard)

    in_world(run)


def test_all_offsets_of_a_group_are_told_in_turns_and_as_of_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World, shard: GroupShard) -> None:
        fetch_all = shard.offsets.fetch_all

        def fetch_and_change(request: FetchAllOffsets) -> AllOffsets:
            fetched = fetch_all(request)
            for partition in (0, MANY - 1):
                record = offset_commit_record(GROUP, "events", partition, None)
                shard.replay(record.key, record.value)
            return fetched

        monkeypatch.setattr(shard.offsets, "fetch_all", fetch_and_change)
        (group,) = (await asked_in_turns(world, fetching_all(), 9)).groups
        (topic,) = group.topics
        assert [each.committed_offset for each in topic.partitions] == list(range(MANY))

    in_world_with_many_offsets(main)


def test_of_all_offsets_those_that_a_transaction_may_replace_are_not_told() -> None:
    async def main(world: World, shard: GroupShard) -> None:
        record = offset_commit_record(GROUP, "events", 7, OffsetCommitValue(offset=9))
        shard.replay_pending(1, record.key, record.value)
        (group,) = (await asked_in_turns(world, fetching_all(), 9)).groups
        unstable = [each for each in group.topics[0].partitions if each.error_code]
        assert [(each.partition_index, each.error_code) for each in unstable] == [(7, ErrorCode.UNSTABLE_OFFSET_COMMIT)]

    in_world_with_many_offsets(main)


def test_a_large_consumer_group_is_described_in_turns_and_as_of_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        shard = shard_of(world)
        topics = {world.topic_ids["events"]: {0: 1}}
        for number in range(MANY):
            member = ConsumerGroupMember(member_id=f"m{number}", member_epoch=1, assigned=topics)
            for record in (member_record(GROUP, member), assignment_record(GROUP, member)):
                shard.replay(record.key, record.value)
        describe = ConsumerGroupAsOfNow.describe_member
        described: list[str] = []

        def describe_and_change(found: ConsumerGroupAsOfNow, member_id: str) -> Member:
            described.append(member_id)
            for record in member_tombstones(GROUP, f"m{len(described) - 1}"):
                shard.replay(record.key, record.value)
            return describe(found, member_id)

        monkeypatch.setattr(ConsumerGroupAsOfNow, "describe_member", describe_and_change)
        answer = await asked_in_turns(world, ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1)
        assert not shard.groups[GROUP].members  # type: ignore[union-attr]
        (group,) = decode(ConsumerGroupDescribeResponse, 1, encode(answer, 1))[0].groups
        assert [member.member_id for member in group.members] == described
        assert {member.assignment.topic_partitions[0].topic_name for member in group.members} == {"events"}
        assert sorted(described, key=place_in_a_table) == described

    in_world(main)


def test_a_group_with_very_many_offsets_is_deleted_while_others_are_served() -> None:
    async def main(world: World, shard: GroupShard) -> None:
        answered = world.start("c", DeleteGroupsRequest(groups_names=[GROUP]), 2)
        await world.sleep(0)
        assert await code_of_commit(world, "other") == ErrorCode.NONE
        assert shard.offsets.committed.count(GROUP) >= MANY - 4 * MOST_OFFSETS, "it is still going"
        answer: Any = await answered
        assert answer.results[0].error_code == ErrorCode.NONE
        assert list(shard.groups) == ["other"]

    in_world_with_many_offsets(main)


def test_whoever_deletes_a_group_hears_that_its_partition_is_led_elsewhere() -> None:
    async def main(world: World, shard: GroupShard) -> None:
        answered = world.start("c", DeleteGroupsRequest(groups_names=[GROUP]), 2)
        await world.sleep(0)
        world.resign(0)
        answer: Any = await answered
        assert answer.results[0].error_code == ErrorCode.NOT_COORDINATOR

    in_world_with_many_offsets(main)


FEW = range(2)
FEW_PARTITIONS: dict[str, tuple[Message, int]] = {
    "commit": (
        OffsetCommitRequest(
            group_id=GROUP,
            topics=[
                OffsetCommitRequestTopic(
                    name="events",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=each, committed_offset=1, committed_metadata="")
                        for each in FEW
                    ],
                )
            ],
        ),
        9,
    ),
    "fetch": (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=GROUP, topics=[OffsetFetchRequestTopics(name="events", partition_indexes=[*FEW])]
                )
            ]
        ),
        8,
    ),
    "delete": (
        OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                OffsetDeleteRequestTopic(
                    name="events", partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in FEW]
                )
            ],
        ),
        0,
    ),
}


@pytest.mark.parametrize("request_", FEW_PARTITIONS)
def test_a_request_of_few_offsets_is_answered_in_its_first_turn(request_: str) -> None:
    """A long one waits in a queue of its own, and has its answer packed in a thread."""
    request, version = FEW_PARTITIONS[request_]

    async def main(world: World) -> None:
        assert await code_of_commit(world) == 0
        (handler,) = (each for each in HANDLERS.broker if each.request_type is type(request))
        context = world.context("c", type(request), version)
        answer: Any = await handler.function(context, request)
        assert answer is not None
        assert not context.turn.is_long

    in_world(main)
