"""Messages about the places of replicas among a broker's log directories (KIP-113, KIP-858)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible="2+", listeners="broker"):
    """The request asks for a broker's log directories and the replicas in them."""

    topics: list[DescribableLogDirTopic] | None = field("[]struct", nullable="0+")


class DescribableLogDirTopic(Struct):
    topic: str = field("string", map_key=True)
    partitions: list[int] = field("[]int32")


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    """Directories with the sizes of their replicas.

    v3 adds an error for the whole answer (KIP-784), v4 the space of the volume (KIP-827), v5 cordoned directories
    (KIP-1066).
    """

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16", "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field("[]struct")


class DescribeLogDirsResult(Struct):
    error_code: int = field("int16")
    log_dir: str = field("string")
    topics: list[DescribeLogDirsTopic] = field("[]struct")
    total_bytes: int = field("int64", "4+", default=-1, ignorable=True)
    usable_bytes: int = field("int64", "4+", default=-1, ignorable=True)
    is_cordoned: bool = field("bool", "5+", ignorable=True)


class DescribeLogDirsTopic(Struct):
    name: str = field("string")
    partitions: list[DescribeLogDirsPartition] = field("[]struct")


class DescribeLogDirsPartition(Struct):
    partition_index: int = field("int32")
    partition_size: int = field("int64")
    offset_lag: int = field("int64")
    is_future_key: bool = field("bool")


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+", listeners="broker"):
    """Moves replicas between the log directories of a broker."""

    dirs: list[AlterReplicaLogDir] = field("[]struct")


class AlterReplicaLogDir(Struct):
    path: str = field("string", map_key=True)
    topics: list[AlterReplicaLogDirTopic] = field("[]struct")


class AlterReplicaLogDirTopic(Struct):
    name: str = field("string", map_key=True)
    partitions: list[int] = field("[]int32")


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    results: list[AlterReplicaLogDirTopicResult] = field("[]struct")


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field("string")
    partitions: list[AlterReplicaLogDirPartitionResult] = field("[]struct")


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


class AssignReplicasToDirsRequest(Message, api_key=73, versions="0", flexible="0+", listeners="controller"):
    """A broker tells the controller in which directories its replicas lie (KIP-858)."""

    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = field("[]struct")


class AssignReplicasToDirsRequestDirectoryData(Struct):
    id: bytes = field("uuid")
    topics: list[AssignReplicasToDirsRequestTopicData] = field("[]struct")


class AssignReplicasToDirsRequestTopicData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[AssignReplicasToDirsRequestPartitionData] = field("[]struct")


class AssignReplicasToDirsRequestPartitionData(Struct):
    partition_index: int = field("int32")


class AssignReplicasToDirsResponse(Message, api_key=73, versions="0", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    directories: list[AssignReplicasToDirsResponseDirectoryData] = field("[]struct")


class AssignReplicasToDirsResponseDirectoryData(Struct):
    id: bytes = field("uuid")
    topics: list[AssignReplicasToDirsResponseTopicData] = field("[]struct")


class AssignReplicasToDirsResponseTopicData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[AssignReplicasToDirsResponsePartitionData] = field("[]struct")


class AssignReplicasToDirsResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
