"""What clients do to a coordinator, step by step. Each function is one transcript in `transcripts/`.

The coordinator that is talked to runs with the configuration below. Times are generous, so that the same steps mean
the same to a real broker and to a simulated clock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from pykbroker.protocol.schema import NO_UUID

from .session import Session

CONFIG = {
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "300",
    "group.max.size": "3",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.max.size": "3",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.streams.max.size": "3",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "300",
}
TOPICS = ("events", "orders")

Scenario = Callable[[Session], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def subscription(*topics: str, version: int = 1) -> bytes:
    """A ConsumerProtocolSubscription as consumers write it, without user data and owned partitions."""
    body = version.to_bytes(2, "big") + len(topics).to_bytes(4, "big")
    for topic in topics:
        body += len(topic).to_bytes(2, "big") + topic.encode()
    return body + b"\xff\xff\xff\xff" + (b"\0\0\0\0" if version else b"")


def join(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    protocols = fields.pop("protocols", {"range": subscription("events")})
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        session_timeout_ms=fields.pop("session", 10_000),
        rebalance_timeout_ms=fields.pop("rebalance", 20_000),
        protocol_type=fields.pop("type", "consumer"),
        group_instance_id=fields.pop("instance", None),
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
        **fields,
    )


def sync(
    group: str, generation: int, member_id: str, assignments: dict[str, bytes] | None = None, **fields: Any
) -> Any:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=fields.pop("instance", None),
        protocol_type=fields.pop("type", "consumer"),
        protocol_name=fields.pop("protocol", "range"),
        assignments=[
            SyncGroupRequestAssignment(member_id=key, assignment=value) for key, value in (assignments or {}).items()
        ],
    )


def beat(group: str, generation: int, member_id: str, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance)


def leave(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group,
        members=[MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members],
    )


Partitions = dict[int, tuple[int, str | None]]


def commit(group: str, topics: dict[str, Partitions], **fields: Any) -> OffsetCommitRequest:
    ids = fields.pop("ids", {})
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=fields.pop("generation", -1),
        member_id=fields.pop("member_id", ""),
        group_instance_id=fields.pop("instance", None),
        topics=[
            OffsetCommitRequestTopic(
                name="" if topic in ids else topic,
                topic_id=ids.get(topic, NO_UUID),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for index, (offset, metadata) in partitions.items()
                ],
            )
            for topic, partitions in topics.items()
        ],
        **fields,
    )


def fetch(version: int, groups: list[str], topics: dict[str, list[int]] | None, ids: dict[str, bytes]) -> Any:
    """ids: what topics are called from version 10 on."""
    if version < 8:
        named = [OffsetFetchRequestTopic(name=name, partition_indexes=asked) for name, asked in (topics or {}).items()]
        return OffsetFetchRequest(group_id=groups[0], topics=None if topics is None else named)
    by_id = version >= 10
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(
                        name="" if by_id else name, topic_id=ids[name] if by_id else NO_UUID, partition_indexes=asked
                    )
                    for name, asked in topics.items()
                ],
            )
            for group in groups
        ]
    )


def forget(group: str, topics: dict[str, list[int]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in topics.items()
        ],
    )


async def stable_alone(s: Session, group: str, **fields: Any) -> str:
    """`a` is the only member of generation 1; returns its id."""
    await s.start("a", join(group, **fields), 3)
    member_id: str = (await s.finish("a")).member_id
    await s.call("a", sync(group, 1, member_id, {member_id: b"all"}), 4)
    return member_id


async def stable_pair(s: Session, group: str, **fields: Any) -> tuple[str, str]:
    """`a`, the leader, and `b` are the members of generation 1; returns their ids."""
    await s.start("a", join(group, **fields), 3)
    await s.start("b", join(group, **fields), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second), 4)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}), 4)
    await s.finish("b")
    return first, second


# Membership


@scenario
async def a_first_member_joins_syncs_and_leaves(s: Session) -> None:
    group = "first-member"
    member_id = (await s.call("a", join(group, reason="test"), 9)).member_id
    await s.sleep(100)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.start("a", join(group, member_id), 9)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.finish("a")
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("a", beat(group, 1, member_id), 4)
    await s.call("a", sync(group, 1, member_id, {member_id: b"mine"}), 5)
    await s.call("a", sync(group, 1, member_id), 5)
    await s.call("a", beat(group, 1, member_id), 4)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("a", leave(group, (member_id, None)), 5)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("a", beat(group, 1, member_id), 4)
    await s.call("a", beat(group, 2, member_id), 4)
    s.note("the next generation of a group that was left")
    await s.start("a", join(group), 3)
    await s.finish("a")


@scenario
async def a_second_member_starts_a_rebalance(s: Session) -> None:
    group = "second-member"
    first = await stable_alone(s, group)
    await s.start("b", join(group), 3)
    await s.call("a", beat(group, 1, first), 3)
    await s.call("a", sync(group, 1, first), 3)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)
    await s.start("a", join(group, first), 3)
    await s.finish("a")
    second = (await s.finish("b")).member_id
    await s.start("b", sync(group, 2, second), 3)
    await s.call("a", sync(group, 2, first, {first: b"one", second: b"two"}), 3)
    await s.finish("b")
    await s.call("b", beat(group, 2, second), 3)
    await s.call("a", beat(group, 1, first), 3)


@scenario
async def old_versions_need_no_member_id(s: Session) -> None:
    for version in (0, 1, 2):
        group = f"old-version-{version}"
        await s.start("a", join(group, type="connect", protocols={"v": b"\0"}), version)
        member_id = (await s.finish("a")).member_id
        await s.call("a", sync(group, 1, member_id, {member_id: b"x"}), version)
        await s.call("a", beat(group, 1, member_id), version)
        await s.call("x", DescribeGroupsRequest(groups=[group]), version)
        await s.call("a", LeaveGroupRequest(group_id=group, member_id="nobody"), version)
        await s.call("a", LeaveGroupRequest(group_id=group, member_id=member_id), version)
        await s.call("a", LeaveGroupRequest(group_id=group, member_id=member_id), version)
        await s.call("a", LeaveGroupRequest(group_id=f"no-{group}", member_id=member_id), version)


@scenario
async def joins_that_are_refused(s: Session) -> None:
    group = "refused-joins"
    await s.call("a", join(""), 9)
    await s.call("a", join(group, session=0), 9)
    await s.call("a", join(group, session=999), 9)
    await s.call("a", join(group, session=1_000_000_000), 9)
    # Kafka keeps, and writes down, an empty group for each of these two; here they leave nothing behind.
    s.without_records |= {"refused-join-without-protocols", "refused-join-without-type"}
    await s.call("a", join("refused-join-without-protocols", protocols={}), 9)
    await s.call("a", join("refused-join-without-type", type=""), 9)
    await s.call("a", join("refused-join-without-group", "nobody"), 9)
    member_id = await stable_alone(s, group)
    await s.call("b", join(group, "nobody"), 9)
    await s.call("b", join(group, "nobody"), 5)
    await s.call("b", join(group, "nobody", instance="i"), 9)
    await s.call("b", join(group, protocols={"other": b""}), 9)
    await s.call("b", join(group, type="connect"), 9)
    await s.call("b", join(group, protocols={}), 9)
    await s.call("a", join(group, member_id, protocols={"other": b""}), 9)


@scenario
async def syncs_that_are_refused(s: Session) -> None:
    group = "refused-syncs"
    await s.call("a", sync("", 1, "nobody"), 5)
    await s.call("a", sync("refused-sync-without-group", 1, "nobody"), 5)
    member_id = await stable_alone(s, group)
    await s.call("a", sync(group, 1, "nobody"), 5)
    await s.call("a", sync(group, 1, member_id, instance="i"), 5)
    await s.call("a", sync(group, 0, member_id), 5)
    await s.call("a", sync(group, 2, member_id), 5)
    await s.call("a", sync(group, 1, member_id, type="connect"), 5)
    await s.call("a", sync(group, 1, member_id, protocol="other"), 5)
    await s.call("a", sync(group, 1, member_id, type=None), 5)
    await s.call("a", sync("", 1, member_id, protocol=None), 5)
    await s.call("a", sync(group, 1, member_id, type=None, protocol=None), 4)
    await s.call("b", join(group), 9)
    await s.call("a", sync(group, 1, member_id), 5)


@scenario
async def heartbeats_that_are_refused(s: Session) -> None:
    group = "refused-heartbeats"
    await s.call("a", beat("", 1, "nobody"), 4)
    await s.call("a", beat("refused-beat-without-group", 1, "nobody"), 4)
    member_id = await stable_alone(s, group)
    await s.call("a", beat(group, 1, "nobody"), 4)
    await s.call("a", beat(group, 1, ""), 4)
    await s.call("a", beat(group, 0, member_id), 4)
    await s.call("a", beat(group, 1, member_id, instance="i"), 4)


@scenario
async def leaving_alone_and_together(s: Session) -> None:
    group = "leaving"
    await s.call("a", leave("", ("nobody", None)), 5)
    await s.call("a", leave("leaving-without-group", ("nobody", None), ("", "i")), 5)
    first, second = await stable_pair(s, group)
    await s.call("x", leave(group, ("nobody", None), ("", None), ("", "i"), (first, "i")), 5)
    await s.call("x", leave(group), 5)
    await s.call("b", beat(group, 1, second), 4)
    await s.call("x", leave(group, (first, None), ("nobody", None)), 5)
    await s.call("b", beat(group, 1, second), 4)
    await s.start("b", join(group, second), 5)
    await s.finish("b")
    await s.call("b", leave(group, (second, None), (second, None)), 5)
    pending = (await s.call("c", join(group), 9)).member_id
    await s.call("c", leave(group, (pending, None)), 5)
    await s.call("c", join(group, pending), 9)


@scenario
async def a_full_group_takes_nobody_else(s: Session) -> None:
    group = "full"
    for client in "abc":
        await s.start(client, join(group), 3)
    await s.call("d", join(group), 3)
    for client in "abc":
        await s.finish(client)
    await s.call("d", join(group), 9)
    await s.call("d", join(group, "nobody"), 9)


@scenario
async def a_follower_that_joins_again_gets_the_same_generation(s: Session) -> None:
    group = "follower-again"
    first, second = await stable_pair(s, group)
    await s.call("b", join(group, second), 9)
    await s.call("b", sync(group, 1, second), 5)
    await s.call("a", beat(group, 1, first), 4)
    s.note("with other metadata it starts a rebalance")
    await s.start("b", join(group, second, protocols={"range": subscription("orders")}), 9)
    await s.call("a", beat(group, 1, first), 4)
    await s.start("a", join(group, first), 9)
    await s.finish("a")
    await s.finish("b")


@scenario
async def a_leader_that_joins_again_starts_a_rebalance(s: Session) -> None:
    group = "leader-again"
    first, second = await stable_pair(s, group)
    await s.start("a", join(group, first), 9)
    await s.call("b", beat(group, 1, second), 4)
    await s.start("b", join(group, second), 9)
    await s.finish("a")
    await s.finish("b")


@scenario
async def joining_again_before_the_assignment(s: Session) -> None:
    group = "joining-again"
    await s.start("a", join(group), 3)
    await s.start("b", join(group), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.call("a", join(group, first), 9)
    await s.call("b", join(group, second), 9)
    s.note("with other metadata the generation is over, and whoever waits for its assignment learns it")
    await s.start("a", sync(group, 1, second), 5)
    await s.start("b", join(group, first, protocols={"range": subscription("orders")}), 9)
    await s.finish("a")
    await s.start("a", join(group, second), 9)
    await s.finish("a")
    await s.finish("b")


@scenario
async def members_vote_for_the_protocol(s: Session) -> None:
    group = "votes"
    await s.start("a", join(group, protocols={"range": subscription("events"), "sticky": subscription("events")}), 3)
    await s.start("b", join(group, protocols={"sticky": subscription("events"), "range": subscription("events")}), 3)
    await s.start("c", join(group, protocols={"other": b"", "sticky": subscription("events")}), 3)
    for client in "abc":
        await s.finish(client)


# Time


@scenario
async def a_silent_member_is_removed(s: Session) -> None:
    group = "silent"
    await s.start("a", join(group, session=1000), 3)
    await s.start("b", join(group, session=10_000, rebalance=3_000), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second), 4)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}), 4)
    await s.finish("b")
    await s.sleep(600)
    await s.call("a", beat(group, 1, first), 4)
    await s.sleep(600)
    await s.call("a", beat(group, 1, first), 4)
    await s.sleep(1600)
    await s.call("a", beat(group, 1, first), 4)
    await s.call("b", beat(group, 1, second), 4)
    await s.call("a", join(group, first), 9)
    await s.start("b", join(group, second), 9)
    await s.finish("b")


@scenario
async def a_member_that_does_not_rejoin_in_time_is_removed(s: Session) -> None:
    group = "no-rejoin"
    first, second = await stable_pair(s, group, rebalance=1000)
    await s.start("a", join(group, first, rebalance=1000), 9)
    await s.finish("a")
    await s.call("b", beat(group, 1, second), 4)
    await s.call("b", join(group, second), 9)


@scenario
async def a_leader_that_does_not_sync_in_time_is_removed(s: Session) -> None:
    group = "no-sync"
    await s.start("a", join(group, rebalance=1000), 3)
    await s.start("b", join(group, rebalance=1000), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second), 4)
    await s.finish("b")
    await s.call("a", beat(group, 1, first), 4)
    await s.start("b", join(group, second, rebalance=1000), 4)
    await s.finish("b")


@scenario
async def a_member_id_that_is_not_used_in_time_is_forgotten(s: Session) -> None:
    group = "unused-id"
    member_id = (await s.call("a", join(group, session=1000), 9)).member_id
    await s.sleep(1500)
    await s.call("a", join(group, member_id, session=1000), 9)


# Static members


@scenario
async def a_static_member_comes_back_without_a_rebalance(s: Session) -> None:
    group = "static"
    await s.start("a", join(group, instance="i1"), 5)
    await s.start("b", join(group, instance="i2"), 5)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second, instance="i2"), 5)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}, instance="i1"), 5)
    await s.finish("b")
    s.note("the leader, told to skip the assignment")
    third = (await s.call("a", join(group, instance="i1"), 9)).member_id
    await s.call("a", beat(group, 1, first, "i1"), 4)
    await s.call("a", beat(group, 1, first), 4)
    await s.call("a", sync(group, 1, first, instance="i1"), 5)
    await s.call("a", join(group, first, instance="i1"), 9)
    await s.call("a", commit(group, {"events": {0: (1, "")}}, generation=1, member_id=first, instance="i1"), 9)
    await s.call("a", leave(group, (first, "i1")), 5)
    await s.call("a", sync(group, 1, third, instance="i1"), 5)
    await s.call("a", beat(group, 1, third, "i1"), 4)
    s.note("the leader again, in a version that cannot say so")
    fourth = (await s.call("a", join(group, instance="i1"), 8)).member_id
    await s.call("a", beat(group, 1, fourth, "i1"), 4)
    s.note("a follower")
    await s.call("b", join(group, instance="i2"), 9)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)
    s.note("removed by an administrator who knows the instance id only")
    await s.call("x", leave(group, ("", "i2"), ("", "i3")), 5)
    await s.call("a", beat(group, 1, fourth, "i1"), 4)


@scenario
async def a_static_member_with_another_protocol_starts_a_rebalance(s: Session) -> None:
    group = "static-protocol"
    both = {"range": subscription("events"), "sticky": subscription("events")}
    await s.start("a", join(group, instance="i1", protocols=both), 5)
    first = (await s.finish("a")).member_id
    await s.call("a", sync(group, 1, first, {first: b"one"}, instance="i1"), 5)
    await s.start("a", join(group, instance="i1", protocols={"sticky": subscription("events")}), 9)
    await s.finish("a")
    await s.call("a", join(group, instance="i1", protocols={"range": subscription("events")}), 9)


@scenario
async def a_static_member_is_replaced_while_its_join_waits(s: Session) -> None:
    group = "static-join"
    await s.start("a", join(group, instance="i1"), 7)
    await s.start("b", join(group, instance="i1"), 7)
    await s.finish("a")
    await s.finish("b")


@scenario
async def a_static_member_is_replaced_while_its_sync_waits(s: Session) -> None:
    group = "static-sync"
    await s.start("a", join(group, instance="i1"), 5)
    await s.start("b", join(group, instance="i2"), 5)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second, instance="i2"), 5)
    await s.start("c", join(group, instance="i2"), 9)
    await s.finish("b")
    await s.call("a", beat(group, 1, first, "i1"), 4)
    await s.start("a", join(group, first, instance="i1"), 9)
    await s.finish("a")
    await s.finish("c")


@scenario
async def a_static_member_that_is_away_is_waited_for(s: Session) -> None:
    """Its session timeout decides, not the rebalance timeout."""
    group = "static-away"
    await s.start("a", join(group, instance="i1", rebalance=1000), 5)
    await s.start("b", join(group, instance="i2", rebalance=1000), 5)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second, instance="i2"), 5)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}, instance="i1"), 5)
    await s.finish("b")
    await s.start("a", join(group, first, instance="i1", rebalance=1000), 5)
    await s.finish("a")
    await s.call("x", DescribeGroupsRequest(groups=[group]), 4)


# Offsets


@scenario
async def offsets_without_members(s: Session) -> None:
    ids = s.broker.topic_ids
    group = "simple"
    await s.call("a", commit("", {"events": {0: (5, "")}}), 9)
    await s.call("a", commit(group, {"events": {0: (5, "five"), 99: (1, None)}, "nope": {0: (1, "")}}), 9)
    await s.call(
        "a", commit(group, {"orders": {0: (1, "x" * 4096), 1: (1, "x" * 4097), 2: (1, "\U0001f600" * 2049)}}), 9
    )
    await s.call("a", commit(group, {"nope": {0: (1, "")}}), 9)
    await s.call("a", commit(group, {"events": {1: (7, None)}}, retention_time_ms=86_400_000), 2)
    await s.call("a", commit(group, {"events": {2: (8, "by id"), 99: (1, "")}}, ids=ids), 10)
    await s.call("a", commit(group, {"events": {99: (1, "")}}), 8)
    await s.call("a", commit(group, {}), 8)
    await s.call("a", commit(group, {"events": {}}), 8)
    await s.call("a", commit(group, {"nope": {2: (8, "by id")}}, ids={"nope": b"\1" * 16}), 10)
    asked = {"events": [0, 1, 2], "orders": [0, 1, 99]}
    for version in range(1, 11):
        await s.call("a", fetch(version, [group], asked, ids), version)
        if version > 1:
            await s.call("a", fetch(version, [group], None, ids), version)
    await s.call("a", fetch(8, [group, "nobody", ""], {"events": [0, 1]}, ids), 8)
    await s.call("a", fetch(9, [group, "nobody"], None, ids), 9)
    await s.call("a", fetch(9, [group], {"nope": [0]}, ids), 9)
    await s.call("a", fetch(10, [group], {"nope": [0]}, {"nope": b"\1" * 16}), 10)
    await s.call("a", fetch(5, ["nobody"], {"events": [0]}, ids), 5)
    await s.call("x", ListGroupsRequest(), 5)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)


@scenario
async def offsets_below_zero(s: Session) -> None:
    """Clients keep in them what the logs' ends are called in ListOffsets: -2 is the earliest offset for kafkajs."""
    group = "below-zero"
    ids = s.broker.topic_ids
    lowest = -(2**63)
    await s.call("a", commit(group, {"events": {0: (-1, "a"), 1: (-2, "b"), 2: (-3, "c")}}), 8)
    await s.call("a", commit(group, {"orders": {0: (-7, "d"), 1: (lowest, "e"), 2: (2**63 - 1, "f")}}), 2)
    for version in (1, 8, 10):
        await s.call("a", fetch(version, [group], {"events": [0, 1, 2], "orders": [0, 1, 2]}, ids), version)
    await s.call("a", fetch(8, [group], None, ids), 8)
    s.note("one that was there is below zero now")
    await s.call("a", commit(group, {"events": {0: (5, "")}}), 9)
    await s.call("a", commit(group, {"events": {0: (-1, "")}}), 9)
    await s.call("a", fetch(9, [group], {"events": [0]}, ids), 9)
    s.note("of a member")
    member = await stable_alone(s, "below-zero-member")
    in_group = {"generation": 1, "member_id": member}
    await s.call("a", commit("below-zero-member", {"events": {0: (-2, ""), 1: (-9, "")}}, **in_group), 9)
    await s.call("a", fetch(9, ["below-zero-member"], None, ids), 9)


@scenario
async def offsets_of_a_group_that_is_not_there(s: Session) -> None:
    await s.call("a", commit("not-there", {"events": {0: (5, "")}}, generation=0), 8)
    await s.call("a", commit("not-there", {"events": {0: (5, "")}}, generation=0), 9)
    await s.call("a", commit("not-there", {"events": {0: (5, "")}}, generation=3, member_id="m"), 9)
    await s.call("x", DescribeGroupsRequest(groups=["not-there"]), 6)


@scenario
async def offsets_of_members(s: Session) -> None:
    group = "member-offsets"
    offsets: dict[str, Partitions] = {"events": {0: (5, "")}}
    first = await stable_alone(s, group)
    await s.call("a", commit(group, offsets, generation=1, member_id=first), 9)
    await s.call("a", commit(group, offsets, generation=0, member_id=first), 9)
    await s.call("a", commit(group, offsets, generation=-1, member_id=first), 9)
    await s.call("a", commit(group, offsets, generation=1, member_id="nobody"), 9)
    await s.call("a", commit(group, offsets, generation=1, member_id=first, instance="i"), 9)
    await s.call("a", commit(group, offsets), 9)
    await s.call("a", commit(group, offsets, generation=1), 9)
    s.note("while members join, offsets are still taken")
    await s.start("b", join(group), 3)
    await s.call("a", commit(group, offsets, generation=1, member_id=first), 9)
    await s.start("a", join(group, first), 3)
    await s.finish("a")
    second = (await s.finish("b")).member_id
    s.note("not before the assignment is there")
    await s.call("a", commit(group, offsets, generation=2, member_id=first), 9)
    await s.call("a", commit(group, offsets, generation=1, member_id=first), 9)
    await s.call("x", leave(group, (first, None), (second, None)), 5)
    await s.call("a", commit(group, offsets, generation=3, member_id=first), 9)
    await s.call("a", commit(group, offsets), 9)


@scenario
async def offsets_are_deleted(s: Session) -> None:
    ids = s.broker.topic_ids
    group = "deleted-offsets"
    await s.call("x", forget("", {"events": [0]}), 0)
    await s.call("x", forget("deleted-nothing", {"events": [0]}), 0)
    await s.call("x", forget("deleted-nothing", {"nope": [0]}), 0)
    member_id = await stable_alone(s, group)
    offsets: dict[str, Partitions] = {"events": {0: (5, "")}, "orders": {0: (6, "")}}
    await s.call("a", commit(group, offsets, generation=1, member_id=member_id), 9)
    await s.call("x", forget(group, {"events": [0], "orders": [0, 1, 99], "nope": [0]}), 0)
    await s.call("x", forget(group, {"nope": [0]}), 0)
    await s.call("x", fetch(9, [group], None, ids), 9)
    await s.call("a", leave(group, (member_id, None)), 5)
    await s.call("x", forget(group, {"events": [0]}), 0)
    await s.call("x", fetch(9, [group], None, ids), 9)
    s.note("a group of another type must be empty")
    other = "deleted-connect-offsets"
    await s.start("a", join(other, type="connect", protocols={"v": b""}), 3)
    await s.call("x", forget(other, {"events": [0]}), 0)
    await s.finish("a")
    s.note("subscriptions that cannot be read count as subscribed to everything")
    unreadable = "deleted-unreadable"
    await stable_alone(s, unreadable, protocols={"range": b"\0"})
    await s.call("x", forget(unreadable, {"orders": [0]}), 0)


# Administration


@scenario
async def groups_are_listed_by_state_and_type(s: Session) -> None:
    await s.call("a", commit("listed-simple", {"events": {0: (5, "")}}), 9)
    await stable_alone(s, "listed-stable")
    await s.start("b", join("listed-joining"), 3)
    for version in range(6):
        await s.call("x", ListGroupsRequest(), version)
    await s.call("x", ListGroupsRequest(states_filter=["Stable"]), 4)
    await s.call("x", ListGroupsRequest(states_filter=["empty", "PREPARINGREBALANCE"]), 5)
    await s.call("x", ListGroupsRequest(states_filter=["nonsense"]), 5)
    await s.call("x", ListGroupsRequest(types_filter=["Classic"]), 5)
    await s.call("x", ListGroupsRequest(types_filter=["consumer"]), 5)
    await s.call("x", ListGroupsRequest(types_filter=["nonsense"]), 5)
    await s.finish("b")
    for version in range(7):
        request = DescribeGroupsRequest(
            groups=["listed-stable", "listed-none"], include_authorized_operations=version > 2
        )
        await s.call("x", request, version)


@scenario
async def groups_are_deleted(s: Session) -> None:
    ids = s.broker.topic_ids
    await s.call("a", commit("deleted-simple", {"events": {0: (5, ""), 1: (6, "")}}), 9)
    member_id = await stable_alone(s, "deleted-stable")
    await s.call("x", DeleteGroupsRequest(groups_names=["deleted-simple", "deleted-stable", "deleted-none"]), 2)
    await s.call("x", fetch(9, ["deleted-simple"], {"events": [0]}, ids), 9)
    await s.call("x", DescribeGroupsRequest(groups=["deleted-simple"]), 5)
    await s.call("a", leave("deleted-stable", (member_id, None)), 5)
    await s.call("x", DeleteGroupsRequest(groups_names=["deleted-stable"]), 0)
    await s.call("x", DeleteGroupsRequest(groups_names=["deleted-stable"]), 1)
    s.note("a member id that was handed out does not keep a group")
    pending = (await s.call("a", join("deleted-pending"), 9)).member_id
    await s.call("x", DeleteGroupsRequest(groups_names=["deleted-pending"]), 2)
    await s.call("a", join("deleted-pending", pending), 9)


@scenario
async def coordinators_are_found(s: Session) -> None:
    for version in range(4):
        await s.call("a", FindCoordinatorRequest(key="found"), version)
    for version in range(4, 7):
        await s.call("a", FindCoordinatorRequest(coordinator_keys=["found", ""]), version)
    await s.call("a", FindCoordinatorRequest(key="found", key_type=42), 3)
    await s.call("a", FindCoordinatorRequest(coordinator_keys=["found"], key_type=42), 6)
