"""Share groups in a shard: members, epochs, assignments, and whose state is kept (KIP-932)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pykbroker.groups.common.config import ShareGroupConfig
from pykbroker.groups.common.deadlines import SessionTimeout
from pykbroker.groups.common.group import GroupType
from pykbroker.groups.common.requests import (
    AlterShareOffsets,
    BeginShareStateDeletion,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeShareGroup,
    EndShareStateDeletion,
    FetchAllOffsets,
    FindSharePartitions,
    ListSomeGroups,
)
from pykbroker.groups.offsets.forgotten_topics import DeletedTopics
from pykbroker.groups.share import state_changes
from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.groups.share.share_replay import ShareReplay
from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
)
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from pykbroker.protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from pykbroker.state_machine import BadRecord, CoordinatorContext, Token

from .share_talk import EVENTS, GROUP, ORDERS, TOPICS, ShareTalk, told

CONTEXT = CoordinatorContext(api_version=1)


def _keys(talk: ShareTalk) -> list[type]:
    return [type(record.key) for record in talk.records]


# Members and epochs


def test_the_first_member_joins_in_epoch_2_and_has_nothing_before_the_state_is_there() -> None:
    talk = ShareTalk()
    joined = talk.join("a")
    assert (joined.member_epoch, joined.heartbeat_interval_ms, told(joined)) == (2, 5_000, {})
    assert _keys(talk) == [
        ShareGroupMemberMetadataKey,
        ShareGroupMetadataKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupTargetAssignmentMetadataKey,
        ShareGroupCurrentMemberAssignmentKey,
        ShareGroupStatePartitionMetadataKey,
    ]
    (effect,) = talk.effects
    assert (effect.group_id, effect.state_epoch, effect.topics) == (GROUP, 2, {EVENTS: frozenset({0, 1, 2})})


def test_what_is_initialized_is_assigned_with_the_next_heartbeat() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.initialize()
    assert _keys(talk) == [ShareGroupStatePartitionMetadataKey]
    beaten = talk.beat("a", 2)
    assert (beaten.member_epoch, told(beaten)) == (3, {EVENTS: [0, 1, 2]})
    assert told(talk.beat("a", 3)) is None
    assert talk.records == []


def test_members_share_partitions() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.initialize()
    talk.join("b")
    talk.join("c")
    talk.join("d")
    assigned = talk.settle("a", "b", "c", "d")
    assert Counter(index for each in assigned.values() for index in each[EVENTS]) == {0: 2, 1: 2, 2: 2}
    assert sorted(len(each[EVENTS]) for each in assigned.values()) == [1, 1, 2, 2]


def test_a_member_may_send_the_epoch_before_and_no_other() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.initialize()
    talk.beat("a", 2)
    assert talk.beat("a", 2).member_epoch == 3
    smaller, greater = talk.beat("a", 1), talk.beat("a", 4)
    assert (smaller.error_code, greater.error_code) == (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH)
    assert smaller.error_message == (
        "The share group member has a smaller member epoch (1) than the one known by the group coordinator (3), and it "
        "does not match the previous member epoch (2). The member must abandon all its partitions and rejoin."
    )
    assert greater.error_message == (
        "The share group member has a greater member epoch (4) than the one known by the group coordinator (3). The "
        "member must abandon all its partitions and rejoin."
    )


def test_a_member_that_leaves_is_forgotten_and_the_group_stays() -> None:
    talk = ShareTalk()
    talk.join("a")
    left = talk.beat("a", -1)
    assert (left.error_code, left.member_id, left.member_epoch) == (0, "a", -1)
    assert _keys(talk) == [
        ShareGroupCurrentMemberAssignmentKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupMemberMetadataKey,
        ShareGroupMetadataKey,
    ]
    assert talk.group.is_empty
    assert talk.group.group_epoch == 3
    assert talk.shard.due_ms(SessionTimeout(GROUP, "a")) is None
    unknown = talk.beat("a", -1)
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member a is not a member of group g.",
    )


def test_a_silent_member_is_removed_and_what_it_had_goes_to_others() -> None:
    talk = ShareTalk(ShareGroupConfig(session_timeout_ms=1_000, assignment_interval_ms=0))
    talk.join("a")
    talk.join("b")
    talk.settle("a", "b")
    talk.now_ms += 600
    talk.beat("b", talk.group.members["b"].member_epoch)
    assert talk.advance(399) == []
    talk.advance(1)
    assert set(talk.group.members) == {"b"}
    assert talk.settle("b") == {"b": {EVENTS: [0, 1, 2]}}


def test_an_assignment_is_not_made_before_its_interval_is_over() -> None:
    talk = ShareTalk(ShareGroupConfig(assignment_interval_ms=1_000))
    talk.join("a")
    talk.initialize()
    talk.now_ms += 999
    assert talk.beat("a", 2).member_epoch == 2
    assert talk.group.group_epoch == 3
    talk.now_ms += 1
    assert told(talk.beat("a", 2)) == {EVENTS: [0, 1, 2]}


def test_a_full_group_takes_nobody_else() -> None:
    talk = ShareTalk(share_max_size=1)
    talk.join("a")
    refused = talk.join("b")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The share group has reached its maximum capacity of 1 members.",
    )
    assert talk.join("a").error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
        ({"subscribed_topic_names": ["t"] * 10_001}, "SubscribedTopicNames has more than 10000 names."),
    ],
)
def test_requests_that_are_not_valid_are_told_why(fields: dict[str, Any], words: str) -> None:
    talk = ShareTalk()
    sent = {"member_id": "a", "member_epoch": 0, "subscribed_topic_names": ["events"], **fields}
    refused = talk.beat(sent.pop("member_id"), sent.pop("member_epoch"), **sent)
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, words)
    assert talk.shard.groups == {}


def test_a_member_that_nobody_knows_has_to_join() -> None:
    talk = ShareTalk()
    assert talk.beat("a", 1).error_message == "Share group g not found."
    assert talk.beat("a", -1).error_message == "Group g not found."
    talk.join("a")
    assert talk.beat("b", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_subscription_changes_what_a_member_has_at_once() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    epoch = talk.group.members["a"].member_epoch
    changed = talk.beat("a", epoch, subscribed_topic_names=["orders"])
    assert told(changed) == {}
    assert talk.settle("a") == {"a": {ORDERS: [0, 1]}}


def test_a_subscription_whose_record_is_too_large_changes_nothing() -> None:
    talk = ShareTalk(max_record_bytes=300)
    assert talk.join("a", *(f"topic-{number:030}" for number in range(20))).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert talk.shard.groups == {}
    assert talk.records == []


# Topics


def test_partitions_that_are_added_are_initialized_and_assigned() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    talk.change_topics(events=(EVENTS, 5))
    talk.beat("a", talk.group.members["a"].member_epoch)
    assert [effect.topics for effect in talk.effects] == [{EVENTS: frozenset({3, 4})}]
    talk.initialize()
    assert talk.settle("a") == {"a": {EVENTS: [0, 1, 2, 3, 4]}}


def test_a_topic_that_is_deleted_is_forgotten_and_one_of_its_name_begins_anew() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    deleted = DeletedTopics({EVENTS: "events"})
    talk.change_topics()
    assert talk.shard.begin_to_forget(deleted)
    talk.take(talk.shard.forget_topics(deleted, talk.now_ms, talk.now_ms))
    assert talk.group.state_partitions.topic_ids() == set()
    assert talk.settle("a") == {"a": {}}
    other = b"n" * 16
    talk.change_topics(events=(other, 2))
    assert talk.settle("a") == {"a": {other: [0, 1]}}


def test_a_deleted_topic_that_nobody_forgot_begins_no_epochs() -> None:
    """A coordinator that loads a log may find topics that were deleted while nobody coordinated the group."""
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    talk.topics = {"events": (b"n" * 16, 1)}
    talk.load()
    talk.settle("a")
    epoch = talk.group.group_epoch
    talk.settle("a")
    assert talk.group.group_epoch == epoch


def test_topics_are_forgotten_in_several_steps_and_again_where_a_step_did_not_happen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_changes, "MOST_LOOKED_AT", 1)
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    talk.ask(AlterShareOffsets(group_id="other", topics={"events": {0: 5}}))
    deleted = DeletedTopics({EVENTS: "events"})
    talk.shard.begin_to_forget(deleted)
    talk.shard.begin_trial()
    assert talk.shard.forget_topics(deleted, 0, 0).is_unfinished
    talk.shard.end_trial(is_kept=False)
    assert EVENTS in talk.group.state_partitions.initialized
    steps = 0
    while talk.shard.forget_topics(deleted, 0, 0).is_unfinished:
        steps += 1
    assert steps >= 1
    assert all(
        isinstance(group, ShareGroup) and not group.state_partitions.topic_ids() for group in talk.shard.groups.values()
    )


# Initialization


def test_an_initialization_that_failed_is_tried_again_with_the_next_heartbeat() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.initialize(is_done=False)
    assert talk.group.state_partitions.initializing == {}
    talk.beat("a", 2)
    assert [effect.topics for effect in talk.effects] == [{EVENTS: frozenset({0, 1, 2})}]


def test_an_initialization_of_which_nothing_is_heard_is_tried_again_after_a_time() -> None:
    talk = ShareTalk(share_initialize_retry_interval_ms=30_000)
    talk.join("a")
    talk.effects.clear()
    talk.now_ms += 29_999
    talk.beat("a", 2)
    assert talk.effects == []
    talk.now_ms += 1
    talk.beat("a", 2)
    assert [effect.topics for effect in talk.effects] == [{EVENTS: frozenset({0, 1, 2})}]


def test_what_another_coordinator_began_to_initialize_is_begun_again_at_once_in_a_new_epoch() -> None:
    talk = ShareTalk(ShareGroupConfig(session_timeout_ms=100_000), share_initialize_retry_interval_ms=30_000)
    talk.join("a")
    (begun,) = talk.effects
    for epoch in (3, 4, 5):  # coordinators that go away before they hear of it
        talk.load()
        talk.effects.clear()
        talk.now_ms += 1_000
        talk.beat("a", epoch - 1)
        assert [(effect.state_epoch, effect.topics) for effect in talk.effects] == [(epoch, begun.topics)]
        talk.effects.clear()
        talk.beat("a", epoch)
        assert talk.effects == []
    talk.effects.append(begun)
    talk.initialize()
    talk.now_ms += 1_000
    assert told(talk.beat("a", 5)) == {EVENTS: [0, 1, 2]}
    talk.load()
    talk.beat("a", 6)
    assert talk.group.group_epoch == 6


def test_what_was_initialized_too_late_does_not_count() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.beat("a", -1)
    talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=None))
    talk.initialize()
    assert talk.group.state_partitions.initialized == {}
    talk.ask(DeleteGroup(group_id=GROUP))
    talk.join("b", "orders")
    talk.effects[0:0] = [state_changes.ShareInitialization(GROUP, 2, {EVENTS: frozenset({0})})]
    talk.initialize()
    assert set(talk.group.state_partitions.initialized) == {ORDERS}


def test_many_partitions_are_initialized_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_changes, "MOST_INITIALIZED", 4)
    talk = ShareTalk()
    talk.join("a", "events", "orders")
    assert [sum(map(len, effect.topics.values())) for effect in talk.effects] == [4]
    assert talk.settle("a") == {"a": {EVENTS: [0, 1, 2], ORDERS: [0, 1]}}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_many_partitions_are_initialized_again_in_parts(is_loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_changes, "MOST_INITIALIZED", 4)
    talk = ShareTalk(
        ShareGroupConfig(session_timeout_ms=100_000, assignment_interval_ms=0),
        share_initialize_retry_interval_ms=30_000,
    )
    epoch = talk.join("a", "events", "orders").member_epoch
    epoch = talk.beat("a", epoch).member_epoch
    assert sum(len(topic.partitions) for topic in talk.group.state_partitions.initializing.values()) == 5
    talk.effects.clear()
    if is_loaded:
        talk.load()
    else:
        talk.now_ms += 30_000
    for _ in range(4):
        epoch = talk.beat("a", epoch).member_epoch
    again = [{topic_id: sorted(each) for topic_id, each in effect.topics.items()} for effect in talk.effects]
    assert again == [{EVENTS: [0, 1, 2], ORDERS: [0]}, {ORDERS: [1]}]
    assert talk.settle("a") == {"a": {EVENTS: [0, 1, 2], ORDERS: [0, 1]}}


def test_what_has_no_room_in_the_groups_record_is_not_initialized() -> None:
    talk = ShareTalk(topics={**TOPICS, "very.many": (b"v" * 16, 100)}, max_record_bytes=300)
    talk.join("a", "events", "very.many", "orders")
    assert talk.settle("a") == {"a": {EVENTS: [0, 1, 2], ORDERS: [0, 1]}}
    assert max(len(key) + len(value or b"") for key, value in talk.log) <= 300


# Administration


@pytest.mark.parametrize("partitions", [{}, {9: 1}])
def test_offsets_of_no_partition_of_a_topic_that_exists_make_the_group_as_in_kafka(partitions: dict[int, int]) -> None:
    talk = ShareTalk()
    begun = talk.ask(AlterShareOffsets(group_id=GROUP, topics={"events": partitions}))
    assert (begun.error_code, begun.start_offsets) == (ErrorCode.NONE, {})
    assert talk.group.is_empty
    talk.load()
    assert talk.group.is_empty
    talk.join("a")
    assert talk.settle("a") == {"a": {EVENTS: [0, 1, 2]}}


def test_offsets_of_a_group_without_members_are_altered() -> None:
    talk = ShareTalk()
    begun = talk.ask(AlterShareOffsets(group_id=GROUP, topics={"events": {0: 7, 9: 1, -1: 1}, "missing": {0: 0}}))
    assert (begun.error_code, begun.state_epoch, begun.topic_ids) == (ErrorCode.NONE, 1, {"events": EVENTS})
    assert begun.unknown == {"events": {9, -1}, "missing": {0}}
    assert begun.start_offsets == {EVENTS: {0: 7}}
    assert talk.group.state_partitions.initializing[EVENTS].partitions == {0}
    talk.join("a")
    refused = talk.ask(AlterShareOffsets(group_id=GROUP, topics={"events": {0: 7}}))
    assert refused.error_code is ErrorCode.NON_EMPTY_GROUP


def test_an_alteration_of_nothing_makes_no_group() -> None:
    talk = ShareTalk()
    assert talk.ask(AlterShareOffsets(group_id=GROUP, topics={"missing": {0: 0}})).error_code is ErrorCode.NONE
    assert talk.shard.groups == {}
    assert talk.records == []


def test_offsets_are_deleted_by_topic_and_asked_for_again_where_that_failed() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    refused = talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=["events"]))
    assert refused.error_code is ErrorCode.NON_EMPTY_GROUP
    talk.beat("a", -1)
    begun = talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=["events", "orders", "missing"]))
    assert (begun.topics, begun.names) == ({EVENTS: {0, 1, 2}}, {EVENTS: "events"})
    assert {name: str(error) for name, error in begun.refused.items()} == {
        "orders": "There is no offset information to delete.",
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.description,
    }
    again = talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=["events"]))
    assert again.topics == {EVENTS: {0, 1, 2}}
    talk.ask(EndShareStateDeletion(group_id=GROUP, topic_ids=[EVENTS]))
    assert talk.group.state_partitions.topic_ids() == set()


def test_a_topic_that_is_being_deleted_comes_back_with_a_member() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    talk.beat("a", -1)
    talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=None))
    assert talk.group.state_partitions.deleting == {EVENTS: "events"}
    talk.join("b")
    assert talk.group.state_partitions.deleting == {}
    assert talk.settle("b") == {"b": {EVENTS: [0, 1, 2]}}


def test_a_deleted_group_leaves_tombstones_of_all_of_its_records() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.settle("a")
    assert talk.ask(DeleteGroup(group_id=GROUP)) is ErrorCode.NON_EMPTY_GROUP
    talk.beat("a", -1)
    begun = talk.ask(BeginShareStateDeletion(group_id=GROUP, topics=None))
    assert begun.topics == {EVENTS: {0, 1, 2}}
    assert talk.ask(DeleteGroup(group_id=GROUP)) is ErrorCode.NONE
    assert talk.shard.groups == {}
    newest = dict(talk.log)
    assert set(newest.values()) == {None}


def test_an_empty_group_does_not_go_by_itself() -> None:
    talk = ShareTalk(offsets_retention_check_interval_ms=100)
    talk.join("a")
    talk.beat("a", -1)
    talk.advance(1_000)
    assert GROUP in talk.shard.groups


def test_a_group_is_described_and_listed() -> None:
    talk = ShareTalk()
    talk.join("a", rack_id="r1")
    talk.settle("a")
    found = talk.ask(DescribeShareGroup(group_id=GROUP))
    assert (found.group.group_state, found.group.assignor_name) == ("Stable", "simple")
    assert (found.group.group_epoch, found.group.assignment_epoch) == (3, 3)
    (member,) = (found.describe_member(member_id) for member_id in whole(found.member_ids()))
    assert (member.rack_id, member.client_id, member.client_host) == ("r1", "client", "/host")
    assert member.subscribed_topic_names == ["events"]
    assert [topic.partitions for topic in member.assignment.topic_partitions] == [[0, 1, 2]]
    assert talk.ask(FindSharePartitions(group_id=GROUP)) == {EVENTS: {0, 1, 2}}
    (listed,) = talk.ask(ListSomeGroups(request=ListGroupsRequest(types_filter=["Share"]), group_ids=[GROUP])).groups
    assert (listed.group_type, listed.group_state, listed.protocol_type) == ("share", "Stable", "share")
    missing = talk.ask(DescribeShareGroup(group_id="other")).group
    assert (missing.error_code, missing.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group other not found.")


# Other types of groups


def test_a_share_group_does_not_become_another_type() -> None:
    talk = ShareTalk()
    talk.join("a")
    talk.beat("a", -1)
    beat = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="c", rebalance_timeout_ms=1, subscribed_topic_names=["events"], topic_partitions=[]
    )
    assert talk.ask(beat).error_message == "Group g is not a consumer group."
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    assert talk.ask(join).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert talk.ask(DescribeConsumerGroup(group_id=GROUP)).group.error_message == "Group g is not a consumer group."
    (described,) = talk.ask(DescribeGroupsRequest(groups=[GROUP]), 6).groups
    assert described.error_message == "Group g is not a classic group."
    assert talk.shard.groups[GROUP].type is GroupType.SHARE


def test_another_group_does_not_become_a_share_group() -> None:
    talk = ShareTalk()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    commit = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="events", partitions=[partition])],
    )
    talk.ask(commit, 9)
    for response in (talk.join("a"), talk.beat("a", -1)):
        assert (response.error_code, response.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group g is not a share group.",
        )
    assert talk.ask(AlterShareOffsets(group_id=GROUP, topics={"events": {0: 0}})).error_code is (
        ErrorCode.GROUP_ID_NOT_FOUND
    )
    assert talk.ask(DescribeShareGroup(group_id=GROUP)).group.error_message == "Group g is not a share group."


def test_a_share_group_has_no_committed_offsets() -> None:
    talk = ShareTalk()
    talk.join("a")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    commit = OffsetCommitRequest(
        group_id=GROUP,
        member_id="a",
        generation_id_or_member_epoch=2,
        topics=[OffsetCommitRequestTopic(name="events", partitions=[partition])],
    )
    assert talk.ask(commit, 9).topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    found = talk.ask(FetchAllOffsets(group_id=GROUP))
    assert (found.error_code, found.table) == (ErrorCode.NONE, {})
    assert talk.ask(OffsetDeleteRequest(group_id=GROUP)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


# Records


def test_a_log_that_is_read_back_gives_the_same_group() -> None:
    talk = ShareTalk()
    talk.join("a", "events", "orders", rack_id="r")
    talk.join("b")
    talk.settle("a", "b")
    before = talk.group
    talk.load()
    after = talk.group
    assert after.members == before.members
    assert after.target_assignment == before.target_assignment
    assert after.states == before.states
    assert (after.group_epoch, after.metadata_hash) == (before.group_epoch, before.metadata_hash)
    assert (after.assignment_epoch, after.assignment_timestamp_ms) == (
        before.assignment_epoch,
        before.assignment_timestamp_ms,
    )
    assert after.subscribed_topic_names == before.subscribed_topic_names
    assert talk.shard.due_ms(SessionTimeout(GROUP, "a")) == talk.now_ms + 45_000


def test_a_step_that_did_not_happen_leaves_nothing_behind() -> None:
    talk = ShareTalk()
    talk.shard.begin_trial()
    talk.join("a")
    talk.shard.end_trial(is_kept=False)
    assert talk.shard.groups == {}
    assert talk.shard.due_ms(SessionTimeout(GROUP, "a")) is None
    talk.join("a")
    talk.settle("a")
    before = talk.group.copy()
    talk.shard.begin_trial()
    talk.join("b", "orders")
    talk.shard.end_trial(is_kept=False)
    assert vars(talk.group) == vars(before)


def test_records_that_make_no_sense_are_refused() -> None:
    talk = ShareTalk()
    talk.join("a")
    replay = ShareReplay(talk.shard.groups).replay
    with pytest.raises(BadRecord, match="has members"):
        replay(ShareGroupMetadataKey(group_id=GROUP), None)
    with pytest.raises(BadRecord, match="no epoch"):
        replay(ShareGroupMetadataKey(group_id=GROUP), ShareGroupMetadataValue(epoch=2**30))
    replay(ShareGroupMetadataKey(group_id="not there"), None)
    assert "not there" not in talk.shard.groups


def test_a_share_record_under_the_id_of_another_group_is_refused() -> None:
    talk = ShareTalk()
    beat = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="c", rebalance_timeout_ms=1, subscribed_topic_names=["events"], topic_partitions=[]
    )
    talk.shard.handle(beat, Token(1), 0, CONTEXT, 0)
    with pytest.raises(BadRecord, match="is a consumer group"):
        talk.shard.replay(ShareGroupMetadataKey(group_id=GROUP), ShareGroupMetadataValue(epoch=1))
