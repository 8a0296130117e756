"""Groups that change their protocol: policies, timeouts, restarts. The transcripts have what is said and written."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.groups.classic.classic_group import STABLE, ClassicGroup
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_group_records import ClassicProtocol, ConsumerGroupMemberMetadataValue

from .consumer_requests import LEAVING, VERSION, consumer_beat
from .conversation import GROUP, Conversation
from .migration_scenarios import assignment, rejoin
from .scenarios import beat, join, leave, sync
from .topics import ChangingTopics

CLASSIC_VERSION = 5
"""Of JoinGroup: the last but one before member ids were handed out first."""


def talk(**config: Any) -> Conversation:
    return Conversation(ChangingTopics(events=3), **config)


def with_classic_member(conversation: Conversation, **fields: Any) -> str:
    """Alone, with all partitions."""
    conversation.ask("first", rejoin(GROUP, "", **fields), 3)
    conversation.advance(0)
    member_id = str(conversation.answers["first"].member_id)
    given = assignment(events=[0, 1, 2])
    conversation.ask("sync", sync(GROUP, 1, member_id, {member_id: given}), CLASSIC_VERSION)
    return member_id


def joining(conversation: Conversation, member_id: str = "new") -> Any:
    return conversation.ask(f"{member_id} {conversation.asked}", consumer_beat(GROUP, member_id, topics=["events"]), 1)


def leaving(conversation: Conversation, member_id: str = "new") -> Any:
    return conversation.ask(f"bye {conversation.asked}", consumer_beat(GROUP, member_id, LEAVING), VERSION)


def read_back(conversation: Conversation) -> Any:
    successor = talk()
    for record in conversation.records:
        successor.shard.replay(record.key, record.value)
    return successor


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("bidirectional", ErrorCode.NONE),
        ("upgrade", ErrorCode.NONE),
        ("downgrade", ErrorCode.GROUP_ID_NOT_FOUND),
        ("disabled", ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_the_policy_says_whether_a_classic_group_is_upgraded(policy: str, code: ErrorCode) -> None:
    conversation = talk(consumer_migration_policy=policy)
    with_classic_member(conversation)
    assert joining(conversation).error_code == code
    assert isinstance(conversation.group, ClassicGroup if code else ConsumerGroup)


@pytest.mark.parametrize(("policy", "kind"), [("bidirectional", ClassicGroup), ("upgrade", ConsumerGroup)])
def test_the_policy_says_whether_a_consumer_group_is_downgraded(policy: str, kind: type) -> None:
    conversation = talk(consumer_migration_policy=policy)
    with_classic_member(conversation)
    joining(conversation)
    leaving(conversation)
    assert isinstance(conversation.group, kind)


def test_a_classic_member_cannot_join_a_consumer_group_where_migration_is_disabled() -> None:
    conversation = talk(consumer_migration_policy="disabled")
    joining(conversation)
    answer = conversation.ask("classic", rejoin(GROUP, "old"), CLASSIC_VERSION)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_with_more_members_than_the_other_protocol_allows_keeps_its_protocol() -> None:
    conversation = talk(consumer_max_size=1, max_size=2)
    with_classic_member(conversation)
    conversation.ask("second", rejoin(GROUP, ""), 3)
    answer = joining(conversation)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(conversation.group, ClassicGroup)


def test_a_consumer_group_with_more_classic_members_than_a_classic_group_may_have_stays_one() -> None:
    conversation = talk(max_size=1)
    joining(conversation)
    for member_id in ("a", "b"):
        conversation.ask(member_id, rejoin(GROUP, member_id), CLASSIC_VERSION)
    leaving(conversation)
    assert isinstance(conversation.group, ConsumerGroup)


def test_members_that_wait_in_a_rebalance_are_told_to_rejoin_when_the_group_is_upgraded() -> None:
    """Their requests are for a generation that will never be."""
    conversation = talk()
    with_classic_member(conversation)
    conversation.ask("second", rejoin(GROUP, ""), 3)
    assert "second" not in conversation.answers
    joining(conversation)
    assert isinstance(conversation.group, ConsumerGroup)
    assert conversation.answers["second"].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_wait_for_the_assignment_are_told_to_rejoin_when_the_group_is_upgraded() -> None:
    conversation = talk()
    for client in ("a", "b"):
        conversation.ask(client, rejoin(GROUP, ""), 3)
    conversation.advance(0)
    follower = next(each for each in conversation.answers.values() if each.member_id != each.leader)
    conversation.ask("sync", sync(GROUP, 1, follower.member_id), CLASSIC_VERSION)
    assert "sync" not in conversation.answers
    joining(conversation)
    assert conversation.answers["sync"].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_upgraded_group_is_read_back_as_it_was() -> None:
    conversation = talk()
    with_classic_member(conversation)
    joining(conversation)
    again, group = read_back(conversation).group, conversation.group
    assert isinstance(again, ConsumerGroup)
    for name in ("members", "target_assignment", "group_epoch", "assignment_epoch", "metadata_hash", "static_members"):
        assert getattr(again, name) == getattr(group, name), name


def test_a_downgraded_group_is_read_back_with_what_its_members_have() -> None:
    conversation = talk()
    member_id = with_classic_member(conversation)
    joining(conversation)
    leaving(conversation)
    again = read_back(conversation).group
    assert isinstance(again, ClassicGroup)
    assert again.state is STABLE
    assert again.generation_id == conversation.group.generation_id
    (member,) = again.members.values()
    assert member.member_id == member_id
    assert len(member.assignment) > len(assignment())


def test_what_a_slow_member_has_is_nobody_elses_when_the_group_changes_its_protocol_twice_meanwhile() -> None:
    conversation = talk()
    slow = with_classic_member(conversation)
    joining(conversation, "short")
    leaving(conversation, "short")
    assert isinstance(conversation.shard.groups[GROUP], ClassicGroup)
    joining(conversation, "next")
    group = conversation.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert {each: sorted(*member.assigned.values()) for each, member in group.members.items() if member.assigned} == {
        slow: [0, 1, 2]
    }


@pytest.mark.parametrize("is_told_by", ["JoinGroup", "SyncGroup"])
def test_a_classic_member_has_its_rebalance_timeout_for_the_next_step(is_told_by: str) -> None:
    conversation = talk()
    member_id = with_classic_member(conversation, session=1_000_000, rebalance=5_000)
    joining(conversation)
    if is_told_by == "JoinGroup":
        answer = conversation.ask("told", beat(GROUP, 1, member_id))
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    else:
        conversation.ask("joined", rejoin(GROUP, member_id, session=1_000_000, rebalance=5_000), CLASSIC_VERSION)
    conversation.advance(4_999)
    assert member_id in conversation.group.members
    conversation.advance(1)
    assert member_id not in conversation.group.members


def test_a_classic_member_that_comes_in_time_stays() -> None:
    conversation = talk()
    member_id = with_classic_member(conversation, session=1_000_000, rebalance=5_000)
    joining(conversation)
    conversation.ask("told", beat(GROUP, 1, member_id))
    conversation.advance(4_999)
    joined = conversation.ask("joined", rejoin(GROUP, member_id, session=1_000_000, rebalance=5_000), CLASSIC_VERSION)
    conversation.advance(4_999)
    conversation.ask("synced", sync(GROUP, joined.generation_id, member_id), CLASSIC_VERSION)
    conversation.advance(10_000)
    assert member_id in conversation.group.members


def test_a_classic_members_session_goes_on_after_a_restart_with_its_own_timeout() -> None:
    conversation = talk()
    member_id = with_classic_member(conversation, session=7_000)
    joining(conversation)
    successor = read_back(conversation)
    successor.take(successor.shard.start_timers(0, 0))
    successor.advance(6_999)
    assert member_id in successor.group.members
    successor.advance(1)
    assert member_id not in successor.group.members


def test_nothing_of_a_consumer_group_expires_in_the_classic_group_that_it_became() -> None:
    conversation = talk()
    member_id = with_classic_member(conversation, session=1_000_000, rebalance=5_000)
    joining(conversation)
    conversation.ask("told", beat(GROUP, 1, member_id))
    leaving(conversation)
    joined = conversation.ask("joined", rejoin(GROUP, member_id, session=1_000_000, rebalance=50_000), 3)
    assert joined.leader == member_id
    conversation.advance(20_000)
    assert member_id in conversation.group.members
    assert joining(conversation).error_code == ErrorCode.NONE
    conversation.advance(5_000)
    assert member_id in conversation.group.members


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\x00\x01\x00\x00\x00\x05"])
def test_a_subscription_that_cannot_be_read_is_refused_by_a_consumer_group(garbage: bytes) -> None:
    conversation = talk()
    joining(conversation)
    answer = conversation.ask("bad", join(GROUP, "old", protocols={"range": garbage}), CLASSIC_VERSION)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert list(conversation.group.members) == ["new"]


def test_the_last_member_to_leave_leaves_an_empty_consumer_group() -> None:
    conversation = talk(consumer_migration_policy="upgrade")
    member_id = with_classic_member(conversation)
    joining(conversation)
    leaving(conversation)
    answer = conversation.ask("left", leave(GROUP, (member_id, None)), CLASSIC_VERSION)
    assert answer.members[0].error_code == ErrorCode.NONE
    assert isinstance(conversation.group, ConsumerGroup)
    assert conversation.group.is_empty


@pytest.mark.parametrize("metadata", [None, b"", b"\xff\xff", b"\x7f\xff"])
def test_whatever_a_log_holds_of_classic_members_they_are_answered(metadata: bytes | None) -> None:
    """None: a member without any protocol."""
    conversation = talk()
    joining(conversation)
    conversation.ask("old", rejoin(GROUP, "old"), CLASSIC_VERSION)
    for record in conversation.records:
        if isinstance(record.value, ConsumerGroupMemberMetadataValue) and record.value.classic_member_metadata:
            protocols = [] if metadata is None else [ClassicProtocol(name="range", metadata=metadata)]
            record.value.classic_member_metadata.supported_protocols = protocols
    successor = read_back(conversation)
    epoch = successor.group.members["old"].member_epoch
    known = ErrorCode.NONE if metadata is not None else ErrorCode.UNKNOWN_MEMBER_ID
    assert successor.ask("beat", beat(GROUP, epoch, "old")).error_code in (known, ErrorCode.REBALANCE_IN_PROGRESS)
    assert successor.ask("sync", sync(GROUP, epoch, "old"), CLASSIC_VERSION).error_code == known
    leaving(successor)
    kind = ConsumerGroup if metadata is None else ClassicGroup
    assert isinstance(successor.group, kind)
