"""Questions about groups and their offsets."""

from __future__ import annotations

from pykbroker.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)

from .scene import CONSUMER_GROUP, GROUP, MISSING, MISSING_GROUP, TOPIC, Catalogue, Scene
from .topic_questions import UNKNOWN_ID

catalogue = Catalogue()
asks = catalogue.asks


@asks("find the coordinator of a group", 0, 3)
def find_coordinator(scene: Scene) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=GROUP, key_type=0)


@asks("find the coordinators of groups", 4, 6)
def find_coordinators(scene: Scene) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP, MISSING_GROUP])


@asks("join a group", 0, 4, 7, 9)
def join_group(scene: Scene) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


@asks("sync a group", 0, 4, 5)
def sync_group(scene: Scene) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP, generation_id=1, member_id="nobody", protocol_type="consumer", protocol_name="range"
    )


@asks("heartbeat")
def heartbeat(scene: Scene) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody")


@asks("leave a group alone", 0, 2)
def leave_group_alone(scene: Scene) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=GROUP, member_id="nobody")


@asks("leave a group", 3, 5)
def leave_group(scene: Scene) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="nobody")])


@asks("consumer group heartbeat", 0, 1)
def consumer_group_heartbeat(scene: Scene) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=CONSUMER_GROUP,
        member_id="nobody",
        member_epoch=5,
        subscribed_topic_names=None,
        topic_partitions=None,
    )


@asks("consumer group heartbeat with topics", 0, 1)
def consumer_group_heartbeat_with_topics(scene: Scene) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=CONSUMER_GROUP,
        member_id="nobody",
        member_epoch=5,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[TOPIC, MISSING],
        topic_partitions=[],
    )


@asks("describe consumer groups", keeps_members=True)
def consumer_group_describe(scene: Scene) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP, MISSING_GROUP], include_authorized_operations=True)


@asks("describe groups", 0, 3, 6)
def describe_groups(scene: Scene) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[GROUP, MISSING_GROUP], include_authorized_operations=False)


@asks("describe groups with operations", 3, 6)
def describe_groups_with_operations(scene: Scene) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[GROUP, MISSING_GROUP], include_authorized_operations=True)


@asks("list groups")
def list_groups(scene: Scene) -> ListGroupsRequest:
    return ListGroupsRequest()


@asks("delete groups")
def delete_groups(scene: Scene) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=[MISSING_GROUP])


def _committed(name: str, topic_id: bytes) -> OffsetCommitRequestTopic:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata="")
    return OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[partition])


@asks("commit offsets", 2, 8, 9, 10)
def offset_commit(scene: Scene) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[_committed(TOPIC, scene.topic_id), _committed(MISSING, UNKNOWN_ID)],
    )


@asks("fetch offsets of a group", 1, 2, 7)
def offset_fetch(scene: Scene) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        group_id=GROUP,
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in (TOPIC, MISSING)],
    )


@asks("fetch offsets of groups", 8, 9, 10)
def offset_fetch_of_groups(scene: Scene) -> OffsetFetchRequest:
    topics = [
        OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=[0])
        for name, topic_id in ((TOPIC, scene.topic_id), (MISSING, UNKNOWN_ID))
    ]
    groups = [OffsetFetchRequestGroup(group_id=each, topics=topics) for each in (GROUP, MISSING_GROUP)]
    return OffsetFetchRequest(groups=groups)


@asks("fetch all offsets", 2, 7)
def offset_fetch_all(scene: Scene) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=GROUP, topics=None)


@asks("fetch all offsets of groups", 8, 10)
def offset_fetch_all_of_groups(scene: Scene) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])


@asks("delete offsets")
def offset_delete(scene: Scene) -> OffsetDeleteRequest:
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=1)])
        for name in (TOPIC, MISSING)
    ]
    return OffsetDeleteRequest(group_id=GROUP, topics=topics)
