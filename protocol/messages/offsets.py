"""Offsets of a partition's log: by time, by leader epoch, and the deletion of what lies before one."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+", listeners="broker"):
    """The request finds the offset for a timestamp; negative timestamps stand for places such as the end of the log.

    v2 adds isolation levels, v4 leader epochs (KIP-320), v7 the record of the greatest timestamp (KIP-734), v8, v9
    and v11 places of tiered storage (KIP-405, KIP-1005, KIP-1023), v10 a timeout for remote look-ups (KIP-1075).
    """

    replica_id: int = field("int32")
    isolation_level: int = field("int8", "2+")
    topics: list[ListOffsetsTopic] = field("[]struct")
    timeout_ms: int = field("int32", "10+", ignorable=True)


class ListOffsetsTopic(Struct):
    name: str = field("string")
    partitions: list[ListOffsetsPartition] = field("[]struct")


class ListOffsetsPartition(Struct):
    partition_index: int = field("int32")
    current_leader_epoch: int = field("int32", "4+", default=-1, ignorable=True)
    timestamp: int = field("int64")


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    """The offset and timestamp that were found, -1 where none was.

    v4 adds the leader epoch of the offset (KIP-320), v5 the error OFFSET_NOT_AVAILABLE (KIP-207).
    """

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field("[]struct")


class ListOffsetsTopicResponse(Struct):
    name: str = field("string")
    partitions: list[ListOffsetsPartitionResponse] = field("[]struct")


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    timestamp: int = field("int64", "1+", default=-1)
    offset: int = field("int64", "1+", default=-1)
    leader_epoch: int = field("int32", "4+", default=-1)


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="2-4", flexible="4+", listeners="broker"):
    """The request asks where a leader epoch ends. Followers and clients truncate or validate by it (KIP-101, KIP-320).

    v3 tells replicas from consumers.
    """

    replica_id: int = field("int32", "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field("[]struct")


class OffsetForLeaderTopic(Struct):
    topic: str = field("string", map_key=True)
    partitions: list[OffsetForLeaderPartition] = field("[]struct")


class OffsetForLeaderPartition(Struct):
    partition: int = field("int32")
    current_leader_epoch: int = field("int32", "2+", default=-1, ignorable=True)
    leader_epoch: int = field("int32")


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible="4+"):
    """The largest epoch that is not beyond the one asked for, and the offset at which it ends."""

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field("[]struct")


class OffsetForLeaderTopicResult(Struct):
    topic: str = field("string", map_key=True)
    partitions: list[EpochEndOffset] = field("[]struct")


class EpochEndOffset(Struct):
    error_code: int = field("int16")
    partition: int = field("int32")
    leader_epoch: int = field("int32", "1+", default=-1, ignorable=True)
    end_offset: int = field("int64", default=-1)


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+", listeners="broker"):
    """The request deletes everything in front of an offset (KIP-107). Offset -1 stands for the high watermark."""

    topics: list[DeleteRecordsTopic] = field("[]struct")
    timeout_ms: int = field("int32")


class DeleteRecordsTopic(Struct):
    name: str = field("string")
    partitions: list[DeleteRecordsPartition] = field("[]struct")


class DeleteRecordsPartition(Struct):
    partition_index: int = field("int32")
    offset: int = field("int64")


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    """The low watermark of each partition afterwards: the smallest log start offset among its replicas."""

    throttle_time_ms: int = field("int32")
    topics: list[DeleteRecordsTopicResult] = field("[]struct")


class DeleteRecordsTopicResult(Struct):
    name: str = field("string", map_key=True)
    partitions: list[DeleteRecordsPartitionResult] = field("[]struct")


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field("int32", map_key=True)
    low_watermark: int = field("int64")
    error_code: int = field("int16")
