"""What members of streams groups (KIP-1071) do to a coordinator. Each function is one transcript in `transcripts/`."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    TaskOffset,
)

from .consumer_scenarios import joining as consumer_joining
from .scenarios import beat, commit, fetch, forget, join, leave, scenario, stable_alone, sync
from .session import Session
from .streams_requests import (
    ONE_TASK_A_PARTITION,
    WITH_STORE,
    streams_beat,
    streams_joining,
    subtopology,
    topic_info,
    topology,
)

DELAY_MS = 600
"""More than `group.streams.initial.rebalance.delay.ms`."""
INTERVAL_MS = 1_200
"""A little more than `group.streams.assignment.interval.ms`: the next heartbeat may compute an assignment."""
SESSION_MS = 6_000
"""`group.streams.session.timeout.ms`."""
ALL = {"0": [0, 1, 2]}


async def describe(s: Session, *groups: str) -> None:
    await s.call("x", StreamsGroupDescribeRequest(group_ids=list(groups)), 0)


async def call(s: Session, client: str, *arguments: Any, **fields: Any) -> Any:
    return await s.call(client, streams_beat(*arguments, **fields), 0)


def committing(group: str, member_id: str, epoch: int, offset: int) -> Any:
    return commit(group, {"events": {0: (offset, None)}}, member_id=member_id, generation=epoch)


async def settled_alone(s: Session, group: str, **fields: Any) -> int:
    """`a` has all tasks. The epoch of the group."""
    s.tells_words = True
    epoch = (await s.call("a", streams_joining(group, "a-id", **fields), 0)).member_epoch
    await s.sleep(DELAY_MS)
    epoch = (await call(s, "a", group, "a-id", epoch, active={})).member_epoch
    await s.sleep(INTERVAL_MS)
    return epoch


# Joining and leaving


@scenario
async def a_streams_member_joins_alone_and_leaves(s: Session) -> None:
    group = "streams-alone"
    s.tells_words = True
    await describe(s, group)
    await call(s, "a", group, "a-id", 1)
    await call(s, "a", group, "a-id", -1)
    await s.call("a", streams_joining(group, "a-id", tags={"zone": "1", "area": "2"}, rack_id="r"), 0)
    await describe(s, group)
    await s.call("x", ListGroupsRequest(types_filter=["streams"]), 5)
    await call(s, "a", group, "a-id", 1, active={})
    await s.sleep(DELAY_MS)
    await describe(s, group)
    await call(s, "a", group, "a-id", 1, active={})
    await describe(s, group)
    await call(s, "a", group, "a-id", 2, active=ALL)
    await call(s, "a", group, "a-id", 2)
    await s.call("x", StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), 0)
    await s.call("x", ListGroupsRequest(types_filter=["Streams"], states_filter=["Stable"]), 5)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("x", ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await call(s, "a", group, "b-id", -1)
    await call(s, "a", group, "a-id", -1)
    await describe(s, group)
    await call(s, "a", group, "a-id", 2)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)
    await describe(s, group)


@scenario
async def a_streams_member_says_what_is_wrong(s: Session) -> None:
    group = "streams-wrong"
    s.tells_words = True
    await s.call("a", streams_joining(group, ""), 0)
    await s.call("a", streams_joining("", "a-id"), 0)
    await s.call("a", streams_joining(group, "a-id", rack_id=" "), 0)
    await s.call("a", streams_joining(group, "a-id", instance_id="i"), 0)
    await s.call("a", streams_joining(group, "a-id", rebalance=-1), 0)
    await call(s, "a", group, "a-id", rebalance=1000, topology=ONE_TASK_A_PARTITION)
    await call(s, "a", group, "a-id", rebalance=1000, topology=ONE_TASK_A_PARTITION, active={"0": [0]})
    await call(s, "a", group, "a-id", rebalance=1000, topology=ONE_TASK_A_PARTITION, active={}, standby={"0": [1]})
    await call(s, "a", group, "a-id", rebalance=1000, active={})
    await call(s, "a", group, "a-id", -2)
    await call(s, "a", group, "a-id", -3)
    await call(s, "a", group, "a-id", 1, topology=ONE_TASK_A_PARTITION)
    await call(s, "a", group, "a-id", 1, task_offsets=[TaskOffset(subtopology_id="0", partition=0, offset=1)])
    await call(s, "a", group, "a-id", 1, task_end_offsets=[])
    fixed = topology(subtopology("0", "events", changelogs=[topic_info("store-changelog", 3)]))
    await s.call("a", streams_joining(group, "a-id", fixed), 0)
    await s.call("a", streams_joining(group, "a-id", topology(subtopology("0", "__consumer_offsets"))), 0)
    await s.call("a", streams_joining(group, "a-id", topology(subtopology("0", "not/valid"))), 0)
    await s.call("a", streams_joining(group, "a-id", topology(subtopology("0"))), 0)
    never_sunk = topology(subtopology("0", "events", repartition=[topic_info("never-sunk")]))
    await s.call("a", streams_joining(group, "a-id", never_sunk), 0)
    loop = topology(
        subtopology("0", sinks=["r-1"], repartition=[topic_info("r-2")]),
        subtopology("1", sinks=["r-2"], repartition=[topic_info("r-1")]),
    )
    await s.call("a", streams_joining(group, "a-id", loop), 0)
    await describe(s, group)


@scenario
async def a_streams_member_in_a_wrong_epoch_is_fenced(s: Session) -> None:
    group = "streams-fenced"
    epoch = await settled_alone(s, group)
    await call(s, "a", group, "a-id", epoch + 1)
    await call(s, "a", group, "a-id", epoch - 1)
    s.note("the answer with the newest epoch may have been lost")
    await call(s, "a", group, "a-id", 1, active={"0": [0, 1]})
    await call(s, "a", group, "a-id", 1, active={"0": [0, 7]})
    await call(s, "a", group, "a-id", 1, active={"1": [0]})
    await call(s, "a", group, "a-id", epoch, active={"0": [3]})
    await call(s, "a", group, "a-id", epoch, active={"9": [0]})
    await call(s, "a", group, "a-id", epoch, active=ALL)
    s.note("it joins again")
    await s.call("a", streams_joining(group, "a-id"), 0)
    s.note("it has another topology")
    other = topology(subtopology("0", "orders"))
    await s.call("b", streams_joining(group, "b-id", other), 0)
    await s.call("b", streams_joining(group, "b-id", topology(subtopology("0", "events"), epoch=1)), 0)


@scenario
async def two_streams_members_share_tasks(s: Session) -> None:
    group = "streams-pair"
    epoch = await settled_alone(s, group)
    joined = await s.call("b", streams_joining(group, "b-id"), 0)
    await describe(s, group)
    s.note("a says nothing of its tasks")
    await call(s, "a", group, "a-id", epoch)
    kept = (await call(s, "a", group, "a-id", epoch, active=ALL)).active_tasks
    await describe(s, group)
    await s.sleep(50)
    await call(s, "b", group, "b-id", joined.member_epoch, active={})
    owned = {"0": [1, 2]} if kept is None else {each.subtopology_id: each.partitions for each in kept}
    await call(s, "a", group, "a-id", epoch, active=owned)
    await call(s, "b", group, "b-id", joined.member_epoch, active={})
    await describe(s, group)
    s.note("another thread of b's process comes, and the assignment is delayed")
    await s.call("c", streams_joining(group, "c-id", process="process-of-b-id"), 0)
    await s.sleep(INTERVAL_MS)
    await call(s, "c", group, "c-id", joined.member_epoch, active={})
    await call(s, "b", group, "b-id", joined.member_epoch, active={})
    await describe(s, group)


@scenario
async def a_full_streams_group_takes_nobody_else(s: Session) -> None:
    group = "streams-full"
    s.tells_words = True
    for name in ("a", "b", "c", "d"):
        await s.call(name, streams_joining(group, f"{name}-id"), 0)
    s.note("as in Kafka, a member cannot join again either")
    await s.call("a", streams_joining(group, "a-id"), 0)


# Topics


@scenario
async def internal_topics_of_a_streams_group_are_created(s: Session) -> None:
    group = "streams-internal"
    s.tells_words = True
    counting = topology(
        subtopology("0", "events", sinks=["words-repartition"]),
        subtopology(
            "1",
            repartition=[topic_info("words-repartition", cleanup_policy="delete")],
            changelogs=[topic_info("counts-changelog", cleanup_policy="compact")],
        ),
    )
    await s.call("a", streams_joining(group, "a-id", counting), 0)
    await describe(s, group)
    await s.sleep(DELAY_MS)
    epoch = (await call(s, "a", group, "a-id", 1, active={})).member_epoch
    await describe(s, group)
    await call(s, "a", group, "a-id", epoch, active={"0": [0, 1, 2], "1": [0, 1, 2]})
    s.note("a source grows, and internal topics do not fit any more")
    await s.sleep(INTERVAL_MS)
    await s.broker.add_partitions("words-repartition", 4)
    await s.sleep(300)
    await call(s, "a", group, "a-id", epoch)
    await describe(s, group)


@scenario
async def a_streams_group_waits_for_its_sources(s: Session) -> None:
    group = "streams-sources"
    s.tells_words = True
    sources = ("late-1", "late-2", "late-3", "late-4", "late-5")
    await s.call("a", streams_joining(group, "a-id", topology(subtopology("0", *sources))), 0)
    await describe(s, group)
    await s.sleep(DELAY_MS)
    await call(s, "a", group, "a-id", 1)
    await call(s, "a", group, "a-id", 3, active={})
    for name in sources:
        await s.broker.make_topic(name, 2)
    await s.sleep(INTERVAL_MS)
    epoch = (await call(s, "a", group, "a-id", 3, active={})).member_epoch
    await describe(s, group)
    await s.sleep(INTERVAL_MS)
    s.note("a source goes")
    await s.broker.drop_topic("late-3")
    await s.sleep(300)
    await call(s, "a", group, "a-id", epoch, active={"0": [0, 1]})
    await call(s, "a", group, "a-id", epoch, active={})
    await describe(s, group)


@scenario
async def topics_of_a_streams_group_are_not_copartitioned(s: Session) -> None:
    s.tells_words = True
    await s.broker.make_topic("five", 5)
    await s.sleep(300)
    three_and_five = topology(subtopology("0", "events", "five", copartition=[([0, 1], [])]))
    await s.call("a", streams_joining("streams-copartitioned-1", "a-id", three_and_five), 0)
    fixed = topology(
        subtopology("0", "five", sinks=["fixed-repartition"]),
        subtopology("1", "events", repartition=[topic_info("fixed-repartition", 4)], copartition=[([0], [0])]),
    )
    await s.call("a", streams_joining("streams-copartitioned-2", "a-id", fixed), 0)
    two_fixed = topology(
        subtopology("0", "five", sinks=["fixed-4", "fixed-5"]),
        subtopology("1", repartition=[topic_info("fixed-4", 4), topic_info("fixed-5", 5)], copartition=[([], [0, 1])]),
    )
    await s.call("a", streams_joining("streams-copartitioned-3", "a-id", two_fixed), 0)
    s.note("a repartition topic follows the source that it is read with")
    follows = topology(
        subtopology("0", "five", sinks=["follower-repartition"]),
        subtopology(
            "1",
            "events",
            repartition=[topic_info("follower-repartition")],
            changelogs=[topic_info("follower-changelog")],
            copartition=[([0], [0])],
        ),
    )
    await s.call("a", streams_joining("streams-copartitioned-4", "a-id", follows), 0)
    await s.sleep(DELAY_MS)
    await call(s, "a", "streams-copartitioned-4", "a-id", 1, active={})
    await describe(s, "streams-copartitioned-4")


# Standby tasks, endpoints, shutdown


@scenario
async def a_streams_group_has_standby_tasks(s: Session) -> None:
    group = "streams-standby"
    await s.broker.configure_group(group, {"streams.num.standby.replicas": "1"})
    await s.broker.make_topic("store-changelog", 3)
    await s.sleep(300)
    epoch = await settled_alone(s, group, topology=WITH_STORE)
    joined = await s.call("b", streams_joining(group, "b-id", WITH_STORE), 0)
    kept = (await call(s, "a", group, "a-id", epoch, active=ALL)).active_tasks
    owned = {each.subtopology_id: each.partitions for each in kept or ()}
    last = await call(s, "a", group, "a-id", epoch, active=owned)
    await call(s, "b", group, "b-id", joined.member_epoch, active={})
    await describe(s, group)
    s.note("no standby tasks any more")
    await s.sleep(INTERVAL_MS)
    await s.broker.configure_group(group, {"streams.num.standby.replicas": "0"})
    await call(s, "a", group, "a-id", last.member_epoch)
    await describe(s, group)


@scenario
async def streams_members_tell_endpoints(s: Session) -> None:
    group = "streams-endpoints"
    s.tells_words = True
    await s.call("a", streams_joining(group, "a-id", endpoint=("a.example", 1234)), 0)
    await s.sleep(DELAY_MS)
    await call(s, "a", group, "a-id", 1, active={}, endpoint_epoch=0)
    await call(s, "a", group, "a-id", 3, active=ALL, endpoint_epoch=0)
    answer = await call(s, "a", group, "a-id", 2, active=ALL, endpoint_epoch=1)
    await s.sleep(INTERVAL_MS)
    await s.call("b", streams_joining(group, "b-id", endpoint=("b.example", 99)), 0)
    await call(s, "a", group, "a-id", 2, active=ALL, endpoint_epoch=answer.endpoint_information_epoch)
    await describe(s, group)


@scenario
async def a_streams_member_asks_for_a_shutdown(s: Session) -> None:
    group = "streams-shutdown"
    epoch = await settled_alone(s, group)
    await s.call("b", streams_joining(group, "b-id"), 0)
    await call(s, "b", group, "b-id", -1, shutdown_application=True)
    await call(s, "a", group, "a-id", epoch, shutdown_application=True)
    await call(s, "a", group, "a-id", -1)
    s.note("who comes afterwards runs")
    await s.call("a", streams_joining(group, "a-id"), 0)


# Timeouts


@scenario
async def a_streams_member_that_is_silent_is_removed(s: Session) -> None:
    group = "streams-silent"
    epoch = await settled_alone(s, group)
    await s.call("b", streams_joining(group, "b-id"), 0)
    for _ in range(3):
        await s.sleep(SESSION_MS // 2)
        await call(s, "a", group, "a-id", epoch)
    await describe(s, group)


@scenario
async def a_streams_member_that_does_not_give_up_tasks_is_removed(s: Session) -> None:
    group = "streams-greedy"
    epoch = await settled_alone(s, group, rebalance=2_000)
    await s.call("b", streams_joining(group, "b-id"), 0)
    await call(s, "a", group, "a-id", epoch, active=ALL)
    await s.sleep(1_000)
    await call(s, "a", group, "a-id", epoch, active=ALL)
    await s.sleep(1_500)
    await call(s, "a", group, "a-id", epoch, active=ALL)
    await describe(s, group)


# Offsets


@scenario
async def streams_members_commit_and_fetch_offsets(s: Session) -> None:
    group = "streams-offsets"
    epoch = await settled_alone(s, group)
    for version in (8, 9):
        await s.call("a", committing(group, "a-id", epoch, 5), version)
    await s.call("a", committing(group, "a-id", epoch + 1, 6), 9)
    await s.call("a", committing(group, "a-id", 1, 7), 9)
    await s.call("a", committing(group, "b-id", epoch, 8), 9)
    await s.call("x", committing(group, "", -1, 9), 9)
    await s.call("a", fetch(7, [group], {"events": [0]}, {}), 7)
    s.note("an older epoch, in which it had the task")
    await s.call("b", streams_joining(group, "b-id"), 0)
    await call(s, "a", group, "a-id", epoch, active=ALL)
    kept = (await call(s, "a", group, "a-id", epoch, active={"0": [0]})).member_epoch
    assert kept >= epoch
    await s.call("a", committing(group, "a-id", epoch, 10), 9)
    await s.call("a", forget(group, {"events": [0]}), 0)
    await call(s, "a", group, "a-id", -1)
    await call(s, "b", group, "b-id", -1)
    await s.call("x", committing(group, "", -1, 11), 9)
    await s.call("x", DeleteGroupsRequest(groups_names=[group]), 2)


# Other types of groups


@scenario
async def a_group_of_offsets_becomes_a_streams_group(s: Session) -> None:
    group = "streams-of-offsets"
    s.tells_words = True
    await s.call("x", committing(group, "", -1, 5), 8)
    await s.call("a", streams_joining(group, "a-id"), 0)
    await s.call("a", fetch(7, [group], {"events": [0]}, {}), 7)
    await describe(s, group)


@scenario
async def an_empty_streams_group_becomes_a_classic_group(s: Session) -> None:
    group = "streams-to-classic"
    await settled_alone(s, group)
    await s.call("c", join(group), 5)
    await s.call("c", join(group, "c-id"), 5)
    await s.call("c", sync(group, 1, "c-id"), 3)
    await s.call("c", beat(group, 1, "c-id"), 3)
    await s.call("c", leave(group, ("c-id", None)), 3)
    await s.call("c", consumer_joining(s, group, "c-id"), 1)
    await s.call("c", ConsumerGroupHeartbeatRequest(group_id=group, member_id="c-id", member_epoch=1), 1)
    await call(s, "a", group, "a-id", -1)
    await s.call("c", consumer_joining(s, group, "c-id"), 1)
    await s.call("c", join(group), 5)


@scenario
async def a_classic_group_with_members_does_not_become_a_streams_group(s: Session) -> None:
    group = "classic-stays"
    s.tells_words = True
    member_id = await stable_alone(s, group)
    await s.call("a", streams_joining(group, "a-id"), 0)
    await describe(s, group)
    await s.call("c", leave(group, (member_id, None)), 3)
    await s.call("a", streams_joining(group, "a-id"), 0)
