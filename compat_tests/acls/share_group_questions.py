"""Questions about share groups and their offsets (KIP-932)."""

from __future__ import annotations

from pykbroker.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)

from .scene import MISSING, MISSING_GROUP, TOPIC, Catalogue, Scene

SHARE_GROUP = "matrix-shares"

catalogue = Catalogue()
asks = catalogue.asks


@asks("share group heartbeat")
def share_group_heartbeat(scene: Scene) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(group_id=SHARE_GROUP, member_id="nobody", member_epoch=5)


@asks("share group heartbeat with topics")
def share_group_heartbeat_with_topics(scene: Scene) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=SHARE_GROUP, member_id="nobody", member_epoch=5, subscribed_topic_names=[TOPIC, MISSING]
    )


@asks("describe share groups")
def share_group_describe(scene: Scene) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=[SHARE_GROUP, MISSING_GROUP], include_authorized_operations=True)


@asks("describe offsets of share groups", 0, 1)
def describe_share_group_offsets(scene: Scene) -> DescribeShareGroupOffsetsRequest:
    topics = [DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in (TOPIC, MISSING)]
    return DescribeShareGroupOffsetsRequest(
        groups=[
            DescribeShareGroupOffsetsRequestGroup(group_id=MISSING_GROUP, topics=topics),
            DescribeShareGroupOffsetsRequestGroup(group_id=MISSING_GROUP, topics=None),
        ]
    )


@asks("alter offsets of a share group")
def alter_share_group_offsets(scene: Scene) -> AlterShareGroupOffsetsRequest:
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=9, start_offset=0)],
        )
        for name in (TOPIC, MISSING)
    ]
    return AlterShareGroupOffsetsRequest(group_id=SHARE_GROUP, topics=topics)


@asks("delete offsets of a share group")
def delete_share_group_offsets(scene: Scene) -> DeleteShareGroupOffsetsRequest:
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in (TOPIC, MISSING)]
    return DeleteShareGroupOffsetsRequest(group_id=MISSING_GROUP, topics=topics)
