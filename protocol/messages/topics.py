"""Creating, deleting and growing topics."""

from __future__ import annotations

from ..schema import Message, Struct, field


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible="5+", listeners="broker controller"):
    """The request creates topics, by a number of partitions and replicas or by an explicit assignment.

    v4 lets -1 stand for the broker's defaults (KIP-464), v5 returns the configuration (KIP-525), v6 may be
    throttled (KIP-599).
    """

    topics: list[CreatableTopic] = field("[]struct")
    timeout_ms: int = field("int32", default=60000)
    validate_only: bool = field("bool", "1+")


class CreatableTopic(Struct):
    name: str = field("string", map_key=True)
    num_partitions: int = field("int32")
    replication_factor: int = field("int16")
    assignments: list[CreatableReplicaAssignment] = field("[]struct")
    configs: list[CreatableTopicConfig] = field("[]struct")


class CreatableReplicaAssignment(Struct):
    partition_index: int = field("int32", map_key=True)
    broker_ids: list[int] = field("[]int32")


class CreatableTopicConfig(Struct):
    name: str = field("string", map_key=True)
    value: str | None = field("string", nullable="0+")


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    """The outcome for each topic.

    v5 adds the resulting configuration (KIP-525), v7 the topic id (KIP-516).
    """

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    topics: list[CreatableTopicResult] = field("[]struct")


class CreatableTopicResult(Struct):
    name: str = field("string", map_key=True)
    topic_id: bytes = field("uuid", "7+", ignorable=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = field("int16", "5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: int = field("int32", "5+", default=-1, ignorable=True)
    replication_factor: int = field("int16", "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field("[]struct", "5+", nullable="5+", ignorable=True)


class CreatableTopicConfigs(Struct):
    name: str = field("string", "5+")
    value: str | None = field("string", "5+", nullable="5+")
    read_only: bool = field("bool", "5+")
    config_source: int = field("int8", "5+", default=-1, ignorable=True)
    is_sensitive: bool = field("bool", "5+")


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+", listeners="broker controller"):
    """The request deletes topics by name, from v6 on also by id (KIP-516).

    v5 may be throttled (KIP-599).
    """

    topics: list[DeleteTopicState] = field("[]struct", "6+")
    topic_names: list[str] = field("[]string", "0-5", ignorable=True)
    timeout_ms: int = field("int32")


class DeleteTopicState(Struct):
    name: str | None = field("string", "6+", nullable="6+", default=None)
    topic_id: bytes = field("uuid", "6+")


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    """The outcome for each topic.

    v5 adds error messages (KIP-599), v6 topic ids, with a null name where only the id is known (KIP-516).
    """

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    responses: list[DeletableTopicResult] = field("[]struct")


class DeletableTopicResult(Struct):
    name: str | None = field("string", nullable="6+", map_key=True)
    topic_id: bytes = field("uuid", "6+", ignorable=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+", listeners="broker controller"):
    """Grows topics to a new number of partitions (KIP-195).

    v3 may be throttled (KIP-599).
    """

    topics: list[CreatePartitionsTopic] = field("[]struct")
    timeout_ms: int = field("int32")
    validate_only: bool = field("bool")


class CreatePartitionsTopic(Struct):
    name: str = field("string", map_key=True)
    count: int = field("int32")
    assignments: list[CreatePartitionsAssignment] | None = field("[]struct", nullable="0+")


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = field("[]int32")


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    """The outcome for each topic."""

    throttle_time_ms: int = field("int32")
    results: list[CreatePartitionsTopicResult] = field("[]struct")


class CreatePartitionsTopicResult(Struct):
    name: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
