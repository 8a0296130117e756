"""Moving replicas and leadership (KIP-455, KIP-460)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class AlterPartitionReassignmentsRequest(
    Message, api_key=45, versions="0-1", flexible="0+", listeners="broker controller"
):
    """The request starts and cancels moves of partitions to other replicas.

    v1 can forbid a change of the replication factor (KIP-860).
    """

    timeout_ms: int = field("int32", default=60000)
    allow_replication_factor_change: bool = field("bool", "1+", default=True)
    topics: list[ReassignableTopic] = field("[]struct")


class ReassignableTopic(Struct):
    name: str = field("string")
    partitions: list[ReassignablePartition] = field("[]struct")


class ReassignablePartition(Struct):
    partition_index: int = field("int32")
    replicas: list[int] | None = field("[]int32", nullable="0+", default=None)


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    allow_replication_factor_change: bool = field("bool", "1+", default=True, ignorable=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    responses: list[ReassignableTopicResponse] = field("[]struct")


class ReassignableTopicResponse(Struct):
    name: str = field("string")
    partitions: list[ReassignablePartitionResponse] = field("[]struct")


class ReassignablePartitionResponse(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")


class ListPartitionReassignmentsRequest(
    Message, api_key=46, versions="0", flexible="0+", listeners="broker controller"
):
    """The request asks for moves in progress; null topics stand for all of them."""

    timeout_ms: int = field("int32", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field("[]struct", nullable="0+", default=None)


class ListPartitionReassignmentsTopics(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field("[]int32")


class ListPartitionReassignmentsResponse(Message, api_key=46, versions="0", flexible="0+"):
    """Replicas, and those being added and removed."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    topics: list[OngoingTopicReassignment] = field("[]struct")


class OngoingTopicReassignment(Struct):
    name: str = field("string")
    partitions: list[OngoingPartitionReassignment] = field("[]struct")


class OngoingPartitionReassignment(Struct):
    partition_index: int = field("int32")
    replicas: list[int] = field("[]int32")
    adding_replicas: list[int] = field("[]int32")
    removing_replicas: list[int] = field("[]int32")


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+", listeners="broker controller"):
    """Elects leaders: the preferred ones, from v1 on also unclean ones (KIP-460)."""

    election_type: int = field("int8", "1+")
    topic_partitions: list[TopicPartitions] | None = field("[]struct", nullable="0+")
    timeout_ms: int = field("int32", default=60000)


class TopicPartitions(Struct):
    topic: str = field("string", map_key=True)
    partitions: list[int] = field("[]int32")


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16", "1+")
    replica_election_results: list[ReplicaElectionResult] = field("[]struct")


class ReplicaElectionResult(Struct):
    topic: str = field("string")
    partition_result: list[PartitionResult] = field("[]struct")


class PartitionResult(Struct):
    partition_id: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
