"""The log directories of a broker, the replicas in them, and moves between them (KIP-113)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .connection import Connection
from .errors import check, code_of

_TELLS_CORDONED_SINCE = 5


@dataclass(frozen=True, slots=True)
class ReplicaInDirectory:
    """A replica with its size. is_future: the copy that takes the replica's place when it has caught up."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A directory. error_code: NONE where it is online. Of the volume's sizes and is_cordoned None: nobody tells."""

    path: str
    error_code: ErrorCode
    replicas: tuple[ReplicaInDirectory, ...]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool | None

    @property
    def is_online(self) -> bool:
        return self.error_code is ErrorCode.NONE

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.replicas)


async def describe_log_dirs(
    connection: Connection, partitions: Collection[TopicPartition] | None = None
) -> list[LogDirectory]:
    """Ask a broker for its directories with these of its partitions in them; None: all of them. Raises ClientError."""
    topics: dict[str, DescribableLogDirTopic] = {}
    for of in partitions or ():
        topics.setdefault(of.topic, DescribableLogDirTopic(topic=of.topic)).partitions.append(of.partition)
    request = DescribeLogDirsRequest(topics=None if partitions is None else list(topics.values()))
    version = connection.version_of(DescribeLogDirsRequest)
    response = await connection.request(request, DescribeLogDirsResponse, version=version)
    check(response.error_code)
    tells_cordoned = version >= _TELLS_CORDONED_SINCE
    directories = [_directory(row, tells_cordoned) for row in response.results]
    return sorted(directories, key=lambda each: each.path)


async def move_replicas(
    connection: Connection, targets: Mapping[TopicPartition, str]
) -> dict[TopicPartition, ErrorCode]:
    """Begin to move replicas of a broker into the directories that are given by path. Raises ClientError."""
    directories: dict[str, dict[str, AlterReplicaLogDirTopic]] = {}
    for of, path in targets.items():
        topics = directories.setdefault(path, {})
        topics.setdefault(of.topic, AlterReplicaLogDirTopic(name=of.topic)).partitions.append(of.partition)
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDir(path=path, topics=list(topics.values())) for path, topics in directories.items()]
    )
    response = await connection.request(request, AlterReplicaLogDirsResponse)
    return {
        TopicPartition(topic.topic_name, row.partition_index): code_of(row.error_code)
        for topic in response.results
        for row in topic.partitions
    }


def _directory(row: DescribeLogDirsResult, tells_cordoned: bool) -> LogDirectory:
    replicas = (
        ReplicaInDirectory(
            TopicPartition(topic.name, each.partition_index), each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in row.topics
        for each in topic.partitions
    )
    return LogDirectory(
        row.log_dir,
        code_of(row.error_code),
        tuple(sorted(replicas, key=lambda each: each.partition)),
        row.total_bytes if row.total_bytes >= 0 else None,
        row.usable_bytes if row.usable_bytes >= 0 else None,
        row.is_cordoned if tells_cordoned else None,
    )
