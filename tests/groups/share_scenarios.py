"""What members of share groups (KIP-932) do to a coordinator. Each function is one transcript in `transcripts/`."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)

from .consumer_scenarios import joining
from .scenarios import commit, join, scenario
from .session import Session

INTERVAL_MS = 1_100
"""A little more than `group.share.assignment.interval.ms`: the next heartbeat may compute an assignment."""


def heartbeat(group: str, member_id: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=fields.pop("names", None),
        **fields,
    )


def joins(group: str, member_id: str, *topics: str, **fields: Any) -> ShareGroupHeartbeatRequest:
    return heartbeat(group, member_id, 0, names=list(topics or ("events",)), **fields)


async def describe(s: Session, group: str) -> None:
    await s.call("x", ShareGroupDescribeRequest(group_ids=[group]), 1)


async def initialized(s: Session, group: str, partitions: int) -> None:
    """So many partitions of the group have state. Nobody tells how long that took."""
    every = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)]
    )
    found = 0
    while found < partitions:
        await s.broker.sleep(100)
        answer: Any = await s.broker.call("w", every, 1)
        found = sum(len(topic.partitions) for topic in answer.groups[0].topics)
    await s.broker.sleep(INTERVAL_MS)


def altered(group: str, topic: str, **offsets: int) -> AlterShareGroupOffsetsRequest:
    """offsets: by partition, as in `p0=7`."""
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=int(name[1:]), start_offset=offset)
        for name, offset in offsets.items()
    ]
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)]
    return AlterShareGroupOffsetsRequest(group_id=group, topics=topics)


def deleted(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    )


async def offsets(s: Session, group: str, *topics: str, partitions: int = 3) -> None:
    asked = [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(range(partitions))) for name in topics
    ]
    of_group = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=asked or None)
    await s.call("x", DescribeShareGroupOffsetsRequest(groups=[of_group]), 1)


@scenario
async def a_share_member_joins_alone_and_leaves(s: Session) -> None:
    group = "share-alone"
    await describe(s, group)
    await s.call("a", joins(group, "a-id", rack_id="r1"), 1)
    await initialized(s, group, 3)
    await s.call("a", heartbeat(group, "a-id", 2), 1)
    await s.call("a", heartbeat(group, "a-id", 3), 1)
    await s.call("a", heartbeat(group, "a-id", 3, names=["events"]), 1)
    await describe(s, group)
    await s.call("x", ListGroupsRequest(types_filter=["share"]), 5)
    await s.call("a", heartbeat(group, "a-id", -1), 1)
    await s.call("a", heartbeat(group, "a-id", -1), 1)
    await describe(s, group)
    await s.call("x", ListGroupsRequest(states_filter=["empty"], types_filter=["Share"]), 5)


@scenario
async def share_heartbeats_that_are_refused(s: Session) -> None:
    group = "share-refused"
    await s.call("a", heartbeat(group, "a-id", 1), 1)
    await s.call("a", heartbeat(group, "a-id", -1), 1)
    await s.call("a", heartbeat(group, "a-id", -2), 1)
    await s.call("a", heartbeat(group, "a-id", 0), 1)
    await s.call("a", heartbeat(group, "a-id", 0, names=[]), 1)
    await s.call("a", joins(group, ""), 1)
    await s.call("a", joins(group, " "), 1)
    await s.call("a", joins(group, "m" * 37), 1)
    await s.call("a", joins(group, "a-id", rack_id=""), 1)
    await s.call("a", joins("", "a-id"), 1)
    await s.call("a", joins(group, "a-id", "no-such-topic"), 1)
    await s.call("a", heartbeat(group, "a-id", 1), 1)
    await s.call("a", heartbeat(group, "a-id", 3), 1)
    await s.call("b", heartbeat(group, "b-id", 2), 1)
    await s.call("a", heartbeat(group, "a-id", 2), 1)
    await describe(s, "")


@scenario
async def groups_do_not_become_share_groups_nor_the_other_way_round(s: Session) -> None:
    shared, consumed, stored = "shared-at-first", "consumed-at-first", "stored-at-first"
    await s.call("a", joins(shared, "a-id"), 1)
    await s.call("a", heartbeat(shared, "a-id", -1), 1)
    await s.call("a", joining(s, shared, "a-id"), 1)
    await s.call("a", join(shared), 9)
    await s.call("a", commit(shared, {"events": {0: (5, "")}}), 9)
    await s.call("x", ConsumerGroupDescribeRequest(group_ids=[shared]), 1)
    await s.call("x", DescribeGroupsRequest(groups=[shared]), 6)
    await s.call("b", joining(s, consumed, "b-id"), 1)
    await s.call("b", joins(consumed, "b-id"), 1)
    await s.call("b", heartbeat(consumed, "b-id", -1), 1)
    await describe(s, consumed)
    await s.call("c", commit(stored, {"events": {0: (5, "")}}), 9)
    await s.call("c", joins(stored, "c-id"), 1)
    await s.call("x", altered(stored, "events", p0=1), 0)
    await s.call("x", deleted(stored, "events"), 0)


@scenario
async def offsets_of_a_share_group_are_altered_and_deleted(s: Session) -> None:
    group = "share-offsets"
    await offsets(s, group)
    await offsets(s, group, "events", "no-such-topic", partitions=1)
    await s.call("x", deleted(group, "events"), 0)
    await s.call("x", altered(group, "events", p0=0, p2=0, p9=1), 0)
    await initialized(s, group, 2)
    await offsets(s, group)
    await describe(s, group)
    await s.call("a", joins(group, "a-id"), 1)
    await s.call("x", altered(group, "events", p0=0), 0)
    await s.call("x", deleted(group, "events"), 0)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await initialized(s, group, 3)
    await s.call("a", heartbeat(group, "a-id", -1), 1)
    await s.call("x", deleted(group, "events", "orders", "no-such-topic"), 0)
    await s.sleep(500)
    await offsets(s, group)
    await s.call("x", deleted(group, "events"), 0)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await describe(s, group)


@scenario
async def a_share_group_is_deleted_with_its_state(s: Session) -> None:
    group = "share-deleted"
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await s.call("a", joins(group, "a-id"), 1)
    await initialized(s, group, 3)
    await s.call("a", heartbeat(group, "a-id", 2), 1)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await s.call("a", heartbeat(group, "a-id", -1), 1)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await offsets(s, group)
    await describe(s, group)


@scenario
async def topics_of_a_share_group_change(s: Session) -> None:
    group, topic = "share-of-topics", "grows-slowly"
    await s.broker.make_topic(topic, 1)
    await s.broker.sleep(1000)
    await s.call("a", joins(group, "a-id", topic), 1)
    await initialized(s, group, 1)
    await s.call("a", heartbeat(group, "a-id", 2), 1)
    s.note("the topic gets a second partition")
    await s.broker.add_partitions(topic, 2)
    await s.broker.sleep(500)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(group, "a-id", 3), 1)
    await initialized(s, group, 2)
    await s.call("a", heartbeat(group, "a-id", 4), 1)
    s.note("the topic is deleted")
    await s.broker.drop_topic(topic)
    await s.broker.sleep(1000)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(group, "a-id", 5), 1)
    await offsets(s, group)
