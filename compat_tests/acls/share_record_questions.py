"""Questions about the records of share groups (KIP-932). Nothing is fetched: what is loaded when is not compared."""

from __future__ import annotations

from pykbroker.protocol.messages.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)

from .scene import MISSING_GROUP, Catalogue, Scene

SHARE_MEMBER = "matrix-member"
_UNKNOWN_ID = bytes(range(16))

catalogue = Catalogue()
asks = catalogue.asks


@asks("share fetch")
def share_fetch(scene: Scene) -> ShareFetchRequest:
    return _share_fetch(scene.topic_id)


@asks("share fetch of an unknown topic")
def share_fetch_of_unknown(scene: Scene) -> ShareFetchRequest:
    return _share_fetch(_UNKNOWN_ID)


@asks("share acknowledge")
def share_acknowledge(scene: Scene) -> ShareAcknowledgeRequest:
    batch = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    return ShareAcknowledgeRequest(
        group_id=MISSING_GROUP,
        member_id=SHARE_MEMBER,
        share_session_epoch=-1,
        topics=[AcknowledgeTopic(topic_id=scene.topic_id, partitions=[partition])],
    )


def _share_fetch(topic_id: bytes) -> ShareFetchRequest:
    """Begin a session, and ask for no record."""
    return ShareFetchRequest(
        group_id=MISSING_GROUP,
        member_id=SHARE_MEMBER,
        max_records=0,
        batch_size=1,
        topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_index=0)])],
    )
