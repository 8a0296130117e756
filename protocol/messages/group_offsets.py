"""Offsets that groups commit."""

from __future__ import annotations

from ..schema import Message, Struct, field


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+", listeners="broker"):
    """The request commits a group's offsets.

    v5 drops the retention time (KIP-211), v6 adds leader epochs (KIP-320), v7 static members (KIP-345), v9 serves
    the consumer protocol (KIP-848), v10 names topics by id.
    """

    group_id: str = field("string")
    generation_id_or_member_epoch: int = field("int32", "1+", default=-1, ignorable=True)
    member_id: str = field("string", "1+", ignorable=True)
    group_instance_id: str | None = field("string", "7+", nullable="7+", default=None)
    retention_time_ms: int = field("int64", "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field("[]struct")


class OffsetCommitRequestTopic(Struct):
    name: str = field("string", "0-9", ignorable=True)
    topic_id: bytes = field("uuid", "10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field("[]struct")


class OffsetCommitRequestPartition(Struct):
    partition_index: int = field("int32")
    committed_offset: int = field("int64")
    committed_leader_epoch: int = field("int32", "6+", default=-1, ignorable=True)
    committed_metadata: str | None = field("string", nullable="0+")


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    """The outcome for each partition.

    From v9 on STALE_MEMBER_EPOCH is possible (KIP-848), from v10 on topics have ids.
    """

    throttle_time_ms: int = field("int32", "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field("[]struct")


class OffsetCommitResponseTopic(Struct):
    name: str = field("string", "0-9", ignorable=True)
    topic_id: bytes = field("uuid", "10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field("[]struct")


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+", listeners="broker"):
    """The request asks for a group's committed offsets; null topics stand for all of them.

    v7 can insist on stable offsets (KIP-447), v8 takes several groups (KIP-709), v9 serves the consumer protocol
    (KIP-848), v10 names topics by id.
    """

    group_id: str = field("string", "0-7")
    topics: list[OffsetFetchRequestTopic] | None = field("[]struct", "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field("[]struct", "8+")
    require_stable: bool = field("bool", "7+")


class OffsetFetchRequestTopic(Struct):
    name: str = field("string", "0-7")
    partition_indexes: list[int] = field("[]int32", "0-7")


class OffsetFetchRequestGroup(Struct):
    group_id: str = field("string", "8+")
    member_id: str | None = field("string", "9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = field("int32", "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field("[]struct", "8+", nullable="8+")


class OffsetFetchRequestTopics(Struct):
    name: str = field("string", "8-9", ignorable=True)
    topic_id: bytes = field("uuid", "10+", ignorable=True)
    partition_indexes: list[int] = field("[]int32", "8+")


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    """Committed offsets, -1 where there is none.

    v2 adds an error for the whole answer, v5 leader epochs (KIP-320), v8 several groups (KIP-709), v10 topic ids.
    """

    throttle_time_ms: int = field("int32", "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field("[]struct", "0-7")
    error_code: int = field("int16", "2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field("[]struct", "8+")


class OffsetFetchResponseTopic(Struct):
    name: str = field("string", "0-7")
    partitions: list[OffsetFetchResponsePartition] = field("[]struct", "0-7")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = field("int32", "0-7")
    committed_offset: int = field("int64", "0-7")
    committed_leader_epoch: int = field("int32", "5-7", default=-1, ignorable=True)
    metadata: str | None = field("string", "0-7", nullable="0-7")
    error_code: int = field("int16", "0-7")


class OffsetFetchResponseGroup(Struct):
    group_id: str = field("string", "8+")
    topics: list[OffsetFetchResponseTopics] = field("[]struct", "8+")
    error_code: int = field("int16", "8+")


class OffsetFetchResponseTopics(Struct):
    name: str = field("string", "8-9", ignorable=True)
    topic_id: bytes = field("uuid", "10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field("[]struct", "8+")


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field("int32", "8+")
    committed_offset: int = field("int64", "8+")
    committed_leader_epoch: int = field("int32", "8+", default=-1, ignorable=True)
    metadata: str | None = field("string", "8+", nullable="8+")
    error_code: int = field("int16", "8+")


class OffsetDeleteRequest(Message, api_key=47, versions="0", flexible="none", listeners="broker"):
    """The request deletes committed offsets of topics to which no member is subscribed (KIP-496)."""

    group_id: str = field("string")
    topics: list[OffsetDeleteRequestTopic] = field("[]struct")


class OffsetDeleteRequestTopic(Struct):
    name: str = field("string", map_key=True)
    partitions: list[OffsetDeleteRequestPartition] = field("[]struct")


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = field("int32")


class OffsetDeleteResponse(Message, api_key=47, versions="0", flexible="none"):
    """The outcome for each partition."""

    error_code: int = field("int16")
    throttle_time_ms: int = field("int32", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = field("[]struct")


class OffsetDeleteResponseTopic(Struct):
    name: str = field("string", map_key=True)
    partitions: list[OffsetDeleteResponsePartition] = field("[]struct")


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = field("int32", map_key=True)
    error_code: int = field("int16")
