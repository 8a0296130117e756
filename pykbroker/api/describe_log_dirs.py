"""DescribeLogDirs (key 35): the log directories of this broker, and the size of every replica in them (KIP-113).

Served are versions 1 to 5: 2 brought flexible encoding, 3 an error for the whole answer, 4 the space of the volume
(KIP-827), 5 cordoned directories (KIP-1066).
"""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.replication.partition import Partition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.replica_manager import ReplicaManager
from pykbroker.server.runtime.turns import portions
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.disk import DiskSpace
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.log import Log

from .authorization import is_allowed_on_cluster

_UNKNOWN_LAG = -1
_STEPS_OF_LOG = 5


@handles(DescribeLogDirsRequest, needs=names((Operation.DESCRIBE, ResourceType.CLUSTER)))
async def describe_log_dirs(
    context: RequestContext[Broker], request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    if not is_allowed_on_cluster(context, Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    replicas = context.node.partitions
    asked = None
    if request.topics is not None:
        asked = await _asked(context, request.topics)
    cordoned = replicas.cordoned_log_directories()
    results = []
    for path, directory in replicas.log_directories().items():
        result = DescribeLogDirsResult(log_dir=path, is_cordoned=path in cordoned)
        space = None if directory is None else await _space(context, directory)
        if directory is None or space is None:
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            result.total_bytes, result.usable_bytes = space
            result.topics = await _topics(context, directory, asked)
        results.append(result)
    return DescribeLogDirsResponse(results=results)


async def _asked(context: RequestContext[Broker], topics: Sequence[DescribableLogDirTopic]) -> set[TopicPartition]:
    asked: set[TopicPartition] = set()
    for topic in topics:
        for portion in portions(topic.partitions):
            asked.update(TopicPartition(topic.topic, index) for index in portion)
            await context.turn.took(1 + len(portion) // 2)
    return asked


async def _space(context: RequestContext[Broker], directory: LogDirectory) -> DiskSpace | None:
    """Ask the disk in a thread, because a failing disk may take long; None where it has failed."""
    try:
        return await context.node.threads.run(directory.space)
    except FileError:
        return None


async def _topics(
    context: RequestContext[Broker], directory: LogDirectory, asked: set[TopicPartition] | None
) -> list[DescribeLogDirsTopic]:
    replicas = context.node.partitions
    by_name: dict[str, DescribeLogDirsTopic] = {}
    for logs, is_future in ((directory.logs, False), (directory.futures.logs, True)):
        for at in await context.turn.ordered(list(logs)):
            log = logs.get(at)
            if log is not None and (asked is None or at in asked):
                topic = by_name.setdefault(at.topic, DescribeLogDirsTopic(name=at.topic))
                topic.partitions.append(
                    DescribeLogDirsPartition(
                        partition_index=at.partition,
                        partition_size=log.size_bytes,
                        offset_lag=_offset_lag(replicas, at, log, is_future=is_future),
                        is_future_key=is_future,
                    )
                )
            await context.turn.took(_STEPS_OF_LOG)
    return list(by_name.values())


def _offset_lag(replicas: ReplicaManager, at: TopicPartition, log: Log, *, is_future: bool) -> int:
    """Return how far the log lags behind what is replicated, or behind the log whose place it will take."""
    partition = replicas.get_partition(at.topic, at.partition)
    if not isinstance(partition, Partition):
        return _UNKNOWN_LAG
    end_offset = partition.log.log_end_offset if is_future else partition.high_watermark
    return max(end_offset - log.log_end_offset, 0)
