"""ListPartitionReassignments (key 46): which partitions are on their way to other replicas (KIP-455).

Served is version 0. Nothing here starts such a move; a log that Kafka wrote may hold one that it began.
"""

from __future__ import annotations

from pykbroker.metadata.image import TopicState
from pykbroker.protocol.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from pykbroker.server.dispatch import RequestContext, handles


@handles(ListPartitionReassignmentsRequest, listeners=frozenset({"broker", "controller"}))
async def list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    image = context.broker.image
    if request.topics is None:
        wanted = [(topic, tuple(topic.partitions)) for topic in image.topics.values()]
    else:
        wanted = [
            (topic, tuple(each.partition_indexes))
            for each in request.topics
            if (topic := image.topic(each.name)) is not None
        ]
    moving = [(topic.name, _moving(topic, indexes)) for topic, indexes in wanted]
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=name, partitions=partitions) for name, partitions in moving if partitions
        ],
    )


def _moving(topic: TopicState, indexes: tuple[int, ...]) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding_replicas),
            removing_replicas=list(partition.removing_replicas),
        )
        for index in indexes
        if (partition := topic.partitions.get(index)) is not None
        and (partition.adding_replicas or partition.removing_replicas)
    ]
