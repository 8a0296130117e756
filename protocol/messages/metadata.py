"""Brokers, topics and partitions as clients see them."""

from __future__ import annotations

from ..schema import Message, Struct, field


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+", listeners="broker"):
    """The request asks for brokers and for some topics, or for all of them (null); may create topics that are missing.

    v4 makes creation optional (KIP-204), v8 asks for authorized operations (KIP-430), v10 prepares topic ids and
    v12 serves them (KIP-516); v11 leaves the cluster's operations to DescribeCluster (KIP-700).
    """

    topics: list[MetadataRequestTopic] | None = field("[]struct", nullable="1+")
    allow_auto_topic_creation: bool = field("bool", "4+", default=True)
    include_cluster_authorized_operations: bool = field("bool", "8-10")
    include_topic_authorized_operations: bool = field("bool", "8+")


class MetadataRequestTopic(Struct):
    topic_id: bytes = field("uuid", "10+", ignorable=True)
    name: str | None = field("string", nullable="10+")


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    """Brokers with their endpoints, and each topic's partitions with leader and replicas.

    v1 adds racks and the controller, v2 the cluster id, v5 offline replicas (KIP-112), v7 leader epochs (KIP-320),
    v10 topic ids (KIP-516), v13 an error for the whole answer (KIP-1102).
    """

    throttle_time_ms: int = field("int32", "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field("[]struct")
    cluster_id: str | None = field("string", "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field("int32", "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field("[]struct")
    cluster_authorized_operations: int = field("int32", "8-10", default=-2147483648)
    error_code: int = field("int16", "13+", ignorable=True)


class MetadataResponseBroker(Struct):
    node_id: int = field("int32", map_key=True)
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", "1+", nullable="1+", default=None, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = field("int16")
    name: str | None = field("string", nullable="12+", map_key=True)
    topic_id: bytes = field("uuid", "10+", ignorable=True)
    is_internal: bool = field("bool", "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field("[]struct")
    topic_authorized_operations: int = field("int32", "8+", default=-2147483648)


class MetadataResponsePartition(Struct):
    error_code: int = field("int16")
    partition_index: int = field("int32")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32", "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = field("[]int32")
    isr_nodes: list[int] = field("[]int32")
    offline_replicas: list[int] = field("[]int32", "5+", ignorable=True)


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible="0+", listeners="broker"):
    """The request asks for topics page by page, from a cursor on (KIP-966)."""

    topics: list[TopicRequest] = field("[]struct")
    response_partition_limit: int = field("int32", default=2000)
    cursor: Cursor | None = field("struct", nullable="0+", default=None)


class TopicRequest(Struct):
    name: str = field("string")


class Cursor(Struct):
    topic_name: str = field("string")
    partition_index: int = field("int32")


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    """One page of partitions with their eligible leader replicas, and the cursor of the next page (KIP-966)."""

    throttle_time_ms: int = field("int32", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field("[]struct")
    next_cursor: Cursor | None = field("struct", nullable="0+", default=None)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = field("int16")
    name: str | None = field("string", nullable="0+", map_key=True)
    topic_id: bytes = field("uuid", ignorable=True)
    is_internal: bool = field("bool", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field("[]struct")
    topic_authorized_operations: int = field("int32", default=-2147483648)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = field("int16")
    partition_index: int = field("int32")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32", default=-1, ignorable=True)
    replica_nodes: list[int] = field("[]int32")
    isr_nodes: list[int] = field("[]int32")
    eligible_leader_replicas: list[int] | None = field("[]int32", nullable="0+", default=None)
    last_known_elr: list[int] | None = field("[]int32", nullable="0+", default=None)
    offline_replicas: list[int] = field("[]int32", ignorable=True)


class DescribeClusterRequest(Message, api_key=60, versions="0-2", flexible="0+", listeners="broker controller"):
    """The request asks for the cluster's id, nodes and authorized operations (KIP-700).

    v1 can ask about controllers (KIP-919), v2 for fenced brokers too (KIP-1073).
    """

    include_cluster_authorized_operations: bool = field("bool")
    endpoint_type: int = field("int8", "1+", default=1)
    include_fenced_brokers: bool = field("bool", "2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible="0+"):
    """The cluster as this node knows it.

    v1 says of which kind the endpoints are (KIP-919), v2 which brokers are fenced (KIP-1073).
    """

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    endpoint_type: int = field("int8", "1+", default=1)
    cluster_id: str = field("string")
    controller_id: int = field("int32", default=-1)
    brokers: list[DescribeClusterBroker] = field("[]struct")
    cluster_authorized_operations: int = field("int32", default=-2147483648)


class DescribeClusterBroker(Struct):
    broker_id: int = field("int32", map_key=True)
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", nullable="0+", default=None)
    is_fenced: bool = field("bool", "2+")
