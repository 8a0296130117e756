"""Topics and their partitions, and the two of their settings that matter here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import ResourceType
from pykbroker.client.errors import ClientError, code_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .facts import Facts, Partition, Topic

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_LEAVES_TOPICS_UNCREATED_SINCE: Final = 4
_AT_ONCE: Final = 250
_NUMBER: Final = re.compile("[0-9]{1,10}", re.ASCII)


async def look_at_topics(cluster: Cluster, facts: Facts, most: int) -> None:
    """Add up to `most` topics, those with trouble first."""
    response = await cluster.request(MetadataRequest(topics=None), MetadataResponse)
    topics = [_topic(each) for each in response.topics if each.error_code == ErrorCode.NONE and each.name is not None]
    topics.sort(key=lambda topic: (not _is_troubled(topic), topic.name))
    if len(topics) > most:
        facts.unknown.append(f"{len(topics) - most} of {len(topics)} topics were not looked at (--max-topics)")
    facts.topics = topics[:most]
    facts.absent_topics = await _absent(cluster)
    try:
        for first in range(0, len(facts.topics), _AT_ONCE):
            facts.topics[first : first + _AT_ONCE] = await _with_settings(
                cluster, facts.topics[first : first + _AT_ONCE]
            )
    except ClientError as error:
        facts.unknown.append(f"configurations of topics were not looked at: {error}")


async def _absent(cluster: Cluster) -> frozenset[str]:
    """Ask for internal topics by name: one that a user may not see looks as if it were not in the list of all."""
    names = [MetadataRequestTopic(name=name) for name in INTERNAL_TOPICS]
    connection = await cluster.any_connection()
    if connection.version_of(MetadataRequest) < _LEAVES_TOPICS_UNCREATED_SINCE:
        return frozenset()
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    response = await cluster.request(request, MetadataResponse)
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return frozenset(each.name or "" for each in response.topics if each.error_code == absent)


def _topic(row: MetadataResponseTopic) -> Topic:
    name = row.name or ""
    partitions = tuple(_partition(name, each) for each in sorted(row.partitions, key=lambda each: each.partition_index))
    return Topic(name, row.is_internal, partitions)


def _partition(name: str, row: MetadataResponsePartition) -> Partition:
    return Partition(
        TopicPartition(name, row.partition_index),
        row.leader_id if row.leader_id >= 0 else None,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        code_of(row.error_code).name if row.error_code else None,
    )


def _is_troubled(topic: Topic) -> bool:
    return any(each.leader is None or len(each.isr) < len(each.replicas) for each in topic.partitions)


async def _with_settings(cluster: Cluster, topics: Sequence[Topic]) -> list[Topic]:
    """Raises ClientError. A topic whose configuration is not told keeps None."""
    resources = [
        DescribeConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=each.name, configuration_keys=[MIN_ISR, UNCLEAN]
        )
        for each in topics
    ]
    response = await cluster.request(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    told = {
        each.resource_name: {row.name: row.value or "" for row in each.configs}
        for each in response.results
        if not each.error_code
    }
    return [_with(each, told.get(each.name, {})) for each in topics]


def _with(topic: Topic, values: dict[str, str]) -> Topic:
    min_isr, unclean = values.get(MIN_ISR, ""), values.get(UNCLEAN)
    return replace(
        topic,
        min_isr=int(min_isr) if _NUMBER.fullmatch(min_isr) else None,
        unclean=None if unclean is None else unclean == "true",
    )
