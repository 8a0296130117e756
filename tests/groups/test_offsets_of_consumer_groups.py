"""Who commits and reads offsets of a group of the consumer protocol: epochs take the place of generations."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

from .conversation import GROUP, Conversation, cleaning
from .scenarios import Partitions, commit

TOPIC_ID = b"t" * 16
MEMBER = "m"
EPOCH = 5


def with_a_member(talk: Conversation) -> Conversation:
    """It is in epoch 5 and reads the topic t: partition 0 since epoch 3, partition 1 since epoch 5."""
    owned = TopicPartitions(topic_id=TOPIC_ID, partitions=[0, 1], assignment_epochs=[3, 5])
    for key, value in (
        (ConsumerGroupMetadataKey(group_id=GROUP), ConsumerGroupMetadataValue(epoch=EPOCH)),
        (
            ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id=MEMBER),
            ConsumerGroupMemberMetadataValue(
                subscribed_topic_names=["t"], rebalance_timeout_ms=60_000, classic_member_metadata=None
            ),
        ),
        (
            ConsumerGroupTargetAssignmentMetadataKey(group_id=GROUP),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=EPOCH),
        ),
        (
            ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=MEMBER),
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=EPOCH, previous_member_epoch=EPOCH - 1, assigned_partitions=[owned]
            ),
        ),
    ):
        talk.shard.replay(key, value)
    return talk


def committing(
    talk: Conversation, partitions: Partitions, epoch: int, member_id: str = MEMBER, version: int = 9
) -> Any:
    request = commit(GROUP, {"t": partitions}, generation=epoch, member_id=member_id)
    request.topics[0].topic_id = TOPIC_ID
    answer = talk.ask(f"commit {talk.asked}", request, version)
    return [ErrorCode(partition.error_code) for partition in answer.topics[0].partitions]


STALE = ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("epoch", "partitions", "codes"),
    [
        (EPOCH, [0, 1, 2], [ErrorCode.NONE] * 3),
        (EPOCH + 1, [0], [STALE]),
        (EPOCH - 1, [0], [ErrorCode.NONE]),
        (EPOCH - 2, [0], [ErrorCode.NONE]),
        (EPOCH - 3, [0], [STALE]),
        (EPOCH - 1, [1], [STALE]),
        (EPOCH - 1, [2], [STALE]),
        (EPOCH - 1, [0, 1], [STALE, STALE]),
    ],
)
def test_a_commit_counts_in_an_epoch_in_which_all_its_partitions_were_the_members(
    epoch: int, partitions: list[int], codes: list[ErrorCode]
) -> None:
    """KAFKA-20066 (KIP-1251): the epochs between that of the assignment and the broker's are the member's, too."""
    talk = with_a_member(Conversation())
    assert committing(talk, dict.fromkeys(partitions, (1, "")), epoch) == codes
    assert len(talk.records) == codes.count(ErrorCode.NONE)


def test_metadata_that_is_too_large_is_refused_before_anybody_looks_at_the_epoch() -> None:
    talk = with_a_member(Conversation(offset_metadata_max_chars=1))
    codes = committing(talk, {0: (1, ""), 1: (1, "too large")}, EPOCH - 1)
    assert codes == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_only_members_commit_and_in_a_version_that_knows_epochs() -> None:
    talk = with_a_member(Conversation())
    assert committing(talk, {0: (1, "")}, EPOCH, "nobody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert committing(talk, {0: (1, "")}, -1, "") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert committing(talk, {0: (1, "")}, EPOCH, version=8) == [ErrorCode.UNSUPPORTED_VERSION]


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (MEMBER, EPOCH, ErrorCode.NONE),
        (MEMBER, EPOCH - 1, STALE),
        (MEMBER, EPOCH + 1, STALE),
        ("nobody", EPOCH, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, -1, ErrorCode.NONE),
    ],
)
def test_a_member_reads_offsets_in_its_epoch_and_whoever_is_none_always(
    member_id: str | None, epoch: int, code: ErrorCode
) -> None:
    talk = with_a_member(Conversation())
    committing(talk, {0: (7, "")}, EPOCH)
    asked = OffsetFetchRequestGroup(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
    )
    (group,) = talk.ask("fetch", OffsetFetchRequest(groups=[asked]), 9).groups
    assert group.error_code == code
    assert [each.committed_offset for topic in group.topics for each in topic.partitions] == [7] * (not code)


def test_offsets_of_a_topic_that_nobody_reads_expire_after_their_commit() -> None:
    talk = with_a_member(cleaning())
    committing(talk, {0: (7, "")}, EPOCH)
    other = commit(GROUP, {"u": {0: (1, "")}}, generation=EPOCH, member_id=MEMBER)
    talk.ask("other", other, 9)
    talk.advance(1000)
    assert [name for name, _ in talk.shard.offsets.committed.of_group(GROUP)] == ["t"]
