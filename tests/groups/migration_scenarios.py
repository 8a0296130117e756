"""Groups that change their protocol while members run (KIP-848). Each function is one transcript in `transcripts/`.

Everybody asks for the range assignor, whose answer goes by the order of member ids: those that the coordinator hands
out begin with the client's id.
"""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.compile import encode
from pykbroker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest

from .consumer_scenarios import INTERVAL_MS, describe, heartbeat, joining
from .scenarios import beat, commit, fetch, join, leave, scenario, sync
from .session import Session

VERSION = 1


def subscription(*topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    partitions = [
        ConsumerProtocolSubscriptionTopicPartition(topic=name, partitions=indexes)
        for name, indexes in (owned or {}).items()
    ]
    message = ConsumerProtocolSubscription(topics=list(topics or ("events",)), owned_partitions=partitions)
    return VERSION.to_bytes(2, "big") + encode(message, VERSION)


def assignment(user_data: bytes | None = None, **topics: list[int]) -> bytes:
    partitions = [
        ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=indexes) for name, indexes in topics.items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=user_data)
    return VERSION.to_bytes(2, "big") + encode(message, VERSION)


def rejoin(group: str, member_id: str, owned: dict[str, list[int]] | None = None, **fields: Any) -> Any:
    protocols = {"range": subscription("events", owned=owned)}
    return join(group, member_id, **{"protocols": protocols, **fields})


async def classic_alone(s: Session, group: str, client: str = "a", **fields: Any) -> str:
    """The only member of generation 1, with all partitions of events."""
    is_static = "instance" in fields
    await s.start(client, rejoin(group, "", **fields), 5 if is_static else 3)
    member_id = str((await s.finish(client)).member_id)
    everything = assignment(events=[0, 1, 2])
    request = sync(group, 1, member_id, {member_id: everything}, instance=fields.get("instance"))
    await s.call(client, request, 5)
    return member_id


def consumer(s: Session, group: str, member_id: str, **fields: Any) -> Any:
    return joining(s, group, member_id, assignor="range", **fields)


@scenario
async def a_consumer_upgrades_a_classic_group_and_its_leaving_downgrades_it(s: Session) -> None:
    group = "upgraded"
    ids = s.broker.topic_ids
    a = await classic_alone(s, group)
    await s.call("a", commit(group, {"events": {0: (5, "")}}, generation=1, member_id=a), 8)
    await s.call("b", consumer(s, group, "b-id"), 1)
    await describe(s, group)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    s.note("a is told to rejoin, and what it has to give up")
    await s.call("a", beat(group, 1, a), 4)
    await s.call("a", commit(group, {"events": {0: (6, "")}}, generation=1, member_id=a), 8)
    await s.call("a", sync(group, 1, a), 5)
    await s.call("a", rejoin(group, a, {"events": [0, 1, 2]}), 9)
    await s.call("a", sync(group, 1, a), 5)
    await s.call("b", heartbeat(s, group, "b-id", 2, owned={}), 1)
    await s.call("a", beat(group, 1, a), 4)
    s.note("it has given it up")
    await s.call("a", rejoin(group, a, {"events": [0, 1]}), 9)
    await s.call("a", sync(group, 2, a), 5)
    await s.call("a", beat(group, 2, a), 4)
    await s.call("a", beat(group, 1, a), 4)
    await s.call("b", heartbeat(s, group, "b-id", 2), 1)
    await describe(s, group)
    await s.call("a", commit(group, {"events": {1: (7, "")}}, generation=2, member_id=a), 8)
    await s.call("a", commit(group, {"events": {1: (8, "")}}, generation=1, member_id=a), 8)
    await s.call("a", commit(group, {"events": {1: (9, "")}}, generation=3, member_id=a), 8)
    s.note("b leaves")
    await s.call("b", heartbeat(s, group, "b-id", -1), 1)
    await describe(s, group)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("a", beat(group, 2, a), 4)
    await s.call("a", rejoin(group, a, {"events": [0, 1]}), 9)
    await s.call("a", sync(group, 3, a, {a: assignment(events=[0, 1, 2])}), 5)
    await s.call("a", beat(group, 3, a), 4)
    await s.call("x", fetch(8, [group], {"events": [0, 1]}, ids), 8)


@scenario
async def a_group_that_consumers_cannot_take_part_in_stays_classic(s: Session) -> None:
    await s.start("a", join("connectors", type="connect"), 3)
    await s.finish("a")
    await s.call("b", consumer(s, "connectors", "b-id"), 1)
    s.note("an assignor of their own")
    await s.start("c", rejoin("own-assignor", ""), 3)
    c = (await s.finish("c")).member_id
    await s.call("c", sync("own-assignor", 1, c, {c: assignment(b"mine", events=[0])}), 5)
    await s.call("b", consumer(s, "own-assignor", "b-id"), 1)
    s.note("an assignment that is none")
    await s.start("d", rejoin("malformed", ""), 3)
    d = (await s.finish("d")).member_id
    await s.call("d", sync("malformed", 1, d, {d: b"\x00"}), 5)
    await s.call("b", consumer(s, "malformed", "b-id"), 1)
    await s.call("b", heartbeat(s, "malformed", "b-id", 1), 1)
    await s.call("x", ListGroupsRequest(), 5)


@scenario
async def a_classic_member_joins_a_consumer_group(s: Session) -> None:
    group = "mixed"
    await s.call("b", consumer(s, group, "b-id"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", rejoin(group, "", protocols={"range": b"\x00\x00"}, type="connect"), 9)
    required = (await s.call("a", rejoin(group, ""), 9)).member_id
    await s.call("a", rejoin(group, "a-chosen"), 9)
    await s.call("x", ListGroupsRequest(), 5)
    await s.call("a", sync(group, 3, "a-chosen", protocol="sticky"), 5)
    await s.call("a", sync(group, 3, "a-chosen", type="connect"), 5)
    await s.call("a", sync(group, 3, "a-chosen", type=None, protocol=None), 5)
    await s.call("a", sync(group, 3, "nobody"), 5)
    await s.call("a", sync(group, 2, "a-chosen"), 5)
    await s.call("a", sync(group, 3, "b-id"), 5)
    await s.call("a", sync(group, 3, "a-chosen"), 5)
    await s.call("a", beat(group, 3, "a-chosen"), 4)
    s.note("b gives up what a gets")
    await s.call("b", heartbeat(s, group, "b-id", 2, owned={"events": [0, 1, 2]}), 1)
    await s.call("b", heartbeat(s, group, "b-id", 2, owned={"events": [2]}), 1)
    await s.call("a", beat(group, 3, "a-chosen"), 4)
    await s.call("a", rejoin(group, "a-chosen", {}), 9)
    await s.call("a", sync(group, 3, "a-chosen"), 5)
    await describe(s, group)
    s.note("no protocol in common with the classic members")
    await s.call("c", join(group, "c-chosen", protocols={"sticky": subscription("events")}), 9)
    await s.call("c", join(group, "c-chosen", protocols={"sticky": subscription(), "range": subscription()}), 9)
    s.note("the group is full")
    await s.call("d", rejoin(group, "d-chosen"), 9)
    await s.call("x", leave(group, ("c-chosen", None), ("nobody", None), ("c-chosen", "i1"), ("", "i1")), 5)
    await s.call("a", leave(group, ("a-chosen", None)), 5)
    await describe(s, group)
    await s.call("b", beat(group, 3, "b-id"), 4)
    assert required != "a-chosen"


@scenario
async def a_classic_member_that_is_silent_is_removed_from_a_consumer_group(s: Session) -> None:
    group = "silent"
    await s.call("b", consumer(s, group, "b-id"), 1)
    await s.sleep(INTERVAL_MS)
    await s.call("a", rejoin(group, "a-chosen", session=2_000), 9)
    await s.call("a", sync(group, 3, "a-chosen"), 5)
    await s.sleep(3_000)
    await s.call("a", beat(group, 3, "a-chosen"), 4)
    await describe(s, group)


@scenario
async def members_in_a_rebalance_are_told_to_rejoin_when_the_group_is_upgraded(s: Session) -> None:
    """Of several members at once the records are in whatever order Kafka's hash map has; they are not told."""
    group = "rebalancing"
    s.without_records.add(group)
    a = await classic_alone(s, group)
    await s.start("c", rejoin(group, ""), 3)
    await s.call("b", consumer(s, group, "b-id"), 1)
    c = (await s.finish("c")).member_id
    await describe(s, group)
    await s.call("a", beat(group, 1, a), 4)
    await s.call("a", leave(group, (a, None)), 5)
    await s.call("c", leave(group, (c, None)), 5)


@scenario
async def static_members_change_their_protocol_one_after_the_other(s: Session) -> None:
    group = "static-migration"
    await classic_alone(s, group, "a", instance="ia")
    s.note("the upgraded ia")
    await s.call("a", consumer(s, group, "a-new", instance="ia"), 1)
    await describe(s, group)
    await s.call("a", heartbeat(s, group, "a-new", 1, owned={"events": [0, 1, 2]}), 1)
    s.note("and back again")
    again = (await s.call("a", rejoin(group, "", instance="ia"), 9)).member_id
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("a", sync(group, 1, again, instance="ia"), 5)
    await s.call("a", beat(group, 1, again, "ia"), 4)


@scenario
async def the_last_consumer_becomes_a_classic_member_before_there_is_an_assignment(s: Session) -> None:
    group = "unsettled-alone"
    await s.call("b", consumer(s, group, "b-id", instance="ib"), 1)
    s.note("it subscribes to something else, and the assignment is not due")
    await s.call("b", heartbeat(s, group, "b-id", 2, names=["events", "orders"]), 1)
    await describe(s, group)
    both = {"range": subscription("events", "orders")}
    b = (await s.call("b", rejoin(group, "", protocols=both, instance="ib"), 9)).member_id
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("b", sync(group, 0, b, instance="ib"), 5)
    await s.call("b", beat(group, 0, b, "ib"), 4)
    await s.call("b", beat(group, 3, b, "ib"), 4)
    await s.call("b", rejoin(group, b, protocols=both, instance="ib"), 9)


@scenario
async def the_last_consumer_becomes_a_classic_member_with_another_subscription(s: Session) -> None:
    group = "unsettled-otherwise"
    await s.call("b", consumer(s, group, "b-id", instance="ib"), 1)
    await s.sleep(INTERVAL_MS)
    both = {"range": subscription("events", "orders")}
    b = (await s.call("b", rejoin(group, "", protocols=both, instance="ib"), 9)).member_id
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("b", beat(group, 2, b, "ib"), 4)
    await s.call("b", beat(group, 3, b, "ib"), 4)
    await s.call("b", rejoin(group, b, protocols=both, instance="ib"), 9)


@scenario
async def the_last_consumer_becomes_a_classic_member_where_another_is_in_the_group(s: Session) -> None:
    """The id of one is in front of any that the coordinator gives to the other."""
    group = "unsettled-two"
    await s.call("b", consumer(s, group, "b-id", instance="ib"), 1)
    await s.call("a", rejoin(group, "!a"), 9)
    b = (await s.call("b", rejoin(group, "", instance="ib"), 9)).member_id
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)
    await s.call("b", beat(group, 0, b, "ib"), 4)
    await s.call("b", beat(group, 3, b, "ib"), 4)
    await s.call("a", beat(group, 3, "!a"), 4)
    await s.start("b", rejoin(group, b, instance="ib"), 9)
    await s.start("a", rejoin(group, "!a"), 9)
    await s.finish("b")
    await s.finish("a")
    await s.call("x", DescribeGroupsRequest(groups=[group]), 6)


@scenario
async def classic_members_go_by_the_assignment_while_the_group_is_ahead_of_it(s: Session) -> None:
    group = "ahead-of-it"
    await s.call("b", consumer(s, group, "b-id"), 1)
    await s.call("a", rejoin(group, "a-chosen"), 9)
    await s.call("a", beat(group, 1, "a-chosen"), 4)
    await s.call("a", beat(group, 2, "a-chosen"), 4)
    await s.call("a", beat(group, 3, "a-chosen"), 4)
    await s.call("a", sync(group, 1, "a-chosen"), 5)
    await s.call("a", sync(group, 2, "a-chosen"), 5)
    await describe(s, group)
    await s.sleep(INTERVAL_MS)
    s.note("the assignment is due")
    await s.call("b", heartbeat(s, group, "b-id", 2), 1)
    await s.call("a", beat(group, 2, "a-chosen"), 4)
    await s.call("a", sync(group, 2, "a-chosen"), 5)
    await s.call("a", rejoin(group, "a-chosen"), 9)
    await describe(s, group)
