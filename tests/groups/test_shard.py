"""What the transcripts do not show: limits, repeated requests, loading, and causes."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from pykbroker.groups import shard
from pykbroker.groups.classic.classic_group import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, ClassicGroup
from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.deadlines import Deadlines, SessionTimeout
from pykbroker.groups.common.subscription import subscribed_topics
from pykbroker.groups.offsets import forgotten_topics, offset_expiration
from pykbroker.groups.offsets.forgotten_topics import DeletedTopics
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from pykbroker.state_machine import BadRecord

from .conversation import GROUP, Conversation, cleaning
from .scenarios import beat, commit, join, leave, subscription, sync


def test_the_initial_delay_starts_anew_with_every_member() -> None:
    talk = Conversation(initial_rebalance_delay_ms=3000)
    talk.ask("a", join(GROUP, rebalance=60_000))
    talk.advance(2999)
    talk.ask("b", join(GROUP, rebalance=60_000))
    talk.advance(1)
    assert talk.answers == {}
    talk.advance(2999)
    assert talk.answers == {}
    talk.advance(1)
    assert set(talk.answers) == {"a", "b"}


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    talk = Conversation(initial_rebalance_delay_ms=3000)
    talk.ask("first", join(GROUP, rebalance=7000))
    for second in range(7):
        assert talk.answers == {}, f"answered after {second} s"
        talk.ask(f"member {second}", join(GROUP, rebalance=7000))
        talk.advance(1000)
    talk.advance(2000)
    assert len(talk.answers) == 8


def test_a_static_leader_that_does_not_rejoin_in_time_leads_no_more() -> None:
    """It keeps its place, and somebody who is there makes the assignment (KIP-345)."""
    talk = Conversation()
    talk.ask("a", join(GROUP, instance="one", session=60_000))
    talk.ask("b", join(GROUP, instance="two", session=60_000))
    talk.advance(0)
    leader, other = talk.answers["a"].member_id, talk.answers["b"].member_id
    assert talk.group.leader_id == leader
    for member_id in (other, leader):
        talk.ask(f"sync {member_id}", sync(GROUP, 1, member_id, {leader: b"1", other: b"2"}, type=None, protocol=None))
    changed = {"range": subscription("orders")}
    talk.ask("again", join(GROUP, other, instance="two", session=60_000, protocols=changed))
    talk.advance(20_000)
    assert list(talk.group.members) == [leader, other]
    answer = talk.answers["again"]
    assert (answer.leader, [each.member_id for each in answer.members]) == (other, [leader, other])


def test_without_a_delay_the_first_member_is_answered_at_once() -> None:
    talk = Conversation()
    talk.ask("a", join(GROUP))
    talk.advance(0)
    assert talk.answers["a"].error_code == ErrorCode.NONE


def test_a_join_that_is_repeated_elsewhere_answers_the_first_one() -> None:
    talk = Conversation()
    first, _ = talk.join_all("a", "b")
    talk.ask("again", join(GROUP, first))
    talk.ask("and again", join(GROUP, first))
    assert talk.answers["again"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert "and again" not in talk.answers


def test_a_sync_that_is_repeated_elsewhere_answers_the_first_one() -> None:
    talk = Conversation()
    talk.ask("a", join(GROUP))
    talk.ask("b", join(GROUP))
    talk.advance(0)
    second = talk.answers["b"].member_id
    talk.ask("sync", sync(GROUP, 1, second))
    talk.ask("sync again", sync(GROUP, 1, second))
    assert talk.answers["sync"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert "sync again" not in talk.answers


def test_a_new_member_is_kept_for_five_minutes_while_it_waits() -> None:
    talk = Conversation()
    first, _ = talk.join_all("a", "b", rebalance=600_000, session=1_800_000)
    talk.ask("new", join(GROUP, rebalance=600_000), client="new")
    talk.advance(5 * 60_000 - 1)
    assert "new" not in talk.answers
    talk.advance(1)
    assert talk.answers["new"].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert first in talk.group.members
    assert talk.group.state is PREPARING_REBALANCE


def test_a_leader_that_leaves_hands_over() -> None:
    talk = Conversation()
    first, second = talk.join_all("a", "b")
    talk.ask("leave", leave(GROUP, (first, None)), 5)
    assert talk.group.leader_id == second


def test_an_assignment_for_strangers_is_dropped_and_a_missing_one_is_empty() -> None:
    talk = Conversation()
    talk.ask("a", join(GROUP))
    talk.advance(0)
    member_id = talk.answers["a"].member_id
    talk.ask("sync", sync(GROUP, 1, member_id, {"stranger": b"x"}))
    assert talk.answers["sync"].assignment == b""
    assert [member.assignment for member in talk.records[-1].value.members] == [b""]


def test_a_group_too_large_for_a_record_fails_alone_and_rebalances() -> None:
    talk = Conversation(max_record_bytes=1000)
    talk.ask("a", join(GROUP))
    talk.advance(0)
    member_id = talk.answers["a"].member_id
    answer = talk.ask("sync", sync(GROUP, 1, member_id, {member_id: b"x" * 1000}))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert talk.group.state is PREPARING_REBALANCE
    assert len(talk.records) == 1, "only the creation of the group"


def test_a_tie_of_votes_is_decided_by_the_earliest_member() -> None:
    talk = Conversation()
    talk.ask("a", join(GROUP, protocols={"sticky": subscription("t"), "range": subscription("t")}))
    talk.ask("b", join(GROUP, protocols={"range": subscription("t"), "sticky": subscription("t")}))
    talk.advance(0)
    assert talk.answers["a"].protocol_name == "sticky"


def test_metadata_is_measured_as_java_does() -> None:
    talk = Conversation(offset_metadata_max_chars=4)
    answer = talk.ask(
        "commit", commit(GROUP, {"t": {0: (1, "\U0001f600" * 2), 1: (1, "\U0001f600" * 3), 2: (1, "äöüß")}})
    )
    codes = [partition.error_code for partition in answer.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]


def test_a_commit_keeps_the_session() -> None:
    talk = Conversation()
    (member_id,) = talk.join_all("a", session=10_000)
    for _ in range(3):
        talk.advance(6000)
        talk.ask("commit", commit(GROUP, {"t": {0: (1, "")}}, generation=1, member_id=member_id))
    assert member_id in talk.group.members
    talk.advance(10_000)
    assert talk.group.state is EMPTY


def test_what_expires_together_expires_in_order() -> None:
    talk = Conversation()
    talk.join_all("a", "b", session=10_000, rebalance=1000)
    talk.advance(100_000)
    assert talk.group.state is EMPTY
    assert talk.group.generation_id == 2


def test_every_change_says_why() -> None:
    talk = Conversation()
    first, second = talk.join_all("a", "b", session=10_000)
    talk.ask("again", join(GROUP, second, reason="rebalance enforced by user", protocols={"range": b"new"}))
    assert "client's reason: rebalance enforced by user" in talk.group.state_cause
    talk.advance(20_000)
    assert any(f"{first} was silent for its session timeout" in cause for cause in talk.causes)


# Cleaning up


def offsets_of(talk: Conversation, topic: str = "t") -> list[int]:
    return [index for name, found in talk.shard.offsets.committed.of_group(GROUP) if name == topic for index in found]


def test_offsets_without_members_expire_after_their_commit() -> None:
    talk = cleaning()
    talk.ask("first", commit(GROUP, {"t": {0: (1, "")}}))
    talk.advance(500)
    talk.ask("second", commit(GROUP, {"t": {1: (1, "")}}))
    talk.advance(499)
    assert offsets_of(talk) == [0, 1]
    talk.advance(100)
    assert offsets_of(talk) == [1]
    talk.advance(500)
    assert GROUP not in talk.shard.groups
    assert [record.value for record in talk.records[-2:]] == [None, None]


def test_a_retention_time_that_the_client_asked_for_counts() -> None:
    talk = cleaning()
    talk.ask("short", commit(GROUP, {"t": {0: (1, "")}}, retention_time_ms=200), 2)
    talk.ask("long", commit(GROUP, {"t": {1: (1, "")}}, retention_time_ms=5000), 2)
    talk.advance(200)
    assert offsets_of(talk) == [1]
    talk.advance(4799)
    assert offsets_of(talk) == [1]
    talk.advance(101)
    assert offsets_of(talk) == []


def test_offsets_of_members_stay_as_long_as_the_topic_is_read() -> None:
    talk = cleaning()
    (member_id,) = talk.join_all("a", protocols={"range": subscription("t")}, session=20_000)
    talk.ask("commit", commit(GROUP, {"t": {0: (1, "")}, "u": {0: (1, "")}}, generation=1, member_id=member_id))
    talk.advance(5000)
    assert offsets_of(talk, "t") == [0]
    assert offsets_of(talk, "u") == []
    talk.ask("leave", leave(GROUP, (member_id, None)), 5)
    talk.advance(999)
    assert offsets_of(talk, "t") == [0], "counted from the moment when the group became empty"
    talk.advance(101)
    assert GROUP not in talk.shard.groups


def test_nothing_expires_in_a_group_whose_subscriptions_are_not_known() -> None:
    talk = cleaning()
    (member_id,) = talk.join_all("a", type="connect", protocols={"v": b""}, session=20_000)
    talk.ask("commit", commit(GROUP, {"t": {0: (1, "")}}, generation=1, member_id=member_id))
    talk.advance(5000)
    assert offsets_of(talk) == [0]


def test_an_empty_group_goes_but_not_while_somebody_may_join() -> None:
    talk = cleaning()
    talk.ask("id", join(GROUP, session=10_000), 9)
    talk.advance(5000)
    assert GROUP in talk.shard.groups
    talk.advance(10_000)
    assert GROUP not in talk.shard.groups


def test_offsets_of_deleted_topics_go_by_id_or_else_by_name() -> None:
    talk = Conversation()
    old, new = b"o" * 16, b"n" * 16
    request = commit(GROUP, {"t": {0: (1, "")}})
    request.topics[0].topic_id = old
    talk.ask("old", request)
    other = commit(GROUP, {"t": {1: (1, "")}})
    other.topics[0].topic_id = new
    talk.ask("new", other)
    talk.ask("nameless", commit(GROUP, {"t": {2: (1, "")}}))
    deleted = DeletedTopics({old: "t"})
    talk.take(talk.shard.forget_topics(deleted, 0, 0))
    assert offsets_of(talk) == [1, 2], "whoever did not see the deletion does not know when it was"
    talk.shard.begin_to_forget(deleted)
    talk.ask("nameless again", commit(GROUP, {"t": {3: (1, "")}}))
    talk.take(talk.shard.forget_topics(deleted, 0, 0))
    assert offsets_of(talk) == [1, 3]


@pytest.mark.parametrize("groups", [1, 12])
def test_very_many_offsets_of_a_deleted_topic_go_in_several_steps(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    monkeypatch.setattr(forgotten_topics, "MOST_FORGOTTEN", 10)
    monkeypatch.setattr(forgotten_topics, "MOST_LOOKED_AT", 20)
    talk = Conversation()
    for number in range(groups):
        partitions = range(60 // groups)
        talk.ask(f"commit {number}", commit(f"g{number}", {"t": dict.fromkeys(partitions, (1, "")), "u": {0: (1, "")}}))
    deleted = DeletedTopics({b"t" * 16: "t"})
    assert talk.shard.begin_to_forget(deleted)
    sizes = []
    is_unfinished = True
    while is_unfinished:
        result = talk.shard.forget_topics(deleted, 0, 0)
        sizes.append(len(result.records))
        is_unfinished = result.is_unfinished
    assert (sum(sizes), max(sizes)) == (60, 10)
    assert not talk.shard.begin_to_forget(deleted)
    assert talk.shard.begin_to_forget(DeletedTopics({b"u" * 16: "u"}))


def test_groups_that_have_nothing_of_a_deleted_topic_are_not_looked_at() -> None:
    talk = Conversation()
    for number in range(20):
        talk.ask(f"commit {number}", commit(f"g{number}", {"u": {0: (1, "")}}))
    assert not talk.shard.begin_to_forget(DeletedTopics({b"t" * 16: "t"}))
    talk.ask("commit", commit("g7", {"t": {0: (1, "")}}))
    assert list(talk.shard.offsets.committed.groups_by_topic.groups_of("t")) == ["g7"]


def test_a_part_of_a_deletion_that_was_refused_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgotten_topics, "MOST_FORGOTTEN", 3)
    talk = Conversation()
    talk.ask("commit", commit(GROUP, {"t": dict.fromkeys(range(5), (1, ""))}))
    deleted = DeletedTopics({b"t" * 16: "t"})
    talk.shard.begin_to_forget(deleted)
    assert talk.shard.forget_topics(deleted, 0, 0).is_unfinished
    for is_kept in (False, True):
        talk.shard.begin_trial()
        assert len(talk.shard.forget_topics(deleted, 0, 0).records) == 2
        talk.shard.end_trial(is_kept=is_kept)
    assert offsets_of(talk) == []


# Loading


def _written(*member_ids: str, **fields: Any) -> GroupMetadataValue:
    members = [
        MemberMetadata(
            member_id=member_id,
            group_instance_id=None,
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=-1,
            session_timeout=10_000,
            subscription=subscription("t"),
            assignment=b"x",
        )
        for member_id in member_ids
    ]
    return GroupMetadataValue(
        **{
            "protocol_type": "consumer",
            "generation": 7,
            "protocol": "range",
            "leader": member_ids[0] if member_ids else None,
            "members": members,
            **fields,
        }
    )


def test_members_that_were_loaded_have_a_session_to_show_themselves() -> None:
    talk = Conversation()
    talk.shard.replay(GroupMetadataKey(group=GROUP), _written("a", "b"))
    talk.take(talk.shard.start_timers(0, 0))
    talk.advance(9_999)
    assert talk.ask("beat", beat(GROUP, 7, "a")).error_code == ErrorCode.NONE
    assert talk.group.members["b"].rebalance_timeout_ms == 10_000, "version 0 knew no other timeout"
    talk.advance(1)
    assert talk.group.state is PREPARING_REBALANCE
    assert list(talk.group.members) == ["a"]


def test_a_loaded_group_over_its_size_rebalances() -> None:
    talk = Conversation(max_size=1)
    talk.shard.replay(GroupMetadataKey(group=GROUP), _written("a", "b"))
    talk.take(talk.shard.start_timers(0, 0))
    assert talk.group.state is PREPARING_REBALANCE
    talk.ask("a", join(GROUP, "a"))
    assert talk.ask("b", join(GROUP, "b")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert talk.answers["a"].generation_id == 8
    assert talk.group.state is COMPLETING_REBALANCE


@pytest.mark.parametrize(
    "value",
    [
        _written("a", "a"),
        _written("a", protocol=None),
        _written("a", protocol_type=""),
        _written("a", leader="b"),
        _written("a", leader=None),
    ],
)
def test_a_group_that_nobody_could_have_written_is_a_bad_record(value: GroupMetadataValue) -> None:
    shard = GroupShard(GroupConfig(), Random(0))
    with pytest.raises(BadRecord):
        shard.replay(GroupMetadataKey(group=GROUP), value)
    assert shard.groups == {}


# Parts


def test_moving_a_deadline_again_and_again_takes_no_room() -> None:
    deadlines = Deadlines()
    for at_ms in range(10_000):
        deadlines.schedule(SessionTimeout("g", "m"), at_ms)
    assert len(deadlines) == 1
    assert len(deadlines._heap) < 100
    assert deadlines.pop_due(9_998) is None
    assert deadlines.pop_due(9_999) == SessionTimeout("g", "m")
    assert deadlines.next_ms() is None


@pytest.mark.parametrize("version", [0, 1, 3, 99])
def test_topics_of_a_subscription_of_any_version(version: int) -> None:
    assert subscribed_topics(subscription("a", "b", version=version)) == {"a", "b"}


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\5a", b"\0\1\x7f\xff\xff\xff"])
def test_what_is_no_subscription(data: bytes) -> None:
    assert subscribed_topics(data) is None


def test_sessions_of_very_many_members_begin_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "MOST_SESSIONS", 4)
    talk = Conversation()
    for number in range(3):
        talk.shard.replay(GroupMetadataKey(group=f"g{number}"), _written("a", "b", "c"))
    sizes = [len(talk.shard._deadlines) for _ in talk.shard.prepare_timers(0)]
    assert sizes == [3, 6, 9], "a group counts, too"
    talk.take(talk.shard.start_timers(0, 0))
    assert len(talk.shard._deadlines) == 9


def test_very_many_sessions_that_end_together_end_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "MOST_TIMEOUTS", 3)
    talk = Conversation()
    for number in range(10):
        answer = talk.ask(f"join {number}", join(f"g{number}", session=10_000), 4)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    talk.advance(10_000)
    steps = 1
    while (deadline_ms := talk.shard.next_deadline_ms()) is not None and deadline_ms <= talk.now_ms:
        talk.advance(0)
        steps += 1
    assert steps == 4
    groups = [group for group in talk.shard.groups.values() if isinstance(group, ClassicGroup)]
    assert not any(group.pending_join_members for group in groups)


def test_very_many_offsets_of_one_group_expire_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_expiration, "MOST_EXPIRED", 10)
    talk = cleaning()
    talk.ask("commit", commit(GROUP, {"t": dict.fromkeys(range(30), (1, "")), "u": dict.fromkeys(range(15), (1, ""))}))
    talk.now_ms += 900
    written = []
    for _ in range(10):
        before = len(talk.written)
        talk.advance(20)
        written.append(len(talk.written) - before)
    assert sum(written) == 46, "the offsets, and the group"
    assert max(written) <= 11
    assert GROUP not in talk.shard.groups


def test_of_very_many_offsets_of_one_group_those_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_expiration, "MOST_EXPIRED", 10)
    talk = cleaning()
    talk.ask("commit", commit(GROUP, {"t": dict.fromkeys(range(30), (1, ""))}))
    talk.now_ms += 600
    talk.ask("again", commit(GROUP, {"t": dict.fromkeys(range(5, 30), (1, ""))}))
    talk.now_ms += 600
    for _ in range(10):
        talk.advance(20)
    assert offsets_of(talk) == list(range(5, 30))


def test_very_many_offsets_expire_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_expiration, "MOST_LOOKED_AT", 30)
    talk = cleaning()
    for number in range(20):
        talk.ask(f"commit {number}", commit(f"g{number}", {"t": dict.fromkeys(range(10), (1, ""))}))
    talk.now_ms += 900
    remaining = []
    for _ in range(20):
        talk.advance(20)
        remaining.append(len(talk.shard.groups))
    assert remaining[-1] == 0
    assert all(before - after <= 3 for before, after in pairwise([20, *remaining]))
