"""Listing, describing and deleting groups, of the classic protocol, of consumers and of Kafka Streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import consumer_groups as consumer_protocol_groups
from pykbroker.protocol.messages import group_admin, streams_groups
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

CONSUMER = "consumer"
STREAMS = "streams"
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
        is_other = error.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if not is_other or ApiKey.STREAMS_GROUP_DESCRIBE not in connection.versions:
            raise
        return await _describe_streams_group(cluster, group_id, coordinator, error)


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


async def _describe_streams_group(
    cluster: Cluster, group_id: str, coordinator: Node, not_found: KafkaError
) -> GroupDescription:
    """Describe a streams group (KIP-1071). Each member is shown with the partitions that its active tasks read.

    not_found: raised where there is no such group at all.
    """

    def verify(response: streams_groups.StreamsGroupDescribeResponse) -> None:
        for row in response.groups:
            if row.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise not_found
            check(row.error_code, row.error_message)

    response = await cluster.group_request(
        group_id,
        streams_groups.StreamsGroupDescribeRequest(group_ids=[group_id]),
        streams_groups.StreamsGroupDescribeResponse,
        verify=verify,
    )
    group = response.groups[0]
    sources = _sources(group.topology)
    return GroupDescription(
        group_id=group_id,
        group_type=STREAMS,
        state=group.group_state,
        protocol_type=STREAMS,
        assignor="",
        coordinator=coordinator,
        members=tuple(
            MemberDescription(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                partitions=_read_by(member.assignment, sources),
                epoch=member.member_epoch,
                target_epoch=group.assignment_epoch,
                target_partitions=_read_by(member.target_assignment, sources),
            )
            for member in group.members
        ),
    )


def _sources(topology: streams_groups.StreamsGroupDescribeResponseTopology | None) -> dict[str, list[str]]:
    """The topics that a subtopology reads, by its id."""
    subtopologies = (None if topology is None else topology.subtopologies) or ()
    return {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }


def _read_by(assignment: streams_groups.Assignment, sources: Mapping[str, list[str]]) -> tuple[TopicPartition, ...]:
    """The partitions that the active tasks read."""
    return tuple(
        sorted(
            TopicPartition(topic, partition)
            for tasks in assignment.active_tasks
            for topic in sources.get(tasks.subtopology_id, ())
            for partition in tasks.partitions
        )
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
