"""Listing, describing and deleting groups of every type; what only one type has stands in a module of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import consumer_groups as consumer_protocol_groups
from pykbroker.protocol.messages import group_admin
from pykbroker.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .consumer_protocol import decode_assignment
from .errors import KafkaError, NotConsumerProtocol, check
from .metadata import Node
from .share_groups import SHARE, describe_share_group
from .streams_groups import STREAMS, describe_streams_group

CONSUMER = "consumer"
DEAD = "Dead"
STATES_SINCE = 4
TYPES_SINCE = 5


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """Epochs and the target exist in the protocols of consumers and of Kafka Streams only."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    partitions: tuple[TopicPartition, ...]
    epoch: int | None = None
    target_epoch: int | None = None
    target_partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...] = field(default=())


async def list_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """The groups of every broker, by name."""
    found: dict[str, ListedGroup] = {}
    for node in (await cluster.refresh([])).nodes.values():
        connection = await cluster.node_connection(node)
        version = connection.version_of(ListGroupsRequest)
        request = ListGroupsRequest(
            states_filter=list(states) if version >= STATES_SINCE else [],
            types_filter=list(types) if version >= TYPES_SINCE else [],
        )
        response = await cluster.request(
            request, ListGroupsResponse, node=node, verify=lambda answer: check(answer.error_code)
        )
        found.update({group.group_id: group for group in response.groups})
    return [group for _, group in sorted(found.items())]


async def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Raises KafkaError with GROUP_ID_NOT_FOUND, also where an old broker calls a missing group dead."""
    coordinator = await cluster.retrying(lambda: cluster.coordinator(group_id))
    connection = await cluster.node_connection(coordinator)
    if ApiKey.CONSUMER_GROUP_DESCRIBE in connection.versions:
        try:
            return await _describe_consumer_group(cluster, group_id, coordinator)
        except KafkaError as error:
            if error.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise
    try:
        return await _describe_classic_group(cluster, group_id, coordinator)
    except KafkaError as error:
        if error.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        not_found = error
    for api_key, describe in _NEWER_TYPES.items():
        if api_key in connection.versions:
            try:
                return await describe(cluster, group_id)
            except KafkaError as error:
                if error.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                    raise
    raise not_found


async def delete_group(cluster: Cluster, group_id: str) -> None:
    """Raises KafkaError."""

    def verify(response: DeleteGroupsResponse) -> None:
        for row in response.results:
            check(row.error_code)

    await cluster.group_request(
        group_id, DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse, verify=verify
    )


async def _describe_classic_group(cluster: Cluster, group_id: str, coordinator: Node) -> GroupDescription:
    def verify(response: DescribeGroupsResponse) -> None:
        for row in response.groups:
            check(row.error_code, row.error_message)

    response = await cluster.group_request(
        group_id, DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse, verify=verify
    )
    group = response.groups[0]
    if group.group_state == DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return GroupDescription(
        group_id=group_id,
        group_type="classic",
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(_classic_member(member, group.protocol_type) for member in group.members),
    )


def _classic_member(member: group_admin.DescribedGroupMember, protocol_type: str) -> MemberDescription:
    """Describe a classic member. Its assignment is decoded for consumers alone, not for other protocol types."""
    partitions: list[TopicPartition] = []
    if protocol_type == CONSUMER:
        try:
            partitions = decode_assignment(member.member_assignment)
        except NotConsumerProtocol:
            partitions = []
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        partitions=tuple(sorted(partitions)),
    )


async def _describe_consumer_group(cluster: Cluster, group_id: str, coordinator: Node) -> GroupDescription:
    def verify(response: consumer_protocol_groups.ConsumerGroupDescribeResponse) -> None:
        for row in response.groups:
            check(row.error_code, row.error_message)

    response = await cluster.group_request(
        group_id,
        consumer_protocol_groups.ConsumerGroupDescribeRequest(group_ids=[group_id]),
        consumer_protocol_groups.ConsumerGroupDescribeResponse,
        verify=verify,
    )
    group = response.groups[0]
    return GroupDescription(
        group_id=group_id,
        group_type=CONSUMER,
        state=group.group_state,
        protocol_type=CONSUMER,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                partitions=_partitions(member.assignment),
                epoch=member.member_epoch,
                target_epoch=group.assignment_epoch,
                target_partitions=_partitions(member.target_assignment),
            )
            for member in group.members
        ),
    )


async def _describe_streams_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Describe a streams group (KIP-1071). Each member is shown with the partitions that its active tasks read."""
    group = await describe_streams_group(cluster, group_id)
    return GroupDescription(
        group_id=group_id,
        group_type=STREAMS,
        state=group.state,
        protocol_type=STREAMS,
        assignor="",
        coordinator=group.coordinator,
        members=tuple(
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                partitions=group.partitions_of(member.tasks),
                epoch=member.epoch,
                target_epoch=group.assignment_epoch,
                target_partitions=group.partitions_of(member.target_tasks),
            )
            for member in group.members
        ),
    )


async def _describe_share_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Describe a share group (KIP-932), whose members may have the same partitions."""
    group = await describe_share_group(cluster, group_id)
    return GroupDescription(
        group_id=group_id,
        group_type=SHARE,
        state=group.state,
        protocol_type=SHARE,
        assignor=group.assignor,
        coordinator=group.coordinator,
        members=tuple(
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=None,
                client_id=member.client_id,
                client_host=member.client_host,
                partitions=member.partitions,
                epoch=member.epoch,
                target_epoch=group.assignment_epoch,
            )
            for member in group.members
        ),
    )


def _partitions(
    assignment: consumer_protocol_groups.ConsumerGroupDescribeResponseAssignment,
) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


_NEWER_TYPES: Final[Mapping[ApiKey, Callable[[Cluster, str], Awaitable[GroupDescription]]]] = {
    ApiKey.STREAMS_GROUP_DESCRIBE: _describe_streams_group,
    ApiKey.SHARE_GROUP_DESCRIBE: _describe_share_group,
}
"""Types of groups that a broker may not know, by the requests that describe them."""
