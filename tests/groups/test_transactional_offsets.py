"""Offsets that are committed in transactions: pending until the transaction ends, and what that means meanwhile."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.requests import DeleteGroup, FetchAllOffsets
from pykbroker.groups.offsets import forgotten_topics
from pykbroker.groups.offsets.all_offsets import AllOffsets
from pykbroker.groups.offsets.committed_offsets import CommittedOffset
from pykbroker.groups.offsets.forgotten_topics import DeletedTopics
from pykbroker.groups.offsets.pending_offsets import Place
from pykbroker.groups.shard import GroupShard
from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from .conversation import GROUP, Conversation, cleaning
from .scenarios import commit, join, leave

PRODUCER, OTHER = 7, 8


def txn_commit(
    offsets: dict[int, int],
    *,
    producer_id: int = PRODUCER,
    metadata: str = "",
    group: str = GROUP,
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
) -> TxnOffsetCommitRequest:
    """Offsets of the topic t, by partition."""
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group,
        producer_id=producer_id,
        producer_epoch=3,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for index, offset in offsets.items()
                ],
            )
        ],
    )


def error_of(answer: Any) -> ErrorCode:
    """Every partition carries it."""
    (code,) = {ErrorCode(partition.error_code) for topic in answer.topics for partition in topic.partitions}
    return code


def fetched(talk: Conversation, *, stable: bool = True, indexes: tuple[int, ...] = (0,)) -> dict[int, Any]:
    """Of each partition the offset, or the error that stands for it."""
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=list(indexes))]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)], require_stable=stable)
    (group,) = talk.ask(f"fetch {talk.asked}", request, 9).groups
    return {
        partition.partition_index: ErrorCode(partition.error_code)
        if partition.error_code
        else partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
    }


def committing(talk: Conversation, offsets: dict[int, int], **fields: Any) -> ErrorCode:
    return error_of(talk.ask(f"commit {talk.asked}", txn_commit(offsets, **fields)))


def test_a_pending_offset_counts_when_its_transaction_is_committed() -> None:
    talk = Conversation()
    assert committing(talk, {0: 5}) is ErrorCode.NONE
    assert talk.producers == [(PRODUCER, 3)]
    assert fetched(talk, stable=False) == {0: -1}
    assert fetched(talk) == {0: ErrorCode.UNSTABLE_OFFSET_COMMIT}
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert fetched(talk) == {0: 5}


@pytest.mark.parametrize("offset", [-1, -2, -(2**63)])
def test_an_offset_below_zero_is_kept_in_a_transaction_too(offset: int) -> None:
    talk = Conversation()
    assert error_of(talk.ask("commit", txn_commit({0: offset}))) is ErrorCode.NONE
    talk.shard.end_transaction(PRODUCER, True)
    assert fetched(talk) == {0: offset}


def test_an_aborted_transaction_leaves_what_was_there() -> None:
    talk = Conversation()
    talk.ask("plain", commit(GROUP, {"t": {0: (1, "")}}))
    committing(talk, {0: 5})
    assert fetched(talk, indexes=(0, 1)) == {0: ErrorCode.UNSTABLE_OFFSET_COMMIT, 1: -1}
    assert fetched(talk, stable=False) == {0: 1}
    talk.shard.end_transaction(PRODUCER, is_commit=False)
    assert fetched(talk) == {0: 1}


def test_all_offsets_are_those_that_are_committed_and_it_is_said_where_one_is_pending() -> None:
    talk = Conversation()
    talk.ask("plain", commit(GROUP, {"t": {0: (1, "")}}))
    committing(talk, {0: 5, 1: 6})
    found: AllOffsets = talk.ask("all", FetchAllOffsets(group_id=GROUP))
    assert [
        (name, {index: each.offset for index, each in offsets.items()})
        for name, offsets in whole(found.by_topic()).items()
    ] == [("t", {0: 1})]
    assert found.is_pending("t", 0)
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert found.is_pending("t", 0), "it is as it was"
    assert not talk.ask("all again", FetchAllOffsets(group_id=GROUP)).is_pending("t", 0)


def test_the_last_commit_of_a_transaction_counts() -> None:
    talk = Conversation()
    committing(talk, {0: 5})
    committing(talk, {0: 6})
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert fetched(talk) == {0: 6}


def test_what_was_committed_behind_a_transactions_records_stays() -> None:
    talk = Conversation()
    committing(talk, {0: 5, 1: 5})
    talk.ask("plain", commit(GROUP, {"t": {0: (9, "")}}))
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert fetched(talk, indexes=(0, 1)) == {0: 9, 1: 5}


def test_of_two_transactions_the_later_records_count_whichever_ends_first() -> None:
    talk = Conversation()
    committing(talk, {0: 5})
    committing(talk, {0: 6}, producer_id=OTHER)
    talk.shard.end_transaction(OTHER, is_commit=True)
    assert fetched(talk) == {0: ErrorCode.UNSTABLE_OFFSET_COMMIT}
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert fetched(talk) == {0: 6}


def test_the_end_of_a_transaction_that_wrote_nothing_here_changes_nothing() -> None:
    talk = Conversation()
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert talk.shard.groups == {}


# Who may commit


def test_a_group_has_a_name() -> None:
    assert committing(Conversation(), {0: 5}, group="") is ErrorCode.INVALID_GROUP_ID


def test_a_group_that_is_not_there_has_no_generation() -> None:
    talk = Conversation()
    assert committing(talk, {0: 5}, generation=1, member_id="m") is ErrorCode.ILLEGAL_GENERATION
    assert talk.shard.groups == {}


def test_a_producer_that_names_nobody_commits_for_a_group_with_members() -> None:
    talk = Conversation()
    talk.join_all("a")
    assert committing(talk, {0: 5}) is ErrorCode.NONE


def test_a_producer_is_fenced_with_its_consumer() -> None:
    talk = Conversation()
    (member_id,) = talk.join_all("a")
    assert committing(talk, {0: 5}, generation=1, member_id=member_id) is ErrorCode.NONE
    assert committing(talk, {0: 5}, generation=0, member_id=member_id) is ErrorCode.ILLEGAL_GENERATION
    assert committing(talk, {0: 5}, generation=-1, member_id=member_id) is ErrorCode.ILLEGAL_GENERATION
    assert committing(talk, {0: 5}, generation=1, member_id="gone") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committing(talk, {0: 5}, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert committing(talk, {0: 5}, member_id=member_id, instance="i") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_producer_of_a_replaced_static_member_is_fenced() -> None:
    talk = Conversation()
    (old,) = talk.join_all("a", instance="i")
    talk.ask("back", join(GROUP, instance="i"))
    assert committing(talk, {0: 5}, generation=1, member_id=old, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_rebalance_does_not_keep_a_producer_from_committing() -> None:
    talk = Conversation()
    talk.ask("a", join(GROUP))
    talk.advance(0)
    member_id = talk.answers["a"].member_id
    assert committing(talk, {0: 5}, generation=1, member_id=member_id) is ErrorCode.NONE


def test_metadata_is_limited_partition_by_partition_and_nothing_is_written_of_what_is_refused() -> None:
    talk = Conversation(offset_metadata_max_chars=4)
    assert committing(talk, {0: 5}, metadata="12345") is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert talk.records == []
    assert talk.producers == []


# Deletion and expiry


def test_deleting_an_offset_takes_the_pending_ones_along() -> None:
    talk = Conversation()
    committing(talk, {0: 5, 1: 5})
    committing(talk, {0: 6}, producer_id=OTHER)
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])],
    )
    assert error_of(talk.ask("delete", request, 0)) is ErrorCode.NONE
    assert talk.records[-1].value is None
    talk.shard.end_transaction(OTHER, is_commit=True)
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert fetched(talk, indexes=(0, 1)) == {0: -1, 1: 5}


def test_deleting_a_group_takes_the_pending_offsets_along() -> None:
    talk = Conversation()
    talk.ask("plain", commit(GROUP, {"t": {0: (1, "")}}))
    committing(talk, {0: 5, 1: 5})
    assert talk.ask("delete", DeleteGroup(group_id=GROUP), 2) is ErrorCode.NONE
    assert [getattr(record.key, "partition", None) for record in talk.records[-3:]] == [0, 1, None]
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert talk.shard.groups == {}
    assert fetched(talk, indexes=(0, 1)) == {0: -1, 1: -1}


def test_nothing_expires_that_a_transaction_may_replace() -> None:
    talk = cleaning()
    talk.ask("plain", commit(GROUP, {"t": {0: (1, "")}}))
    committing(talk, {0: 5})
    talk.advance(5000)
    assert fetched(talk, stable=False) == {0: 1}
    talk.shard.end_transaction(PRODUCER, is_commit=False)
    talk.advance(100)
    assert GROUP not in talk.shard.groups


def test_a_group_that_has_pending_offsets_only_stays_until_the_transaction_ends() -> None:
    talk = cleaning()
    (member_id,) = talk.join_all("a")
    committing(talk, {0: 5}, generation=1, member_id=member_id)
    talk.ask("leave", leave(GROUP, (member_id, None)), 5)
    talk.advance(5000)
    assert GROUP in talk.shard.groups
    talk.shard.end_transaction(PRODUCER, is_commit=False)
    talk.advance(100)
    assert GROUP not in talk.shard.groups


def test_pending_offsets_of_a_deleted_topic_go_with_it() -> None:
    talk = Conversation()
    committing(talk, {0: 5})
    deleted = DeletedTopics({b"t" * 16: "t"})
    assert talk.shard.begin_to_forget(deleted)
    talk.take(talk.shard.forget_topics(deleted, 0, 0))
    assert fetched(talk) == {0: -1}
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    assert fetched(talk) == {0: -1}


def test_offsets_of_a_deleted_topic_go_although_their_transaction_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forgotten_topics, "MOST_LOOKED_AT", 1)
    talk = Conversation()
    talk.ask("plain", commit(GROUP, {"t": {0: (1, "")}}))
    committing(talk, {1: 5})
    deleted = DeletedTopics({b"t" * 16: "t"})
    assert talk.shard.begin_to_forget(deleted)
    talk.take(talk.shard.forget_topics(deleted, 0, 0))
    talk.shard.end_transaction(PRODUCER, is_commit=True)
    while talk.shard.forget_topics(deleted, 0, 0).is_unfinished:
        pass
    assert fetched(talk, indexes=(0, 1)) == {0: -1, 1: -1}


# Loading


def pending_in(shard: GroupShard) -> list[tuple[Place, list[CommittedOffset]]]:
    pending = shard.offsets.pending
    return [(place, list(pending.offsets_at(GROUP, *place))) for place in pending.places(GROUP)]


@pytest.mark.parametrize("ending", [None, False, True])
def test_a_shard_that_reads_the_records_back_has_the_same_offsets(ending: bool | None) -> None:
    talk, loaded = Conversation(), GroupShard(GroupConfig(), Random(1))
    talk.ask("first", commit(GROUP, {"t": {0: (1, ""), 1: (1, "")}}))
    committing(talk, {0: 5, 1: 5})
    talk.ask("between", commit(GROUP, {"t": {1: (2, "")}}))
    for record, producer in talk.written:
        if producer is None:
            loaded.replay(record.key, record.value)
        else:
            loaded.replay_pending(producer[0], record.key, record.value)
    if ending is not None:
        talk.shard.end_transaction(PRODUCER, is_commit=ending)
        loaded.end_transaction(PRODUCER, is_commit=ending)
    assert list(loaded.offsets.committed.of_group(GROUP)) == list(talk.shard.offsets.committed.of_group(GROUP))
    assert pending_in(loaded) == pending_in(talk.shard)
    assert list(loaded.groups) == list(talk.shard.groups)


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_no_group_is_told_since_v6_that_there_is_none(version: int, code: ErrorCode) -> None:
    talk = Conversation()
    assert error_of(talk.ask("commit", txn_commit({0: 5}, generation=1, member_id="m"), version)) is code


def test_the_id_of_a_topic_is_stored_and_answered() -> None:
    talk = Conversation()
    request = txn_commit({0: 5})
    request.topics[0].topic_id = b"i" * 16
    (answered,) = talk.ask("commit", request, 6).topics
    assert (answered.name, answered.topic_id) == ("t", b"i" * 16)
    (record,) = talk.records[-1:]
    assert record.value.topic_id == b"i" * 16
