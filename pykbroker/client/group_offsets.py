"""The offsets that a group has committed. Versions that name topics are used, not the ones with topic ids."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import ClientError, KafkaError, check, code_of
from .metadata import Node

NAMES_TOPICS_UNTIL = 9
SEVERAL_GROUPS_SINCE = 8
NO_GENERATION = -1
MOST_GROUPS_AT_ONCE = 100
"""In one request: a group may have offsets of many partitions."""
MEMBERS_DECIDE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})
"""What a group that has members answers to a commit from outside."""


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str


async def fetch_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, CommittedOffset]:
    """Those that exist, of these partitions or of all."""
    topics: dict[str, OffsetFetchRequestTopics] | None = None
    if partitions is not None:
        topics = {}
        for of in partitions:
            topics.setdefault(of.topic, OffsetFetchRequestTopics(name=of.topic)).partition_indexes.append(of.partition)
        if not topics:
            return {}
    rows = None if topics is None else list(topics.values())
    connection = await cluster.retrying(cluster.any_connection)
    if connection.version_of(OffsetFetchRequest) < SEVERAL_GROUPS_SINCE:
        return await _fetch_from_older(cluster, group_id, rows)
    response = await cluster.group_request(
        group_id,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=rows)]),
        OffsetFetchResponse,
        at_most=NAMES_TOPICS_UNTIL,
        verify=_check_fetch,
    )
    return _committed(topic for group in response.groups for topic in group.topics)


async def _fetch_from_older(
    cluster: Cluster, group_id: str, rows: list[OffsetFetchRequestTopics] | None
) -> dict[TopicPartition, CommittedOffset]:
    """Ask in the form of brokers before Kafka 3.0, which newer ones know as well."""
    topics = None
    if rows is not None:
        topics = [OffsetFetchRequestTopic(name=row.name, partition_indexes=row.partition_indexes) for row in rows]
    response = await cluster.group_request(
        group_id,
        OffsetFetchRequest(group_id=group_id, topics=topics),
        OffsetFetchResponse,
        at_most=SEVERAL_GROUPS_SINCE - 1,
        verify=_check_fetch,
    )
    return _committed(response.topics)


async def fetch_offsets_of_groups(
    cluster: Cluster, group_ids: Collection[str]
) -> dict[str, dict[TopicPartition, CommittedOffset] | KafkaError]:
    """All offsets of each group, or why the coordinator gives none, asked of many groups together (KIP-709).

    Whatever such a request does not answer is asked for group by group, and again while the failure is retriable.
    Raises ClientError.
    """
    found: dict[str, dict[TopicPartition, CommittedOffset] | KafkaError] = {}
    wanted = list(group_ids)
    for first in range(0, len(wanted), MOST_GROUPS_AT_ONCE):
        some = wanted[first : first + MOST_GROUPS_AT_ONCE]
        with contextlib.suppress(ClientError):
            for node, names in (await cluster.coordinators(some)).items():
                found.update(await _ask_for_groups(cluster, node, names))
        for group_id in some:
            if group_id not in found:
                try:
                    found[group_id] = await fetch_offsets(cluster, group_id)
                except KafkaError as error:
                    found[group_id] = error
    return found


async def _ask_for_groups(
    cluster: Cluster, node: Node, group_ids: Collection[str]
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """Once; groups with errors are left out."""
    connection = await cluster.node_connection(node)
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    response = await connection.request(
        OffsetFetchRequest(groups=groups),
        OffsetFetchResponse,
        version=connection.version_of(OffsetFetchRequest, NAMES_TOPICS_UNTIL),
    )
    return {
        group.group_id: _committed(group.topics)
        for group in response.groups
        if group.group_id in group_ids
        and not group.error_code
        and not any(row.error_code for topic in group.topics for row in topic.partitions)
    }


def _committed(
    topics: Iterable[OffsetFetchResponseTopic | OffsetFetchResponseTopics],
) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.name, row.partition_index): CommittedOffset(
            row.committed_offset, row.committed_leader_epoch, row.metadata or ""
        )
        for topic in topics
        for row in topic.partitions
        if row.committed_offset >= 0
    }


async def commit_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    generation_id: int = NO_GENERATION,
    member_id: str = "",
    group_instance_id: str | None = None,
    metadata: Mapping[TopicPartition, str] | None = None,
) -> None:
    """Commit offsets as a member, or, without a generation, from outside of a group that has no members.

    metadata: the text beside an offset; none by default.
    """
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for of, offset in offsets.items():
        text = (metadata or {}).get(of, "")
        row = OffsetCommitRequestPartition(
            partition_index=of.partition, committed_offset=offset, committed_metadata=text
        )
        topics.setdefault(of.topic, OffsetCommitRequestTopic(name=of.topic)).partitions.append(row)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=list(topics.values()),
    )
    await cluster.group_request(
        group_id, request, OffsetCommitResponse, at_most=NAMES_TOPICS_UNTIL, verify=_check_commit
    )


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """The outcome for each partition. Raises KafkaError for the group as a whole."""
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for of in partitions:
        row = OffsetDeleteRequestPartition(partition_index=of.partition)
        topics.setdefault(of.topic, OffsetDeleteRequestTopic(name=of.topic)).partitions.append(row)
    response = await cluster.group_request(
        group_id,
        OffsetDeleteRequest(group_id=group_id, topics=list(topics.values())),
        OffsetDeleteResponse,
        verify=lambda answer: check(answer.error_code),
    )
    return {
        TopicPartition(topic.name, row.partition_index): code_of(row.error_code)
        for topic in response.topics
        for row in topic.partitions
    }


def _check_fetch(response: OffsetFetchResponse) -> None:
    check(response.error_code)
    for older in response.topics:
        for each in older.partitions:
            check(each.error_code)
    for group in response.groups:
        check(group.error_code)
        for topic in group.topics:
            for row in topic.partitions:
                check(row.error_code)


def _check_commit(response: OffsetCommitResponse) -> None:
    for topic in response.topics:
        for row in topic.partitions:
            if row.error_code:
                code = code_of(row.error_code)
                raise KafkaError(code, f"{topic.name}-{row.partition_index}: {code.description}")
