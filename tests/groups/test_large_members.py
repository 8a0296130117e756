"""Members of classic groups that offer much, and groups of many members: what one of their steps may cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from pykbroker.api.leave_group import MEMBERS_AT_ONCE
from pykbroker.groups.classic import classic_group
from pykbroker.groups.classic.classic_group import PREPARING_REBALANCE, ClassicGroup
from pykbroker.groups.classic.classic_groups import ClassicGroups
from pykbroker.groups.classic.joins import MOST_METADATA_BYTES, MOST_PROTOCOLS
from pykbroker.groups.common.records import CoordinatorRecord
from pykbroker.groups.common.subscription import _Walk, subscribed_topics
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import LeaveGroupRequest, MemberIdentity
from pykbroker.server.coordinators.waiting_members import HELD_BYTES, WaitingMembers
from tests.server.work_per_step import WorkPerStep

from .conversation import GROUP, Conversation
from .scenarios import join, leave, subscription, sync
from .test_driver import in_world
from .world import World

LARGE = 1 << 20

TOO_MUCH: dict[str, dict[str, bytes]] = {
    "protocols": {f"p{number}": b"" for number in range(MOST_PROTOCOLS + 1)},
    "metadata": {"p": bytes(MOST_METADATA_BYTES // 2), "q": bytes(MOST_METADATA_BYTES // 2 + 1)},
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_member_that_offers_more_than_a_group_can_do_with_is_refused(what: str) -> None:
    talk = Conversation()
    answer = talk.ask("join", join(GROUP, type="other", protocols=TOO_MUCH[what]))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert not talk.shard.groups


def test_a_member_may_offer_as_much_as_the_bounds_say() -> None:
    talk = Conversation()
    protocols = {f"p{number}": bytes(MOST_METADATA_BYTES // MOST_PROTOCOLS) for number in range(MOST_PROTOCOLS)}
    assert talk.ask("join", join(GROUP, type="other", protocols=protocols)) is None
    talk.advance(0)
    assert talk.answers["join"].error_code == ErrorCode.NONE


def test_an_assignment_that_cannot_be_written_down_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Conversation(max_record_bytes=10_000)
    talk.ask("join", join(GROUP))
    talk.advance(0)
    member_id = talk.answers["join"].member_id
    monkeypatch.setattr(CoordinatorRecord, "encode", lambda record: pytest.fail("it was encoded"))
    answer = talk.ask("sync", sync(GROUP, 1, member_id, {member_id: bytes(10_001)}, type=None, protocol=None))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert talk.group.state is PREPARING_REBALANCE


def test_a_group_that_is_written_down_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To see whether it fits; the log takes the same bytes."""
    talk = Conversation()
    talk.ask("join", join(GROUP))
    talk.advance(0)
    member_id = talk.answers["join"].member_id
    talk.ask("sync", sync(GROUP, 1, member_id, {member_id: b"mine"}, type=None, protocol=None))
    monkeypatch.setattr(CoordinatorRecord, "encode", lambda record: pytest.fail("it was encoded again"))
    assert b"mine" in talk.records[-1].encode()[1]


def test_of_members_that_say_the_same_one_subscription_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def counted(subscription: bytes) -> frozenset[str] | None:
        read.append(subscription)
        return subscribed_topics(subscription)

    monkeypatch.setattr(classic_group, "subscribed_topics", counted)
    talk = Conversation(initial_rebalance_delay_ms=10)
    offered = {"range": subscription("events")}
    for name in "abc":
        talk.ask(name, join(GROUP, protocols=offered), client=name)
    talk.ask("d", join(GROUP, protocols={"range": subscription("orders")}), client="d")
    talk.advance(10)
    talk.advance(10)
    assert set(read) == {subscription("events"), subscription("orders")}
    assert read.count(subscription("events")) == read.count(subscription("orders"))
    assert talk.group.topics == {"events", "orders"}


def test_of_very_many_topics_it_is_not_known_who_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_group, "MOST_TOPICS", 2)
    talk = Conversation()
    talk.ask("a", join(GROUP, protocols={"range": subscription("a", "b", "c")}))
    talk.advance(0)
    assert talk.group.topics is None
    assert talk.group.is_subscribed_to("d")


def test_a_member_that_waits_keeps_nothing_of_an_assignment_that_is_not_its_to_give() -> None:
    talk = Conversation(initial_rebalance_delay_ms=10)
    for name in "ab":
        talk.ask(name, join(GROUP), client=name)
    talk.advance(10)
    talk.advance(10)
    follower = next(each.member_id for each in (talk.answers["a"], talk.answers["b"]) if not each.members)
    request = sync(GROUP, 1, follower, {"x": b"x"}, type=None, protocol=None)
    assert talk.ask("sync", request) is None
    assert not request.assignments


# Behind handlers


TOPICS = LARGE // 14
LARGE_SUBSCRIPTION = b"".join(
    [
        b"\0\1",
        TOPICS.to_bytes(4, "big"),
        *(b"\0\x0ctopic-%06d" % number for number in range(TOPICS)),
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
    ]
)


def test_large_subscriptions_are_looked_at_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    work = WorkPerStep(monkeypatch, at_least=2 * TOPICS, most=25_000)
    work.count(_Walk, "_pass_bytes")

    async def main(world: World) -> None:
        offered = {"range": LARGE_SUBSCRIPTION, "roundrobin": LARGE_SUBSCRIPTION}
        with work.watching():
            answer: Any = await world.call("c", join(GROUP, protocols=offered), 3)
        assert answer.error_code == ErrorCode.NONE

    in_world(main)


def test_a_large_subscription_that_kafka_could_not_load_is_refused() -> None:
    async def main(world: World) -> None:
        answer: Any = await world.call("c", join(GROUP, protocols={"range": LARGE_SUBSCRIPTION + b"more"}), 3)
        assert answer.error_code == ErrorCode.NONE
        broken = LARGE_SUBSCRIPTION[:-8] + b"\x7f\xff\xff\xff"
        answer = await world.call("c", join("other", protocols={"range": broken}), 3)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    in_world(main)


def in_world_of_waiting_members(main: Callable[[World], Awaitable[None]]) -> None:
    """In the group a member waits for another one, which does not come back."""

    async def run(world: World) -> None:
        first: Any = await world.call("a", join(GROUP, rebalance=60_000, session=60_000), 3)
        assert first.error_code == ErrorCode.NONE
        await main(world)

    in_world(run)


def test_what_waiting_members_offer_is_bounded_where_they_offer_much() -> None:
    async def main(world: World) -> None:
        waiting = world.driver.waiting_members = WaitingMembers(3 * LARGE)
        for client in "bcde":
            world.start(client, join(GROUP, protocols={"range": bytes(LARGE)}, rebalance=60_000), 3)
            await world.sleep(1)
        assert waiting.held_bytes == 3 * LARGE
        refused: Any = await world.call("f", join(GROUP, protocols={"range": bytes(LARGE)}), 3)
        assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.start("g", join(GROUP), 3)
        await world.sleep(1)
        group = world.driver.shard(0).groups[GROUP]  # type: ignore[union-attr]
        assert isinstance(group, ClassicGroup)
        assert len(group.members) == 5, "who offers little gets in"
        await world.sleep(61_000)
        assert waiting.held_bytes == 0

    in_world_of_waiting_members(main)


def test_a_member_of_any_size_gets_in_where_nobody_waits() -> None:
    assert WaitingMembers().has_room(MOST_METADATA_BYTES)
    assert HELD_BYTES >= 4 * MOST_METADATA_BYTES


def test_very_many_members_leave_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 3 * MEMBERS_AT_ONCE
    work = WorkPerStep(monkeypatch, at_least=count, most=3 * MEMBERS_AT_ONCE)
    work.count(ClassicGroups, "_leave")

    async def main(world: World) -> None:
        parked = [world.start(f"c{each}", join(GROUP, rebalance=60_000), 3) for each in range(count)]
        await world.sleep(4_000)
        answers: list[Any] = [await each for each in parked]
        members = [MemberIdentity(member_id=each.member_id) for each in answers]
        unknown = MemberIdentity(member_id="nobody")
        with work.watching():
            answer: Any = await world.call("a", LeaveGroupRequest(group_id=GROUP, members=[*members, unknown]), 5)
        assert [each.member_id for each in answer.members] == [*(each.member_id for each in members), "nobody"]
        assert [each.error_code for each in answer.members] == [0] * count + [ErrorCode.UNKNOWN_MEMBER_ID]
        group = world.driver.shard(0).groups[GROUP]  # type: ignore[union-attr]
        assert isinstance(group, ClassicGroup)
        assert not group.members

    in_world(main)


def test_a_leave_of_nobody_is_answered() -> None:
    async def main(world: World) -> None:
        answer: Any = await world.call("a", leave("", ("m", None)), 5)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
        answer = await world.call("a", leave(GROUP), 5)
        assert (answer.error_code, answer.members) == (ErrorCode.NONE, [])
        await trio.lowlevel.checkpoint()

    in_world(main)
