"""The topics of the cluster, one row each, as Metadata tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError, UnknownTopic, check, code_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic. under_replicated, offline: so many of its partitions lack in-sync replicas, or have no leader."""

    name: str
    is_internal: bool
    partitions: int
    replicas: int
    under_replicated: int
    offline: int


async def all_metadata(cluster: Cluster) -> MetadataResponse:
    """Return the metadata of all topics that the user may see. Raises ClientError."""
    return await cluster.request(
        MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse, verify=_check
    )


async def brokers_alone(cluster: Cluster) -> MetadataResponse:
    """Return the metadata without topics. Raises ClientError."""
    return await cluster.request(
        MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse, verify=_check
    )


async def metadata_of(cluster: Cluster, name: str) -> tuple[MetadataResponse, MetadataResponseTopic]:
    """Return the metadata of one topic. Raises UnknownTopic, KafkaError, ClientError."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    response = await cluster.request(asked, MetadataResponse, verify=_check)
    found = next((each for each in response.topics if each.name == name), None)
    if found is None or found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise UnknownTopic(f"Topic '{name}' does not exist")
    if found.error_code != ErrorCode.NONE:
        raise KafkaError(code_of(found.error_code), f"Topic '{name}': {code_of(found.error_code).description}")
    return response, found


def rows_of(topics: Sequence[MetadataResponseTopic]) -> list[TopicRow]:
    """Return a row for each topic. Topics that cannot be told of at the moment are left out."""
    return [_row(each) for each in topics if each.name is not None and each.error_code == ErrorCode.NONE]


def leaders_by_broker(response: MetadataResponse) -> dict[int, int]:
    """Return how many partitions each broker leads; -1 counts those without a leader."""
    leaders: dict[int, int] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            leaders[partition.leader_id] = leaders.get(partition.leader_id, 0) + 1
    return leaders


def is_under_replicated(partition: MetadataResponsePartition) -> bool:
    return len(partition.isr_nodes) < len(partition.replica_nodes)


def _row(topic: MetadataResponseTopic) -> TopicRow:
    assert topic.name is not None
    partitions = topic.partitions
    return TopicRow(
        name=topic.name,
        is_internal=topic.is_internal,
        partitions=len(partitions),
        replicas=max((len(each.replica_nodes) for each in partitions), default=0),
        under_replicated=sum(map(is_under_replicated, partitions)),
        offline=sum(each.leader_id == NO_LEADER for each in partitions),
    )


def _check(response: MetadataResponse) -> None:
    check(response.error_code)
