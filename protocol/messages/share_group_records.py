"""Records of `__consumer_offsets` for share groups (KIP-932)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ShareGroupMemberMetadataKey(Message, api_key=10, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class ShareGroupMemberMetadataValue(Message, api_key=10, versions="0", flexible="0+"):
    """The record says what a member has said of itself."""

    rack_id: str | None = field("string", nullable="0+")
    client_id: str = field("string")
    client_host: str = field("string")
    subscribed_topic_names: list[str] = field("[]string")


class ShareGroupMetadataKey(Message, api_key=11, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class ShareGroupMetadataValue(Message, api_key=11, versions="0", flexible="0+"):
    """The group's epoch, and a hash over its subscribed topics (KIP-1101)."""

    epoch: int = field("int32")
    metadata_hash: int = field("int64")


class ShareGroupTargetAssignmentMetadataKey(Message, api_key=12, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class ShareGroupTargetAssignmentMetadataValue(Message, api_key=12, versions="0", flexible="0+"):
    """The epoch of the target assignment, and when it was computed (KIP-1263)."""

    assignment_epoch: int = field("int32")
    assignment_timestamp: int = field("int64", tag=0, tagged="0+", ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, api_key=13, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class ShareGroupTargetAssignmentMemberValue(Message, api_key=13, versions="0", flexible="0+"):
    """The record says what the member should have."""

    topic_partitions: list[TopicPartition] = field("[]struct")


class TopicPartition(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ShareGroupCurrentMemberAssignmentKey(Message, api_key=14, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class ShareGroupCurrentMemberAssignmentValue(Message, api_key=14, versions="0", flexible="0+"):
    """The record says what the member has, and its epochs."""

    member_epoch: int = field("int32")
    previous_member_epoch: int = field("int32")
    state: int = field("int8")
    assigned_partitions: list[TopicPartitions] = field("[]struct")


class TopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ShareGroupStatePartitionMetadataKey(Message, api_key=15, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class ShareGroupStatePartitionMetadataValue(Message, api_key=15, versions="0", flexible="0+"):
    """The record says for which partitions the share coordinator holds state, or is about to create or delete it."""

    initializing_topics: list[TopicPartitionsInfo] = field("[]struct")
    initialized_topics: list[TopicPartitionsInfo] = field("[]struct")
    deleting_topics: list[TopicInfo] = field("[]struct")


class TopicPartitionsInfo(Struct):
    topic_id: bytes = field("uuid")
    topic_name: str = field("string")
    partitions: list[int] = field("[]int32")


class TopicInfo(Struct):
    topic_id: bytes = field("uuid")
    topic_name: str = field("string")
