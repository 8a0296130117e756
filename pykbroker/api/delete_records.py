"""DeleteRecords (key 21): deletes everything in front of an offset of each partition (KIP-107).

Served are versions 0 to 2; 2 brought flexible encoding. The answer comes when every replica that is alive has followed,
or after the request's timeout. Unlike Kafka, which writes its checkpoint once a minute, an answer without an error
means that the deletion outlives a crash of this broker.
"""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.metadata.topic_names import is_internal
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import DeletedRecords
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.delayed_operation import PartitionChanges
from pykbroker.server.replicas.replica_manager import ReplicaManager

from .authorization import denied

_NO_LOW_WATERMARK = -1
_STEPS_OF_DELETION = 20


@dataclass(slots=True)
class _Deletion:
    """One partition's records are deleted below `offset`, and the answer waits for its replicas."""

    partition: Partition
    offset: int
    answer: DeleteRecordsPartitionResult


@handles(DeleteRecordsRequest, needs=names((Operation.DELETE, ResourceType.TOPIC)))
async def delete_records(context: RequestContext[Broker], request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    broker = context.node
    deletions: list[_Deletion] = []
    topics: dict[str, DeleteRecordsTopicResult] = {}
    refused = await denied(context, Operation.DELETE, ResourceType.TOPIC, (each.name for each in request.topics))
    for (name, index), offset in (await _offsets(context, request)).items():
        topic = topics.setdefault(name, DeleteRecordsTopicResult(name=name))
        if name in refused:
            topic.partitions.append(_denied(index))
        else:
            topic.partitions.append(_delete(broker.partitions, name, index, offset, deletions))
        await context.turn.took(_STEPS_OF_DELETION)
    await broker.partitions.checkpoint_log_start_offsets(each.partition for each in deletions)
    await _await_followers(context, deletions, request.timeout_ms)
    return DeleteRecordsResponse(topics=list(topics.values()))


async def _offsets(context: RequestContext[Broker], request: DeleteRecordsRequest) -> dict[tuple[str, int], int]:
    """A partition that is named twice is answered once, and its last offset counts."""
    offsets = {}
    for topic in request.topics:
        for each in topic.partitions:
            offsets[topic.name, each.partition_index] = each.offset
            await context.turn.took()
    return offsets


def _denied(index: int) -> DeleteRecordsPartitionResult:
    denial = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=denial)


def _delete(
    replicas: ReplicaManager, topic: str, index: int, offset: int, deletions: list[_Deletion]
) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK)
    partition = replicas.get_partition(topic, index)
    if isinstance(partition, ErrorCode):
        answer.error_code = partition
        return answer
    if is_internal(topic):
        deleted = DeletedRecords(ErrorCode.INVALID_TOPIC_EXCEPTION)
    else:
        deleted = partition.delete_records(offset)
    answer.error_code = deleted.error_code
    if deleted.error_code is ErrorCode.NONE:
        deletions.append(_Deletion(partition, deleted.offset, answer))
    return answer


async def _await_followers(context: RequestContext[Broker], deletions: list[_Deletion], timeout_ms: int) -> None:
    broker = context.node
    waiting = [each for each in deletions if not _is_done(broker, each)]
    if not waiting:
        return
    partitions = [each.partition for each in waiting]
    with PartitionChanges(partitions, timeout_ms=timeout_ms, client=context.connection) as changes:
        by_partition = {each.partition: each for each in waiting}
        while by_partition and (changed := await changes.next()):
            for partition in changed:
                if partition in by_partition and _is_done(broker, by_partition[partition]):
                    del by_partition[partition]
    for each in by_partition.values():
        each.answer.error_code = ErrorCode.REQUEST_TIMED_OUT


def _is_done(broker: Broker, deletion: _Deletion) -> bool:
    partition, answer = deletion.partition, deletion.answer
    hosted = broker.partitions.get_partition(partition.topic, partition.index)
    if hosted is not partition:
        answer.error_code = hosted if isinstance(hosted, ErrorCode) else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    if not partition.is_leader:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    answer.low_watermark = partition.low_watermark(broker.image.is_alive)
    return answer.low_watermark >= deletion.offset
