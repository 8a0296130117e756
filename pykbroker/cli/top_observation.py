"""One look at a cluster: leaders and replicas, end offsets, sizes, committed offsets, disks.

One look makes a bounded number of requests, however many topics there are: Metadata and DescribeQuorum to any broker,
and to each broker ListOffsets, DescribeLogDirs, ListGroups, and an OffsetFetch for each hundred groups that it
coordinates, up to `MOST_GROUPS`. What a broker does not answer, or must not tell this user, stands in `missing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.errors import ClientError, KafkaError, TimedOut, check, code_of
from pykbroker.client.group_offsets import MOST_GROUPS_AT_ONCE, NAMES_TOPICS_UNTIL, SEVERAL_GROUPS_SINCE
from pykbroker.client.metadata import ClusterMetadata, Node, TopicMetadata
from pykbroker.client.offsets import LATEST_TIMESTAMP
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListedGroup, ListGroupsRequest, ListGroupsResponse
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from pykbroker.protocol.messages.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from pykbroker.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from pykbroker.protocol.topic_partition import TopicPartition

_METADATA_TOPIC: Final = "__cluster_metadata"
_SHARE: Final = "share"
"""The type of groups that commit no offsets."""
_EMPTY: Final = "Empty"
MOST_GROUPS: Final = 1_000
"""Whose offsets are fetched from one broker in one look."""
_MOVING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
)
"""What a broker answers for a partition that has moved since the metadata came; the next look finds it."""


class Sample(NamedTuple):
    """A number that grows, and when it was seen."""

    value: int
    at_s: float


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """A broker of the metadata. problem: why it could not be asked."""

    node: Node
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LogDirSeen:
    """Sizes are None where the broker does not tell them. used_bytes: of all replicas in the directory."""

    node_id: int
    path: str
    error: str | None
    used_bytes: int
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """A group that a broker lists. committed: None where the offsets could not be fetched; of a share group those up to
    which all is settled. lags: of a share group's partitions, as its coordinator reckons them; None for others.
    """

    name: str
    kind: str
    state: str
    committed: Mapping[TopicPartition, Sample] | None
    lags: Mapping[TopicPartition, int] | None = None


@dataclass(slots=True)
class Observation:
    """The findings of one look. controller_id: None where nobody tells. sizes: of the leaders' replicas."""

    at_s: float
    cluster_id: str | None = None
    controller_id: int | None = None
    brokers: dict[int, BrokerSeen] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    ends: dict[TopicPartition, Sample] = field(default_factory=dict)
    sizes: dict[TopicPartition, Sample] = field(default_factory=dict)
    groups: dict[str, GroupSeen] = field(default_factory=dict)
    log_dirs: list[LogDirSeen] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    took_s: float = 0.0


async def observe(cluster: Cluster, limit_s: float) -> Observation:
    """Look once, for at most twice the limit: half for what any broker knows, half for what each one does.

    Raises ClientError where the metadata does not come.
    """
    seen = Observation(trio.current_time())
    metadata = await _metadata(cluster, seen, limit_s)
    seen.cluster_id, seen.topics = metadata.cluster_id, metadata.topics
    async with trio.open_nursery() as nursery:
        for node in metadata.nodes.values():
            nursery.start_soon(_look_at_broker, cluster, node, seen, limit_s)
    seen.took_s = trio.current_time() - seen.at_s
    return seen


async def _metadata(cluster: Cluster, seen: Observation, limit_s: float) -> ClusterMetadata:
    with trio.move_on_after(limit_s):
        metadata = await cluster.refresh()
        await _look_at_quorum(cluster, metadata, seen)
        return metadata
    raise TimedOut(f"No broker told the metadata of the cluster within {limit_s:g} s")


async def _look_at_quorum(cluster: Cluster, metadata: ClusterMetadata, seen: Observation) -> None:
    """A KRaft cluster names any broker as its controller in the metadata; the quorum knows the active one."""
    seen.controller_id = metadata.controller_id if metadata.controller_id >= 0 else None
    connection = await cluster.any_connection()
    if ApiKey.DESCRIBE_QUORUM not in connection.versions:
        return
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=_METADATA_TOPIC, partitions=[partition])
    try:
        response = await connection.request(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
        check(response.error_code)
        for row in (each for found in response.topics for each in found.partitions):
            check(row.error_code)
            seen.controller_id = row.leader_id if row.leader_id >= 0 else None
    except ClientError as error:
        seen.controller_id = None
        seen.missing[f"controller: {error}"] += 1


async def _look_at_broker(cluster: Cluster, node: Node, seen: Observation, limit_s: float) -> None:
    seen.brokers[node.node_id] = BrokerSeen(node, f"no answer within {limit_s:g} s")
    with trio.move_on_after(limit_s):
        try:
            connection = await cluster.node_connection(node)
        except ClientError as error:
            seen.brokers[node.node_id] = BrokerSeen(node, str(error))
            return
        for name, look in (("end offsets", _ends), ("log dirs", _log_dirs), ("groups", _groups)):
            try:
                await look(connection, node, seen)
            except KafkaError as error:
                # What this user may not ask is the same at all brokers.
                seen.missing[f"{name}: {error}"] += 1
            except ClientError as error:
                seen.missing[f"{name} of broker {node.node_id}: {error}"] += 1
                if connection.is_closed:
                    seen.brokers[node.node_id] = BrokerSeen(node, str(error))
                    return
        seen.brokers[node.node_id] = BrokerSeen(node)


async def _ends(connection: Connection, node: Node, seen: Observation) -> None:
    rows = []
    for topic in seen.topics.values():
        led = [each.partition for each in topic.partitions.values() if each.leader_id == node.node_id]
        if led:
            wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP) for index in led]
            rows.append(ListOffsetsTopic(name=topic.name, partitions=wanted))
    if not rows:
        return
    response = await connection.request(ListOffsetsRequest(replica_id=-1, topics=rows), ListOffsetsResponse)
    now = trio.current_time()
    for found in response.topics:
        for row in found.partitions:
            error_code = code_of(row.error_code)
            if error_code is ErrorCode.NONE:
                seen.ends[TopicPartition(found.name, row.partition_index)] = Sample(row.offset, now)
            elif error_code not in _MOVING:
                seen.missing[f"end offsets: {error_code.description}"] += 1


async def _log_dirs(connection: Connection, node: Node, seen: Observation) -> None:
    response = await connection.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    check(response.error_code)
    now = trio.current_time()
    if not response.results:
        # Versions before 3 have no error for the whole answer.
        seen.missing[f"log dirs: {ErrorCode.CLUSTER_AUTHORIZATION_FAILED.description}"] += 1
    for result in response.results:
        seen.log_dirs.append(_log_dir(node, result))
        for topic in result.topics:
            known = seen.topics.get(topic.name)
            for row in topic.partitions:
                partition = known.partitions.get(row.partition_index) if known is not None else None
                if partition is not None and partition.leader_id == node.node_id and not row.is_future_key:
                    seen.sizes[TopicPartition(topic.name, row.partition_index)] = Sample(row.partition_size, now)


def _log_dir(node: Node, result: DescribeLogDirsResult) -> LogDirSeen:
    return LogDirSeen(
        node_id=node.node_id,
        path=result.log_dir,
        error=code_of(result.error_code).description if result.error_code else None,
        used_bytes=sum(max(0, row.partition_size) for topic in result.topics for row in topic.partitions),
        total_bytes=result.total_bytes if result.total_bytes >= 0 else None,
        usable_bytes=result.usable_bytes if result.usable_bytes >= 0 else None,
    )


async def _groups(connection: Connection, node: Node, seen: Observation) -> None:
    """A broker lists the groups that it coordinates, so that nobody need be asked where their offsets are."""
    response = await connection.request(ListGroupsRequest(), ListGroupsResponse)
    check(response.error_code)
    for listed in response.groups:
        seen.groups[listed.group_id] = _group(listed)
    await _settled(connection, node, response.groups, seen)
    committing = [each for each in response.groups if each.group_type.lower() != _SHARE]
    # Those that have members go first.
    committing.sort(key=lambda each: (each.group_state == _EMPTY, each.group_id))
    names = [each.group_id for each in committing[:MOST_GROUPS]]
    if len(names) < len(committing):
        seen.missing[f"lag: told of {len(names)} of {len(committing)} groups of broker {node.node_id}"] += 1
    if not names:
        return
    version = connection.version_of(OffsetFetchRequest, NAMES_TOPICS_UNTIL)
    if version < SEVERAL_GROUPS_SINCE:
        seen.missing["lag: the broker tells the offsets of one group at a time (older than Kafka 3.0)"] += 1
        return
    for first in range(0, len(names), MOST_GROUPS_AT_ONCE):
        await _committed(connection, version, names[first : first + MOST_GROUPS_AT_ONCE], seen)


async def _settled(connection: Connection, node: Node, listed: Iterable[ListedGroup], seen: Observation) -> None:
    """Ask for the start offsets and lags of share groups (KIP-932, KIP-1226), those that have members first."""
    shared = [each for each in listed if each.group_type.lower() == _SHARE]
    shared.sort(key=lambda each: (each.group_state == _EMPTY, each.group_id))
    if shared and ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS not in connection.versions:
        seen.missing["lag: the broker tells none of share groups (older than Kafka 4.1)"] += 1
        return
    names = [each.group_id for each in shared[:MOST_GROUPS]]
    if len(names) < len(shared):
        seen.missing[f"lag: told of {len(names)} of {len(shared)} share groups of broker {node.node_id}"] += 1
    for first in range(0, len(names), MOST_GROUPS_AT_ONCE):
        asked = [
            DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
            for name in names[first : first + MOST_GROUPS_AT_ONCE]
        ]
        request = DescribeShareGroupOffsetsRequest(groups=asked)
        response = await connection.request(request, DescribeShareGroupOffsetsResponse)
        now = trio.current_time()
        for group in response.groups:
            known = seen.groups.get(group.group_id)
            if group.error_code:
                _refused(group.group_id, group.error_code, seen)
            elif known is not None:
                seen.groups[group.group_id] = _shared(known, group, now)


def _shared(known: GroupSeen, group: DescribeShareGroupOffsetsResponseGroup, now: float) -> GroupSeen:
    rows = [
        (TopicPartition(topic.topic_name, row.partition_index), row)
        for topic in group.topics
        for row in topic.partitions
        if row.start_offset >= 0 and not row.error_code
    ]
    return GroupSeen(
        known.name,
        known.kind,
        known.state,
        {at: Sample(row.start_offset, now) for at, row in rows},
        {at: row.lag for at, row in rows if row.lag >= 0},
    )


async def _committed(connection: Connection, version: int, names: Iterable[str], seen: Observation) -> None:
    asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    response = await connection.request(OffsetFetchRequest(groups=asked), OffsetFetchResponse, version=version)
    now = trio.current_time()
    for group in response.groups:
        known = seen.groups.get(group.group_id)
        if group.error_code:
            _refused(group.group_id, group.error_code, seen)
        elif known is not None:
            offsets = {
                TopicPartition(topic.name, row.partition_index): Sample(row.committed_offset, now)
                for topic in group.topics
                for row in topic.partitions
                if row.committed_offset >= 0 and not row.error_code
            }
            seen.groups[group.group_id] = GroupSeen(known.name, known.kind, known.state, offsets)


def _refused(group_id: str, number: int, seen: Observation) -> None:
    """Note why there is no lag of a group. One that is not there any more is left out."""
    error_code = code_of(number)
    if error_code is ErrorCode.GROUP_ID_NOT_FOUND:
        seen.groups.pop(group_id, None)
    else:
        seen.missing[f"lag: {error_code.description}"] += 1


def _group(listed: ListedGroup) -> GroupSeen:
    kind = listed.group_type or listed.protocol_type
    return GroupSeen(listed.group_id, kind, listed.group_state, None)
