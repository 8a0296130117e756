"""Share groups: records are handed out and acknowledged one by one (KIP-932)."""

from __future__ import annotations

from ..schema import Message, RecordsRegion, Struct, field


class ShareGroupHeartbeatRequest(Message, api_key=76, versions="1", flexible="0+", listeners="broker"):
    """Joins, stays in and leaves a share group."""

    group_id: str = field("string")
    member_id: str = field("string")
    member_epoch: int = field("int32")
    rack_id: str | None = field("string", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = field("[]string", nullable="0+", default=None)


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1", flexible="0+"):
    """The member's epoch, and its assignment when that has changed."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    member_id: str | None = field("string", nullable="0+", default=None)
    member_epoch: int = field("int32")
    heartbeat_interval_ms: int = field("int32")
    assignment: ShareGroupHeartbeatResponseAssignment | None = field("struct", nullable="0+", default=None)


class ShareGroupHeartbeatResponseAssignment(Struct):
    topic_partitions: list[ShareGroupHeartbeatResponseTopicPartitions] = field("[]struct")


class ShareGroupHeartbeatResponseTopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible="0+", listeners="broker"):
    """The request asks for share groups in detail."""

    group_ids: list[str] = field("[]string")
    include_authorized_operations: bool = field("bool")


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible="0+"):
    """Epochs, members and assignments of share groups."""

    throttle_time_ms: int = field("int32")
    groups: list[DescribedGroup] = field("[]struct")


class DescribedGroup(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    group_id: str = field("string")
    group_state: str = field("string")
    group_epoch: int = field("int32")
    assignment_epoch: int = field("int32")
    assignor_name: str = field("string")
    members: list[Member] = field("[]struct")
    authorized_operations: int = field("int32", default=-2147483648)


class Member(Struct):
    member_id: str = field("string")
    rack_id: str | None = field("string", nullable="0+", default=None)
    member_epoch: int = field("int32")
    client_id: str = field("string")
    client_host: str = field("string")
    subscribed_topic_names: list[str] = field("[]string")
    assignment: ShareGroupDescribeResponseAssignment = field("struct")


class ShareGroupDescribeResponseAssignment(Struct):
    topic_partitions: list[ShareGroupDescribeResponseTopicPartitions] = field("[]struct")


class ShareGroupDescribeResponseTopicPartitions(Struct):
    topic_id: bytes = field("uuid")
    topic_name: str = field("string")
    partitions: list[int] = field("[]int32")


class ShareFetchRequest(Message, api_key=78, versions="1-2", flexible="0+", listeners="broker"):
    """Acquires records for a time, and acknowledges earlier ones on the way.

    v2 adds the acquire mode (KIP-1206) and renewal (KIP-1222).
    """

    group_id: str | None = field("string", nullable="0+", default=None)
    member_id: str | None = field("string", nullable="0+")
    share_session_epoch: int = field("int32")
    max_wait_ms: int = field("int32")
    min_bytes: int = field("int32")
    max_bytes: int = field("int32", default=0x7FFFFFFF)
    max_records: int = field("int32", "1+")
    batch_size: int = field("int32", "1+")
    share_acquire_mode: int = field("int8", "2+", ignorable=True)
    is_renew_ack: bool = field("bool", "2+")
    topics: list[FetchTopic] = field("[]struct")
    forgotten_topics_data: list[ForgottenTopic] = field("[]struct")


class FetchTopic(Struct):
    topic_id: bytes = field("uuid", map_key=True)
    partitions: list[FetchPartition] = field("[]struct")


class FetchPartition(Struct):
    partition_index: int = field("int32", map_key=True)
    partition_max_bytes: int = field("int32", "0")
    acknowledgement_batches: list[AcknowledgementBatch] = field("[]struct")


class AcknowledgementBatch(Struct):
    first_offset: int = field("int64")
    last_offset: int = field("int64")
    acknowledge_types: list[int] = field("[]int8")


class ForgottenTopic(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[int] = field("[]int32")


class ShareFetchResponse(Message, api_key=78, versions="1-2", flexible="0+"):
    """Record batches, and which of their records are acquired.

    v2 adds the duration of an acquisition (KIP-1222).
    """

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field("int32", "1+")
    responses: list[ShareFetchableTopicResponse] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct")


class ShareFetchableTopicResponse(Struct):
    topic_id: bytes = field("uuid", map_key=True)
    partitions: list[ShareFetchResponsePartitionData] = field("[]struct")


class ShareFetchResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    acknowledge_error_code: int = field("int16")
    acknowledge_error_message: str | None = field("string", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("struct")
    records: bytes | memoryview | RecordsRegion | None = field("records", nullable="0")
    acquired_records: list[AcquiredRecords] = field("[]struct")


class LeaderIdAndEpoch(Struct):
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")


class AcquiredRecords(Struct):
    first_offset: int = field("int64")
    last_offset: int = field("int64")
    delivery_count: int = field("int16")


class NodeEndpoint(Struct):
    node_id: int = field("int32", map_key=True)
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", nullable="0+", default=None)


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible="0+", listeners="broker"):
    """Accepts, releases or rejects records, from v2 on also renews them (KIP-1222)."""

    group_id: str | None = field("string", nullable="0+", default=None)
    member_id: str | None = field("string", nullable="0+")
    share_session_epoch: int = field("int32")
    is_renew_ack: bool = field("bool", "2+")
    topics: list[AcknowledgeTopic] = field("[]struct")


class AcknowledgeTopic(Struct):
    topic_id: bytes = field("uuid", map_key=True)
    partitions: list[AcknowledgePartition] = field("[]struct")


class AcknowledgePartition(Struct):
    partition_index: int = field("int32", map_key=True)
    acknowledgement_batches: list[AcknowledgementBatch] = field("[]struct")


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field("int32", "2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct")


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: bytes = field("uuid", map_key=True)
    partitions: list[ShareAcknowledgeResponsePartitionData] = field("[]struct")


class ShareAcknowledgeResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("struct")


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", flexible="0+", listeners="broker"):
    """The request asks where share groups begin to read."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field("[]struct")


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = field("string")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field("[]struct", nullable="0+")


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field("string")
    partitions: list[int] = field("[]int32")


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1", flexible="0+"):
    """Start offsets of share groups, from v1 on with the lag (KIP-1226)."""

    throttle_time_ms: int = field("int32")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field("[]struct")


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = field("string")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field("[]struct")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field("string")
    topic_id: bytes = field("uuid")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field("[]struct")


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field("int32")
    start_offset: int = field("int64")
    leader_epoch: int = field("int32")
    lag: int = field("int64", "1+", default=-1, ignorable=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", flexible="0+", listeners="broker"):
    """The request sets the start offsets of a share group."""

    group_id: str = field("string")
    topics: list[AlterShareGroupOffsetsRequestTopic] = field("[]struct")


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field("string", map_key=True)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field("[]struct")


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = field("int32")
    start_offset: int = field("int64")


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field("[]struct")


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field("string", map_key=True)
    topic_id: bytes = field("uuid")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field("[]struct")


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible="0+", listeners="broker"):
    """The request deletes the offsets of a share group for topics."""

    group_id: str = field("string")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field("[]struct")


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field("string")


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible="0+"):
    """The outcome for each topic."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field("[]struct")


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field("string")
    topic_id: bytes = field("uuid")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
