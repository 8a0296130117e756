"""The rebalance protocol of Kafka Streams (KIP-1071)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0-1", flexible="0+", listeners="broker"):
    """Joins, stays in and leaves a streams group, and brings the topology."""

    group_id: str = field("string")
    member_id: str = field("string")
    member_epoch: int = field("int32")
    endpoint_information_epoch: int = field("int32")
    instance_id: str | None = field("string", nullable="0+", default=None)
    rack_id: str | None = field("string", nullable="0+", default=None)
    rebalance_timeout_ms: int = field("int32", default=-1)
    topology: StreamsGroupHeartbeatRequestTopology | None = field("struct", nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = field("[]struct", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field("[]struct", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field("[]struct", nullable="0+", default=None)
    process_id: str | None = field("string", nullable="0+", default=None)
    user_endpoint: Endpoint | None = field("struct", nullable="0+", default=None)
    client_tags: list[KeyValue] | None = field("[]struct", nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = field("[]struct", nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = field("[]struct", nullable="0+", default=None)
    shutdown_application: bool = field("bool")


class StreamsGroupHeartbeatRequestTopology(Struct):
    epoch: int = field("int32")
    subtopologies: list[StreamsGroupHeartbeatRequestSubtopology] = field("[]struct")


class StreamsGroupHeartbeatRequestSubtopology(Struct):
    subtopology_id: str = field("string")
    source_topics: list[str] = field("[]string")
    source_topic_regex: list[str] = field("[]string")
    state_changelog_topics: list[TopicInfo] = field("[]struct")
    repartition_sink_topics: list[str] = field("[]string")
    repartition_source_topics: list[TopicInfo] = field("[]struct")
    copartition_groups: list[CopartitionGroup] = field("[]struct")


class TopicInfo(Struct):
    name: str = field("string")
    partitions: int = field("int32")
    replication_factor: int = field("int16")
    topic_configs: list[KeyValue] = field("[]struct")


class KeyValue(Struct):
    key: str = field("string")
    value: str = field("string")


class CopartitionGroup(Struct):
    source_topics: list[int] = field("[]int16")
    source_topic_regex: list[int] = field("[]int16")
    repartition_source_topics: list[int] = field("[]int16")


class TaskIds(Struct):
    subtopology_id: str = field("string")
    partitions: list[int] = field("[]int32")


class Endpoint(Struct):
    host: str = field("string")
    port: int = field("uint16")


class TaskOffset(Struct):
    subtopology_id: str = field("string")
    partition: int = field("int32")
    offset: int = field("int64")


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0-1", flexible="0+"):
    """The member's tasks when they have changed, and what stands in the way of the group.

    v1 asks for the topology's description (KIP-1331), and has the lag in 64 bits.
    """

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    member_id: str = field("string")
    member_epoch: int = field("int32")
    heartbeat_interval_ms: int = field("int32")
    acceptable_recovery_lag_legacy: int = field("int32", "0")
    task_offset_interval_ms: int = field("int32")
    acceptable_recovery_lag: int = field("int64", "1+", default=-1, ignorable=True)
    status: list[Status] | None = field("[]struct", nullable="0+")
    active_tasks: list[TaskIds] | None = field("[]struct", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field("[]struct", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field("[]struct", nullable="0+", default=None)
    topology_description_required: bool = field("bool", "1+")
    endpoint_information_epoch: int = field("int32")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field("[]struct", nullable="0+", default=None)


class Status(Struct):
    status_code: int = field("int8")
    status_detail: str = field("string")


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = field("struct")
    active_partitions: list[TopicPartition] = field("[]struct")
    standby_partitions: list[TopicPartition] = field("[]struct")


class TopicPartition(Struct):
    topic: str = field("string")
    partitions: list[int] = field("[]int32")


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0-1", flexible="0+", listeners="broker"):
    """The request asks for streams groups in detail; since v1 with the topology's description (KIP-1331)."""

    group_ids: list[str] = field("[]string")
    include_authorized_operations: bool = field("bool")
    include_topology_description: bool = field("bool", "1+")


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0-1", flexible="0+"):
    """Topology, members and tasks of streams groups.

    v1 adds the topology's description (KIP-1331) and the assignor (KIP-1357).
    """

    throttle_time_ms: int = field("int32")
    groups: list[DescribedGroup] = field("[]struct")


class DescribedGroup(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    group_id: str = field("string")
    group_state: str = field("string")
    group_epoch: int = field("int32")
    assignment_epoch: int = field("int32")
    topology: StreamsGroupDescribeResponseTopology | None = field("struct", nullable="0+", default=None)
    members: list[Member] = field("[]struct")
    authorized_operations: int = field("int32", default=-2147483648)
    topology_description: TopologyDescription | None = field("struct", "1+", nullable="1+", default=None)
    topology_description_status: int = field("int8", "1+")
    assignor_name: str | None = field("string", "1+", nullable="1+", default=None, ignorable=True)


class StreamsGroupDescribeResponseTopology(Struct):
    epoch: int = field("int32")
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = field("[]struct", nullable="0+", default=None)


class StreamsGroupDescribeResponseSubtopology(Struct):
    subtopology_id: str = field("string")
    source_topics: list[str] = field("[]string")
    repartition_sink_topics: list[str] = field("[]string")
    state_changelog_topics: list[TopicInfo] = field("[]struct")
    repartition_source_topics: list[TopicInfo] = field("[]struct")


class Member(Struct):
    member_id: str = field("string")
    member_epoch: int = field("int32")
    instance_id: str | None = field("string", nullable="0+", default=None)
    rack_id: str | None = field("string", nullable="0+", default=None)
    client_id: str = field("string")
    client_host: str = field("string")
    topology_epoch: int = field("int32")
    process_id: str = field("string")
    user_endpoint: Endpoint | None = field("struct", nullable="0+", default=None)
    client_tags: list[KeyValue] = field("[]struct")
    task_offsets: list[TaskOffset] = field("[]struct")
    task_end_offsets: list[TaskOffset] = field("[]struct")
    assignment: Assignment = field("struct")
    target_assignment: Assignment = field("struct")
    is_classic: bool = field("bool")


class Assignment(Struct):
    active_tasks: list[TaskIds] = field("[]struct")
    standby_tasks: list[TaskIds] = field("[]struct")
    warmup_tasks: list[TaskIds] = field("[]struct")


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field("[]struct", "1+")
    global_stores: list[TopologyDescriptionGlobalStore] = field("[]struct", "1+")


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = field("string", "1+")
    nodes: list[TopologyDescriptionNode] = field("[]struct", "1+")


class TopologyDescriptionNode(Struct):
    name: str = field("string", "1+")
    node_type: int = field("int8", "1+")
    source_topics: list[str] = field("[]string", "1+")
    sink_topic: str | None = field("string", "1+", nullable="1+", default=None)
    stores: list[str] = field("[]string", "1+")
    successors: list[str] = field("[]string", "1+")


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field("struct", "1+")
    processor: TopologyDescriptionNode = field("struct", "1+")
