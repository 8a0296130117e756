"""More of the classic protocol: what happens between its states, and requests at its edges."""

from __future__ import annotations

from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest
from pykbroker.protocol.messages.groups import LeaveGroupRequest, MemberIdentity

from .scenarios import (
    beat,
    commit,
    fetch,
    forget,
    join,
    leave,
    scenario,
    stable_alone,
    stable_pair,
    subscription,
    sync,
)
from .session import Session


@scenario
async def leaving_while_members_join(s: Session) -> None:
    group = "leaving-joining"
    s.note("the initial delay is not cut short, and a group that nobody is in then is empty")
    await s.start("a", join(group), 3)
    await s.sleep(100)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)
    await s.call("x", leave(group, ("nobody", None)), 5)
    first = (await s.finish("a")).member_id
    await s.call("a", sync(group, 1, first, {first: b"all"}), 4)
    s.note("whoever does not rejoin and leaves is not waited for any more")
    await s.start("b", join(group), 3)
    await s.call("a", leave(group, (first, None)), 5)
    second = (await s.finish("b")).member_id
    await s.call("a", join(group, first), 9)
    s.note("leaving before the assignment")
    await s.call("b", leave(group, (second, None)), 5)
    await s.call("b", sync(group, 2, second), 5)
    await s.call("b", beat(group, 2, second), 4)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)


@scenario
async def a_member_leaves_before_the_assignment(s: Session) -> None:
    group = "leaving-syncing"
    await s.start("a", join(group), 3)
    await s.start("b", join(group), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)
    await s.call("a", beat(group, 1, first), 4)
    await s.start("b", sync(group, 1, second), 5)
    await s.call("a", leave(group, (first, None)), 5)
    await s.finish("b")
    await s.call("b", sync(group, 1, second), 5)
    await s.start("b", join(group, second), 9)
    await s.finish("b")
    await s.call("b", sync(group, 2, second, {second: b"all"}), 5)
    await s.call("b", sync(group, 2, second, {second: b"another one"}), 5)


@scenario
async def assignments_that_are_odd(s: Session) -> None:
    group = "odd-assignments"
    await s.start("a", join(group), 3)
    await s.start("b", join(group), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    s.note("a follower's assignment does not count, nor one for a stranger")
    await s.start("b", sync(group, 1, second, {second: b"mine"}), 5)
    await s.call("a", sync(group, 1, first, {first: b"one", "stranger": b"x"}), 5)
    await s.finish("b")
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)


@scenario
async def protocols_change_with_the_members(s: Session) -> None:
    group = "protocol-change"
    eager, cooperative = {"range": subscription("events")}, {"cooperative-sticky": subscription("events", version=3)}
    first = await stable_alone(s, group, protocols=eager | cooperative)
    await s.call("b", join(group, protocols=cooperative | {"other": b""}), 9)
    await s.start("b", join(group, protocols=cooperative | {"other": b""}), 3)
    await s.start("a", join(group, first, protocols=eager | cooperative), 9)
    await s.finish("a")
    second = (await s.finish("b")).member_id
    await s.start("b", sync(group, 2, second, protocol="cooperative-sticky"), 5)
    await s.call("a", sync(group, 2, first, {first: b"1"}, protocol="range"), 5)
    await s.call("a", sync(group, 2, first, {first: b"1", second: b"2"}, protocol="cooperative-sticky"), 5)
    await s.finish("b")
    s.note("one that no other member has is refused, also to a member")
    await s.call("a", join(group, first, protocols=eager), 9)
    s.note("an empty group takes any type")
    await s.call("x", leave(group, (first, None), (second, None)), 5)
    await s.start("a", join(group, type="connect", protocols={"v": b"\0"}), 3)
    await s.finish("a")
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)


@scenario
async def member_ids_that_were_handed_out(s: Session) -> None:
    group = "handed-out"
    pending = (await s.call("a", join(group), 9)).member_id
    s.note("it is no member yet")
    await s.call("a", beat(group, 0, pending), 4)
    await s.call("a", sync(group, 0, pending), 5)
    await s.call("a", commit(group, {"events": {0: (1, "")}}, generation=0, member_id=pending), 9)
    await s.start("a", join(group, pending, protocols={"sticky": subscription("events")}), 9)
    first = (await s.finish("a")).member_id
    await s.call("a", sync(group, 1, first, {first: b"all"}, protocol="sticky"), 5)
    s.note("a rebalance waits for whoever got an id, unless its request is refused")
    other = (await s.call("b", join(group, protocols={"sticky": subscription("events")}), 9)).member_id
    await s.call("b", join(group, other), 9)
    await s.start("c", join(group, protocols={"sticky": subscription("events")}), 3)
    await s.start("a", join(group, first, protocols={"sticky": subscription("events")}), 9)
    await s.call("a2", beat(group, 1, first), 4)
    await s.call("b", leave(group, (other, None)), 5)
    await s.finish("a")
    await s.finish("c")


@scenario
async def leaving_with_reasons_and_instance_ids(s: Session) -> None:
    group = "leaving-static"
    await s.start("a", join(group, instance="i1"), 5)
    await s.start("b", join(group, instance="i2"), 5)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second, instance="i2"), 5)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}, instance="i1"), 5)
    await s.finish("b")
    await s.call("x", leave(group, (first, "i2")), 5)
    await s.call("x", leave(group, (first, "i3")), 5)
    await s.call("x", leave(group, ("", "i3"), ("nobody", "i1")), 3)
    s.note("by its member id alone")
    await s.call("x", leave(group, (first, None)), 4)
    await s.call("b", beat(group, 1, second, "i2"), 4)
    reasons = [
        MemberIdentity(member_id="", group_instance_id="i2", reason="going home"),
        MemberIdentity(member_id=second, group_instance_id="i2", reason="again"),
    ]
    await s.call("x", LeaveGroupRequest(group_id=group, members=reasons), 5)
    await s.call("x", DescribeGroupsRequest(groups=[group]), 5)


@scenario
async def a_static_member_comes_back_with_another_subscription(s: Session) -> None:
    group = "static-subscription"
    await s.start("a", join(group, instance="i1"), 5)
    await s.start("b", join(group, instance="i2"), 5)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second, instance="i2"), 5)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}, instance="i1"), 5)
    await s.finish("b")
    s.note("it is told its old assignment, and asks for a new one by joining once more")
    other = {"range": subscription("orders")}
    third = (await s.call("b", join(group, instance="i2", protocols=other), 9)).member_id
    await s.call("b", sync(group, 1, third, instance="i2"), 5)
    await s.call("a", beat(group, 1, first, "i1"), 4)
    await s.start("b", join(group, third, instance="i2", protocols={"range": subscription("events", "orders")}), 9)
    await s.call("a", beat(group, 1, first, "i1"), 4)
    await s.start("a", join(group, first, instance="i1"), 9)
    await s.finish("a")
    await s.finish("b")


@scenario
async def a_static_member_comes_back_while_others_join(s: Session) -> None:
    group = "static-rejoin"
    await s.start("a", join(group, instance="i1"), 5)
    await s.start("b", join(group, instance="i2"), 5)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second, instance="i2"), 5)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}, instance="i1"), 5)
    await s.finish("b")
    await s.start("a", join(group, first, instance="i1"), 9)
    await s.start("c", join(group, instance="i2"), 9)
    await s.finish("a")
    third = (await s.finish("c")).member_id
    await s.call("b", beat(group, 1, second, "i2"), 4)
    s.note("before the assignment: the leader's place is taken")
    await s.start("c", sync(group, 2, third, instance="i2"), 5)
    await s.start("d", join(group, instance="i1"), 9)
    await s.finish("c")
    await s.start("c", join(group, third, instance="i2"), 9)
    await s.finish("c")
    await s.finish("d")


@scenario
async def a_member_is_silent_before_the_assignment(s: Session) -> None:
    group = "silent-syncing"
    await s.start("a", join(group, session=10_000, rebalance=5_000), 3)
    await s.start("b", join(group, session=1000, rebalance=5_000), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    s.note("only a request that waits would keep its session")
    await s.sleep(1500)
    await s.call("a", beat(group, 1, first), 4)
    await s.call("b", sync(group, 1, second), 5)
    await s.start("a", join(group, first, session=10_000, rebalance=5_000), 9)
    await s.finish("a")


@scenario
async def a_waiting_sync_keeps_the_session(s: Session) -> None:
    group = "waiting-sync"
    await s.start("a", join(group, session=10_000, rebalance=5_000), 3)
    await s.start("b", join(group, session=1000, rebalance=5_000), 3)
    first, second = (await s.finish("a")).member_id, (await s.finish("b")).member_id
    await s.start("b", sync(group, 1, second), 5)
    await s.sleep(1500)
    await s.call("a", sync(group, 1, first, {first: b"one", second: b"two"}), 5)
    await s.finish("b")
    await s.call("b", beat(group, 1, second), 4)


@scenario
async def groups_without_a_name(s: Session) -> None:
    await s.call("x", DeleteGroupsRequest(groups_names=["", "unnamed-none", "unnamed-none"]), 2)
    await s.call("x", DescribeGroupsRequest(groups=["", "unnamed-none", "unnamed-none"]), 6)
    await s.call("x", forget("", {"events": [0]}), 0)
    await s.call("x", LeaveGroupRequest(group_id="", member_id="m"), 2)
    await s.call("x", LeaveGroupRequest(group_id="unnamed-none", member_id=""), 2)


@scenario
async def offsets_between_states(s: Session) -> None:
    group = "offset-states"
    ids = s.broker.topic_ids
    one = {"events": {0: (1, "")}}
    s.note("a group that was left takes offsets from anybody, but not in the name of a member")
    first, second = await stable_pair(s, group)
    await s.call("a", commit(group, one, generation=1, member_id=second), 9)
    await s.call("a", commit(group, one, generation=2, member_id=second), 9)
    await s.call("x", leave(group, (first, None), (second, None)), 5)
    await s.call("a", commit(group, one, generation=1, member_id=second), 9)
    await s.call("a", commit(group, one, generation=2, member_id=second), 8)
    await s.call("a", commit(group, one, member_id=second), 9)
    await s.call("a", commit(group, one, instance="i"), 9)
    await s.call("x", fetch(9, [group], {"events": [0, 0], "orders": []}, ids), 9)
    await s.call("x", fetch(8, [group, group], {"events": [0]}, ids), 8)
    s.note("who fetches is not asked for, where the group is a classic one")
    request = fetch(9, [group], {"events": [0]}, ids)
    request.groups[0].member_id, request.groups[0].member_epoch = "nobody", 7
    await s.call("x", request, 9)
