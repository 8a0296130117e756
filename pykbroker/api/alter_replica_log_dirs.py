"""AlterReplicaLogDirs (key 34): moves replicas between the log directories of this broker (KIP-113).

Served are versions 1 and 2; 2 brought flexible encoding. The answer says that a move has begun; DescribeLogDirs shows
how far it is, as a future replica with its lag.
"""

from __future__ import annotations

from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

_STEPS_OF_MOVE = 40


@handles(AlterReplicaLogDirsRequest, needs=cluster(Operation.ALTER))
async def alter_replica_log_dirs(
    context: RequestContext[Broker], request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    # Where a partition is named twice, the last directory counts, and is answered once.
    wanted: dict[tuple[str, int], str] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for portion in portions(topic.partitions):
                wanted.update({(topic.name, index): directory.path for index in portion})
                await context.turn.took(1 + len(portion) // 4)
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, index), path in wanted.items():
        result = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        error = context.node.log_moves.move(name, index, path)
        result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error))
        await context.turn.took(_STEPS_OF_MOVE)
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
