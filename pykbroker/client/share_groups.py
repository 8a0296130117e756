"""Share groups (KIP-932): who is in them, where they begin to read, and how that is changed (KIP-1226 has the lag)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pykbroker.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponsePartition,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import KafkaError, check, code_of
from .metadata import Node

SHARE = "share"


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member, and the partitions that it reads, which others may read as well."""

    member_id: str
    client_id: str
    client_host: str
    epoch: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group as its coordinator describes it; members by their ids."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    coordinator: Node
    members: tuple[ShareMember, ...]


class ShareOffset(NamedTuple):
    """The share-partition start offset, and the records that are to be delivered yet; None where it is not known."""

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


async def describe_share_group(cluster: Cluster, group_id: str) -> ShareGroup:
    """Raises KafkaError, with GROUP_ID_NOT_FOUND where there is no share group of the name."""

    def verify(response: ShareGroupDescribeResponse) -> None:
        for row in response.groups:
            check(row.error_code, row.error_message)

    coordinator = await cluster.retrying(lambda: cluster.coordinator(group_id))
    response = await cluster.group_request(
        group_id, ShareGroupDescribeRequest(group_ids=[group_id]), ShareGroupDescribeResponse, verify=verify
    )
    group = response.groups[0]
    members = [
        ShareMember(
            member.member_id,
            member.client_id,
            member.client_host,
            member.member_epoch,
            tuple(
                sorted(
                    TopicPartition(topic.topic_name, partition)
                    for topic in member.assignment.topic_partitions
                    for partition in topic.partitions
                )
            ),
        )
        for member in group.members
    ]
    return ShareGroup(
        group_id=group_id,
        state=group.group_state,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(sorted(members, key=lambda member: member.member_id)),
    )


async def fetch_share_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Return the offsets of every partition that the group has, or has been given; those with errors are left out.

    Raises KafkaError.
    """

    def verify(response: DescribeShareGroupOffsetsResponse) -> None:
        for row in response.groups:
            check(row.error_code, row.error_message)

    response = await cluster.group_request(
        group_id,
        DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)]
        ),
        DescribeShareGroupOffsetsResponse,
        verify=verify,
    )
    return {
        TopicPartition(topic.topic_name, row.partition_index): _share_offset(row)
        for group in response.groups
        for topic in group.topics
        for row in topic.partitions
        if not row.error_code
    }


def _share_offset(row: DescribeShareGroupOffsetsResponsePartition) -> ShareOffset:
    if row.start_offset < 0:
        return ShareOffset(None, None, None)
    return ShareOffset(
        row.start_offset, row.leader_epoch if row.leader_epoch >= 0 else None, row.lag if row.lag >= 0 else None
    )


async def alter_share_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set where a group without members begins to read. Raises KafkaError, for the first partition that is refused."""
    topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
    for of, offset in offsets.items():
        row = AlterShareGroupOffsetsRequestPartition(partition_index=of.partition, start_offset=offset)
        topics.setdefault(of.topic, AlterShareGroupOffsetsRequestTopic(topic_name=of.topic)).partitions.append(row)

    def verify(response: AlterShareGroupOffsetsResponse) -> None:
        check(response.error_code, response.error_message)
        for topic in response.responses:
            for row in topic.partitions:
                if row.error_code:
                    code = code_of(row.error_code)
                    text = row.error_message or code.description
                    raise KafkaError(code, f"{topic.topic_name}-{row.partition_index}: {text}")

    await cluster.group_request(
        group_id,
        AlterShareGroupOffsetsRequest(group_id=group_id, topics=list(topics.values())),
        AlterShareGroupOffsetsResponse,
        verify=verify,
    )


async def delete_share_offsets(cluster: Cluster, group_id: str, topics: Iterable[str]) -> dict[str, KafkaError | None]:
    """Forget topics of a group without members, and return the error of each, or None. Raises KafkaError."""
    names = list(dict.fromkeys(topics))
    response = await cluster.group_request(
        group_id,
        DeleteShareGroupOffsetsRequest(
            group_id=group_id, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        ),
        DeleteShareGroupOffsetsResponse,
        verify=lambda answer: check(answer.error_code, answer.error_message),
    )
    return {
        row.topic_name: KafkaError(code_of(row.error_code), row.error_message) if row.error_code else None
        for row in response.responses
    }
