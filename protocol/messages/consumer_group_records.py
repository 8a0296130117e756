"""Records of `__consumer_offsets` for the consumer protocol (KIP-848)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions="0", flexible="none"):
    """The group. Superseded by the hash in ConsumerGroupMetadataValue (KIP-1101)."""

    group_id: str = field("string", "0")


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions="0", flexible="0+"):
    """Partitions of subscribed topics. Superseded by the hash in ConsumerGroupMetadataValue (KIP-1101)."""

    topics: list[TopicMetadata] = field("[]struct")


class TopicMetadata(Struct):
    topic_id: bytes = field("uuid")
    topic_name: str = field("string")
    num_partitions: int = field("int32")
    partition_metadata: list[PartitionMetadata] = field("[]struct")


class PartitionMetadata(Struct):
    partition: int = field("int32")
    racks: list[str] = field("[]string")


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0", flexible="0+"):
    """The record says what a member has said of itself; for one that speaks the classic protocol that as well."""

    instance_id: str | None = field("string", nullable="0+")
    rack_id: str | None = field("string", nullable="0+")
    client_id: str = field("string")
    client_host: str = field("string")
    subscribed_topic_names: list[str] = field("[]string")
    subscribed_topic_regex: str | None = field("string", nullable="0+")
    rebalance_timeout_ms: int = field("int32", default=-1)
    server_assignor: str | None = field("string", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field("struct", nullable="0+", tag=0, tagged="0+")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field("int32")
    supported_protocols: list[ClassicProtocol] = field("[]struct")


class ClassicProtocol(Struct):
    name: str = field("string")
    metadata: bytes = field("bytes")


class ConsumerGroupMetadataKey(Message, api_key=3, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0", flexible="0+"):
    """The group's epoch, and a hash over its subscribed topics (KIP-1101)."""

    epoch: int = field("int32")
    metadata_hash: int = field("int64", tag=0, tagged="0+")


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions="0", flexible="none"):
    """The group."""

    group_id: str = field("string", "0")


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0", flexible="0+"):
    """The epoch of the target assignment, and when it was computed (KIP-1263)."""

    assignment_epoch: int = field("int32")
    assignment_timestamp: int = field("int64", tag=0, tagged="0+", ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0", flexible="0+"):
    """The record says what the member should have."""

    topic_partitions: list[TopicPartition] = field("[]struct")


class TopicPartition(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions="0", flexible="none"):
    """A member of a group."""

    group_id: str = field("string", "0")
    member_id: str = field("string", "0")


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0", flexible="0+"):
    """The record says what the member has, what it must give up, and its epochs."""

    member_epoch: int = field("int32")
    previous_member_epoch: int = field("int32")
    state: int = field("int8")
    assigned_partitions: list[TopicPartitions] = field("[]struct")
    partitions_pending_revocation: list[TopicPartitions] = field("[]struct")


class TopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")
    assignment_epochs: list[int] | None = field("[]int32", nullable="0+", tag=0, tagged="0+")


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions="0", flexible="none"):
    """A regular expression to which members are subscribed."""

    group_id: str = field("string", "0")
    regular_expression: str = field("string", "0")


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0", flexible="0+"):
    """The topics that it matched, and as of when."""

    topics: list[str] = field("[]string")
    version: int = field("int64")
    timestamp: int = field("int64")
