"""What members of consumer groups (KIP-848) do to a coordinator. Each function is one transcript in `transcripts/`."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

from .scenarios import beat, commit, forget, join, leave, scenario, stable_alone, sync
from .session import Session

INTERVAL_MS = 1_100
"""A little more than `group.consumer.assignment.interval.ms`: the next heartbeat may compute an assignment."""
SESSION_MS = 6_000
"""`group.consumer.session.timeout.ms`."""


def heartbeat(s: Session, group: str, member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """owned: partitions by topic, None where the member does not say."""
    owned: dict[str, list[int]] | None = fields.pop("owned", None)
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=fields.pop("instance", None),
        rebalance_timeout_ms=fields.pop("timeout", -1),
        subscribed_topic_names=fields.pop("names", None),
        server_assignor=fields.pop("assignor", None),
        topic_partitions=None
        if owned is None
        else [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=s.broker.topic_ids[topic], partitions=partitions)
            for topic, partitions in owned.items()
        ],
        **fields,
    )


def joining(s: Session, group: str, member_id: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    names = list(topics or ("events",))
    return heartbeat(s, group, member_id, 0, names=names, owned={}, timeout=fields.pop("timeout", 30_000), **fields)


async def describe(s: Session, group: str) -> None:
    await s.call("x", ConsumerGroupDescribeRequest(group_ids=[group]), 1)


async def settled_pair(s: Session, group: str, **fields: Any) -> None:
    """`a` and `b` share the three partitions of events, and are stable in epoch 3. b's are told."""
    await s.call("a", joining(s, group, "a-id", **fields), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "b-id", **fields), 1)
    kept = (await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": [0, 1, 2]}), 1)).assignment
    (topic,) = kept.topic_partitions
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": topic.partitions}), 1)
    await s.call("b", heartbeat(s, group, "b-id", 3, owned={}), 1)


# Joining and leaving


@scenario
async def a_consumer_joins_alone_and_leaves(s: Session) -> None:
    group = "alone"
    await describe(s, group)
    await s.call("a", joining(s, group, "a-id"), 1)
    await describe(s, group)
    await s.call("x", ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), 0)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": [0, 1, 2]}), 1)
    s.note("everything is told again to who tells everything")
    full = heartbeat(s, group, "a-id", 2, names=["events"], owned={"events": [0, 1, 2]}, timeout=30_000)
    await s.call("a", full, 1)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)


@scenario
async def a_consumer_without_an_id_is_given_one(s: Session) -> None:
    group = "no-member-id"
    member_id = (await s.call("a", joining(s, group, ""), 0)).member_id
    await s.call("a", heartbeat(s, group, member_id, 2), 0)
    await s.call("a", joining(s, group, ""), 1)
    await s.call("a", heartbeat(s, group, "", -1), 0)
    await s.call("a", heartbeat(s, group, member_id, -1), 0)


@scenario
async def two_consumers_share_what_one_had(s: Session) -> None:
    group = "shared"
    await s.call("a", joining(s, group, "a-id"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "b-id"), 1)
    await describe(s, group)
    s.note("b waits, and a has not heard of it")
    await s.call("b", heartbeat(s, group, "b-id", 3, owned={}), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await describe(s, group)
    s.note("a keeps what it should give up")
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": [0, 1, 2]}), 1)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": [0]}), 1)
    await describe(s, group)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 3), 1)
    s.note("a leaves, and b gets everything")
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await describe(s, group)
    await s.sleep(INTERVAL_MS)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await describe(s, group)


@scenario
async def consumers_that_join_together_wait_for_an_assignment(s: Session) -> None:
    group = "together"
    await s.call("a", joining(s, group, "member-a"), 1)
    await s.call("b", joining(s, group, "member-b"), 1)
    await s.call("c", joining(s, group, "member-c"), 1)
    await describe(s, group)
    await s.call("b", heartbeat(s, group, "member-b", 2, owned={}), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", heartbeat(s, group, "member-b", 2, owned={}), 1)
    await s.call("a", heartbeat(s, group, "member-a", 2, owned={"events": [0, 1, 2]}), 1)
    await s.call("c", heartbeat(s, group, "member-c", 2, owned={}), 1)
    await describe(s, group)
    await s.call("c", heartbeat(s, group, "member-c", -1), 1)
    await s.call("a", heartbeat(s, group, "member-a", 2, owned={}), 1)
    await s.call("b", heartbeat(s, group, "member-b", 4, owned={}), 1)
    await describe(s, group)


@scenario
async def a_consumer_joins_again_under_its_id(s: Session) -> None:
    group = "again"
    await settled_pair(s, group)
    await s.call("a", joining(s, group, "a-id"), 1)
    await describe(s, group)
    await s.call("a", joining(s, group, "a-id", "orders"), 1)
    await describe(s, group)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)


@scenario
async def a_full_consumer_group_takes_nobody_else(s: Session) -> None:
    group = "full-consumers"
    for client in "abc":
        await s.call(client, joining(s, group, f"{client}-id"), 1)
    await s.call("d", joining(s, group, "d-id"), 1)
    await s.call("d", joining(s, group, ""), 0)
    await s.call("d", heartbeat(s, group, "d-id", 2), 1)
    await s.call("a", joining(s, group, "a-id"), 1)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.call("d", joining(s, group, "d-id"), 1)


# Refused


@scenario
async def consumer_heartbeats_that_are_not_valid(s: Session) -> None:
    group = "invalid"
    await s.call("a", joining(s, "", "a-id"), 1)
    await s.call("a", joining(s, " ", "a-id"), 1)
    await s.call("a", joining(s, group, ""), 1)
    await s.call("a", joining(s, group, " "), 1)
    await s.call("a", heartbeat(s, group, "", 2), 0)
    await s.call("a", heartbeat(s, group, "", -1), 0)
    await s.call("a", heartbeat(s, group, "", -2, instance="i"), 0)
    await s.call("a", joining(s, group, "a-id", instance=""), 1)
    await s.call("a", joining(s, group, "a-id", rack_id=""), 1)
    await s.call("a", joining(s, group, "a-id", timeout=-1), 1)
    await s.call("a", heartbeat(s, group, "a-id", 0, names=["events"], timeout=1000), 1)
    await s.call("a", heartbeat(s, group, "a-id", 0, names=["events"], timeout=1000, owned={"events": [1]}), 1)
    await s.call("a", heartbeat(s, group, "a-id", 0, timeout=1000, owned={}), 1)
    await s.call("a", heartbeat(s, group, "a-id", -2), 1)
    await s.call("a", heartbeat(s, group, "a-id", -3), 1)
    await s.call("a", joining(s, group, "a-id", assignor="nobody's"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, assignor="nobody's"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", heartbeat(s, group, "a-id", -2, instance="i"), 1)
    await describe(s, group)


@scenario
async def consumers_in_other_epochs_are_fenced(s: Session) -> None:
    group = "fenced"
    await settled_pair(s, group)
    await s.call("c", heartbeat(s, group, "c-id", 3), 1)
    await s.call("c", heartbeat(s, group, "c-id", -1), 1)
    await s.call("a", heartbeat(s, group, "a-id", 4), 1)
    s.note("the epoch before, as if the last answer had been lost")
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": [0, 1, 2]}), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"orders": [0]}), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={}), 1)
    await s.call("b", heartbeat(s, group, "b-id", 2, owned={}), 1)
    await describe(s, group)


@scenario
async def a_consumer_that_does_not_give_up_partitions_is_out(s: Session) -> None:
    group = "unrevoked"
    await s.call("a", joining(s, group, "a-id", timeout=1_500), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "b-id", timeout=1_500), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.sleep(1_000)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.sleep(800)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await describe(s, group)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await describe(s, group)


@scenario
async def a_silent_consumer_is_out(s: Session) -> None:
    group = "silent"
    await settled_pair(s, group)
    for _ in range(3):
        await s.sleep(1_800)
        await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await s.sleep(1_000)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 3), 1)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)


# Static members


@scenario
async def a_static_consumer_leaves_for_a_while(s: Session) -> None:
    group = "static"
    await s.call("a", joining(s, group, "a-id", instance="i"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "b-id"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, instance="i", owned={"events": [0, 1, 2]}), 1)
    s.note("somebody else comes while the place is taken")
    await s.call("c", joining(s, group, "c-id", instance="i"), 1)
    await s.call("a", joining(s, group, "a-id", instance="i"), 1)
    await s.call("c", heartbeat(s, group, "c-id", 2, instance="i"), 1)
    await s.call("c", heartbeat(s, group, "c-id", -2, instance="i"), 1)
    await s.call("c", heartbeat(s, group, "c-id", -1, instance="i"), 1)
    await s.call("c", heartbeat(s, group, "c-id", -2, instance="j"), 1)
    await s.call("c", heartbeat(s, group, "a-id", 2, instance="j"), 1)
    s.note("the place is left for a while")
    await s.call("a", heartbeat(s, group, "a-id", -2, instance="i"), 1)
    await describe(s, group)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await s.call("c", joining(s, group, "c-id", instance="i"), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 3, instance="i"), 1)
    await s.call("b", heartbeat(s, group, "b-id", 3), 1)
    await s.call("c", heartbeat(s, group, "c-id", 3, instance="i"), 1)
    s.note("left for good")
    await s.call("c", heartbeat(s, group, "c-id", -1, instance="i"), 1)
    await describe(s, group)


@scenario
async def a_static_consumer_comes_back_otherwise(s: Session) -> None:
    group = "static-otherwise"
    await s.call("a", joining(s, group, "a-id", instance="i"), 1)
    await s.call("a", heartbeat(s, group, "a-id", -2, instance="i"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", joining(s, group, "a-id", "events", instance="i", rack_id="r"), 1)
    await s.call("a", heartbeat(s, group, "a-id", -2, instance="i"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("c", joining(s, group, "c-id", "orders", instance="i"), 1)
    await describe(s, group)
    await s.call("c", heartbeat(s, group, "c-id", 3, instance="i", owned={}), 1)
    await describe(s, group)


@scenario
async def a_static_consumer_that_stays_away_is_out(s: Session) -> None:
    group = "static-away"
    await s.call("a", joining(s, group, "a-id", instance="i"), 1)
    await s.call("a", heartbeat(s, group, "a-id", -2, instance="i"), 1)
    await s.sleep(SESSION_MS + 500)
    await describe(s, group)
    await s.call("a", joining(s, group, "a-id", instance="i"), 1)


# Subscriptions


@scenario
async def a_consumer_subscribes_to_something_else(s: Session) -> None:
    group = "resubscribed"
    await s.call("a", joining(s, group, "a-id", "events", "events"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, names=["orders", "events"]), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", heartbeat(s, group, "a-id", 3, names=["orders"]), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 3, owned={"orders": [0, 1, 2]}), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 3), 1)
    await s.call("a", heartbeat(s, group, "a-id", 4, names=[]), 1)
    await s.call("a", heartbeat(s, group, "a-id", 4, owned={}), 1)
    await describe(s, group)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 4, names=["not-there"], owned={}), 1)
    await s.call("a", heartbeat(s, group, "a-id", 6, names=["not-there"], owned={}), 1)
    await describe(s, group)


@scenario
async def consumers_say_other_things_of_themselves(s: Session) -> None:
    group = "traits"
    await s.call("a", joining(s, group, "a-id", rack_id="r1"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, rack_id="r2"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, timeout=20_000), 1)
    await s.call("other", heartbeat(s, group, "a-id", 2), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "b-id", assignor="range"), 1)
    await s.call("c", joining(s, group, "c-id", assignor="uniform"), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2, assignor="range"), 1)
    await describe(s, group)


@scenario
async def topics_of_a_consumer_group_change(s: Session) -> None:
    group = "changing-topics"
    await s.call("a", joining(s, group, "a-id", "growing", "coming"), 1)
    await s.broker.make_topic("growing", 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.broker.add_partitions("growing", 3)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 3), 1)
    await s.broker.make_topic("unrelated", 1)
    await s.call("a", heartbeat(s, group, "a-id", 4), 1)
    await s.broker.make_topic("coming", 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 4), 1)
    await s.broker.drop_topic("growing")
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 5), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 5, owned={"coming": [0]}), 1)
    await describe(s, group)
    await s.broker.drop_topic("coming")
    await s.broker.drop_topic("unrelated")


# Offsets, and other protocols


@scenario
async def offsets_of_consumers(s: Session) -> None:
    group = "consumers-offsets"
    await settled_pair(s, group)
    for version in (8, 9, 10):
        ids = s.broker.topic_ids if version >= 10 else {}
        await s.call("a", commit(group, {"events": {0: (5, "m")}}, member_id="a-id", generation=3, ids=ids), version)
        await s.call("a", commit(group, {"events": {0: (5, None)}}, member_id="a-id", generation=4, ids=ids), version)
        await s.call("a", commit(group, {"events": {0: (5, None)}}, member_id="c-id", generation=3, ids=ids), version)
        await s.call("x", commit(group, {"events": {0: (5, None)}}, ids=ids), version)
    s.note("an older epoch, for what was assigned since then and before")
    await s.call("a", commit(group, {"events": {0: (6, None)}}, member_id="a-id", generation=2), 9)
    await s.call("b", commit(group, {"events": {2: (6, None)}}, member_id="b-id", generation=2), 9)
    await s.call("a", commit(group, {"events": {0: (7, None), 2: (7, None)}}, member_id="a-id", generation=2), 9)
    await s.call("a", commit(group, {"orders": {0: (7, None)}}, member_id="a-id", generation=3), 9)
    for member_id, epoch in (("a-id", 3), ("a-id", 2), ("a-id", 4), ("c-id", 3), ("a-id", -1), (None, -1)):
        await s.call("x", fetch_by(group, member_id, epoch), 9)
    await s.call("x", forget(group, {"events": [0], "orders": [0]}), 0)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.call("b", heartbeat(s, group, "b-id", -1), 1)
    s.note("without members")
    await s.call("x", commit(group, {"events": {1: (9, None)}}), 9)
    await s.call("x", commit(group, {"events": {1: (9, None)}}, member_id="a-id", generation=3), 9)
    await s.call("x", forget(group, {"events": [0]}), 0)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await s.call("x", fetch_by(group, None, -1), 9)


def fetch_by(group: str, member_id: str | None, epoch: int) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(name="events", partition_indexes=[0, 1, 2])]
    asked = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=topics)
    return OffsetFetchRequest(groups=[asked])


@scenario
async def consumer_groups_are_listed(s: Session) -> None:
    group = "listed-consumers"
    await s.call("a", joining(s, group, "a-id"), 1)
    await stable_alone(s, "listed-classic")
    for states, types in (([], []), ([], ["consumer"]), ([], ["Classic"]), (["stable"], []), (["Reconciling"], [])):
        await s.call("x", ListGroupsRequest(states_filter=states, types_filter=types), 5)
    await s.call("b", joining(s, group, "b-id"), 1)
    await s.call("x", ListGroupsRequest(types_filter=["CONSUMER"]), 5)
    await s.sleep(INTERVAL_MS)
    await s.call("b", heartbeat(s, group, "b-id", 2, owned={}), 1)
    await s.call("x", ListGroupsRequest(types_filter=["consumer"]), 5)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.call("b", heartbeat(s, group, "b-id", -1), 1)
    await s.call("x", ListGroupsRequest(types_filter=["consumer"]), 5)
    await s.call("x", ListGroupsRequest(), 4)
    await s.call("x", ListGroupsRequest(), 0)


@scenario
async def an_empty_classic_group_becomes_a_consumer_group(s: Session) -> None:
    group = "was-classic"
    member_id = await stable_alone(s, group)
    await s.call("x", ConsumerGroupDescribeRequest(group_ids=[group, "was-never", ""]), 1)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.call("a", leave(group, (member_id, None)), 3)
    await s.call("a", heartbeat(s, group, "a-id", 2), 1)
    await s.call("a", joining(s, group, "a-id"), 1)
    await describe(s, group)
    await s.call("a", beat(group, 1, member_id), 4)
    await s.call("a", sync(group, 1, member_id), 4)
    await s.call("a", leave(group, (member_id, None)), 3)


@scenario
async def a_group_of_offsets_becomes_a_consumer_group(s: Session) -> None:
    group = "was-simple"
    await s.call("x", commit(group, {"events": {0: (5, None)}}), 8)
    await s.call("a", joining(s, group, "a-id"), 1)
    await describe(s, group)
    await s.call("x", fetch_by(group, None, -1), 9)
    await s.call("x", commit(group, {"events": {0: (6, None)}}), 9)


@scenario
async def an_empty_consumer_group_becomes_a_classic_group(s: Session) -> None:
    group = "was-consumer"
    await s.call("a", joining(s, group, "a-id"), 1)
    await s.call("a", heartbeat(s, group, "a-id", -1), 1)
    await s.start("b", join(group), 3)
    await s.finish("b")
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)


# Several things at once


@scenario
async def a_consumer_changes_its_mind_while_it_gives_up_partitions(s: Session) -> None:
    group = "of-two-minds"
    await s.call("a", joining(s, group, "a-id", "events", "orders"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "b-id", "events"), 1)
    every = {"events": [0, 1, 2], "orders": [0, 1, 2]}
    await s.call("a", heartbeat(s, group, "a-id", 2, owned=every), 1)
    await describe(s, group)
    s.note("it drops a topic before it has given up anything")
    await s.call("a", heartbeat(s, group, "a-id", 2, names=["events"], owned=every), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 2, owned={"events": [0]}), 1)
    await describe(s, group)
    s.note("and takes it back")
    await s.call("a", heartbeat(s, group, "a-id", 3, names=["events", "orders"], owned={"events": [0]}), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "a-id", 3, owned={"events": [0]}), 1)
    await describe(s, group)


@scenario
async def consumers_lag_several_epochs_behind(s: Session) -> None:
    group = "lagging"
    await s.call("a", joining(s, group, "member-a"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", joining(s, group, "member-b"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("c", joining(s, group, "member-c"), 1)
    await describe(s, group)
    await s.call("b", heartbeat(s, group, "member-b", 3, owned={}), 1)
    await s.call("a", heartbeat(s, group, "member-a", 2, owned={"events": [0, 1, 2]}), 1)
    s.note("the others go, and all comes back to the one that gives it up")
    await s.call("c", heartbeat(s, group, "member-c", -1), 1)
    await s.call("b", heartbeat(s, group, "member-b", -1), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", heartbeat(s, group, "member-a", 2, owned={"events": [0, 1, 2]}), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "member-a", 2, owned={"events": [0]}), 1)
    await describe(s, group)


@scenario
async def a_full_group_takes_nobody_in_a_place_that_was_left(s: Session) -> None:
    group = "full-static"
    for client in "abc":
        await s.call(client, joining(s, group, f"{client}-id", instance=client), 1)
    await s.call("a", heartbeat(s, group, "a-id", -2, instance="a"), 1)
    await s.call("d", joining(s, group, "d-id", instance="a"), 1)
    await s.call("a", joining(s, group, "a-id", instance="a"), 1)


@scenario
async def an_administrator_removes_a_static_consumer(s: Session) -> None:
    group = "removed"
    await s.call("a", joining(s, group, "a-id", instance="i"), 1)
    await s.call("b", joining(s, group, "b-id"), 1)
    await s.call("x", leave(group, ("", "j")), 5)
    await s.call("x", leave(group, ("", None)), 5)
    await s.call("x", leave(group, ("a-id", "i"), ("b-id", None)), 5)
    await describe(s, group)
    await s.call("x", leave(group, ("", "i")), 5)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-id", 2, instance="i"), 1)
