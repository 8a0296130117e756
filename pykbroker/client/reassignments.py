"""Moves of partitions to other brokers (KIP-455): started, cancelled, listed. Raises ClientError."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from pykbroker.protocol.schema import Message
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import KafkaError, UnsupportedByBroker, check, code_of
from .metadata import Node

ResponseT = TypeVar("ResponseT", bound=Message)

_TIMEOUT_MS: Final = 30_000
_PARTITIONS_AT_ONCE: Final = 5_000
_FORBIDS_OTHER_FACTORS_SINCE: Final = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move that is under way. replicas: all of the moment, those that come and go among them."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.removing)


async def list_reassignments(
    cluster: Cluster, partitions: Collection[TopicPartition] | None = None, node: Node | None = None
) -> dict[TopicPartition, Reassignment]:
    """Return the moves of these partitions, or of all, that are under way."""
    if partitions is None:
        return await _list(cluster, None, node)
    found: dict[TopicPartition, Reassignment] = {}
    wanted = sorted(partitions)
    for first in range(0, len(wanted), _PARTITIONS_AT_ONCE):
        found |= await _list(cluster, wanted[first : first + _PARTITIONS_AT_ONCE], node)
    return found


async def _list(
    cluster: Cluster, partitions: Collection[TopicPartition] | None, node: Node | None
) -> dict[TopicPartition, Reassignment]:
    topics: dict[str, ListPartitionReassignmentsTopics] = {}
    for of in partitions or ():
        row = topics.setdefault(of.topic, ListPartitionReassignmentsTopics(name=of.topic))
        row.partition_indexes.append(of.partition)
    request = ListPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS, topics=None if partitions is None else list(topics.values())
    )
    response = await _ask(cluster, request, ListPartitionReassignmentsResponse, node, _check_listed)
    found = {
        TopicPartition(topic.name, row.partition_index): Reassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in response.topics
        for row in topic.partitions
    }
    return dict(sorted(found.items()))


async def _ask(
    cluster: Cluster,
    request: Message,
    response_type: type[ResponseT],
    node: Node | None,
    verify: Callable[[ResponseT], None],
) -> ResponseT:
    if node is None:
        return await cluster.controller_request(request, response_type, verify=verify)
    return await cluster.request(request, response_type, node=node, verify=verify)


async def alter_reassignments(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    keeps_replication_factor: bool = False,
    node: Node | None = None,
    on_answer: Callable[[int], None] = lambda count: None,
) -> dict[TopicPartition, KafkaError | None]:
    """Start moves to these replicas, or end moves (None); return for each why not, None where it was done.

    keeps_replication_factor: refuse a target with more or fewer replicas. on_answer: called with the number of
    partitions of each request.
    """
    if keeps_replication_factor:
        await _check_forbids_other_factors(cluster)
    found: dict[TopicPartition, KafkaError | None] = {}
    wanted = sorted(targets)
    for first in range(0, len(wanted), _PARTITIONS_AT_ONCE):
        some = wanted[first : first + _PARTITIONS_AT_ONCE]
        request = _request({of: targets[of] for of in some}, keeps_replication_factor)
        response = await _ask(cluster, request, AlterPartitionReassignmentsResponse, node, _check_altered)
        found |= {
            TopicPartition(topic.name, row.partition_index): KafkaError(code_of(row.error_code), row.error_message)
            if row.error_code
            else None
            for topic in response.responses
            for row in topic.partitions
        }
        on_answer(len(some))
    return found


async def _check_forbids_other_factors(cluster: Cluster) -> None:
    connection = await cluster.any_connection()
    if connection.version_of(AlterPartitionReassignmentsRequest) < _FORBIDS_OTHER_FACTORS_SINCE:
        raise UnsupportedByBroker(f"{connection.peer} cannot be told to keep the replication factor")


def _request(
    targets: Mapping[TopicPartition, Sequence[int] | None], keeps_replication_factor: bool
) -> AlterPartitionReassignmentsRequest:
    topics: dict[str, ReassignableTopic] = {}
    for of, replicas in targets.items():
        row = ReassignablePartition(partition_index=of.partition, replicas=None if replicas is None else list(replicas))
        topics.setdefault(of.topic, ReassignableTopic(name=of.topic)).partitions.append(row)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        allow_replication_factor_change=not keeps_replication_factor,
        topics=list(topics.values()),
    )


def _check_listed(response: ListPartitionReassignmentsResponse) -> None:
    check(response.error_code, response.error_message)


def _check_altered(response: AlterPartitionReassignmentsResponse) -> None:
    check(response.error_code, response.error_message)
