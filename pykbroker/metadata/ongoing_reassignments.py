"""Partitions on their way to other replicas: ListPartitionReassignments (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable

from pykbroker.long_work import LongWork, ordered, portions
from pykbroker.protocol.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

from .controller_state import ControllerState
from .image import TopicState


def list_partition_reassignments(
    state: ControllerState, request: ListPartitionReassignmentsRequest
) -> LongWork[ListPartitionReassignmentsResponse]:
    """List reassignments of the partitions that are asked for, or of all; topics without any are left out."""
    rows = []
    for topic, indexes in (yield from _asked(state, request)):
        partitions = []
        for portion in portions(indexes):
            partitions += _ongoing(topic, portion)
            yield len(portion)
        rows.append((topic.name, partitions))
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[OngoingTopicReassignment(name=name, partitions=partitions) for name, partitions in rows if partitions],
    )


def _asked(
    state: ControllerState, request: ListPartitionReassignmentsRequest
) -> LongWork[list[tuple[TopicState, Iterable[int]]]]:
    if request.topics is None:
        indexes: dict[bytes, list[int]] = {}
        for topic_id, index in (yield from ordered(state.partitions.reassigning)):
            indexes.setdefault(topic_id, []).append(index)
        named = [(state.image.topic_by_id(topic_id), each) for topic_id, each in indexes.items()]
    else:
        named = [(state.image.topic(each.name), each.partition_indexes) for each in request.topics]
    return [(topic, each) for topic, each in named if topic is not None]


def _ongoing(topic: TopicState, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding_replicas),
            removing_replicas=list(partition.removing_replicas),
        )
        for index in indexes
        if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
    ]
