"""A topic of the same name is another topic: what was committed for the deleted one is not the new one's."""

from __future__ import annotations

import pytest

from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.schema import NO_UUID

from .conversation import GROUP, Conversation

OLD, NEW = b"o" * 16, b"n" * 16


def committed(talk: Conversation, topic_id: bytes) -> int:
    topic = OffsetFetchRequestTopics(name="events", topic_id=topic_id, partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])])
    answer = talk.ask(f"fetch {talk.asked}", request, 10)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


@pytest.mark.parametrize(
    ("of_commit", "of_fetch", "offset"),
    [
        (OLD, OLD, 5),
        (OLD, NEW, -1),
        (OLD, NO_UUID, 5),  # a client that knows names only
        (NO_UUID, NEW, 5),  # committed by one that does
    ],
)
def test_an_offset_is_that_of_the_topic_it_was_committed_for(of_commit: bytes, of_fetch: bytes, offset: int) -> None:
    talk = Conversation()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="events", topic_id=of_commit, partitions=[partition])
    talk.ask("commit", OffsetCommitRequest(group_id=GROUP, topics=[topic]), 10)
    assert committed(talk, of_fetch) == offset
