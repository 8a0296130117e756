"""Groups as `pykbroker groups describe` shows them: tables in the columns of `kafka-consumer-groups`, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pykbroker.client.cluster import Cluster
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.groups import GroupDescription, MemberDescription
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from pykbroker.client.share_groups import SHARE, ShareOffset, fetch_share_offsets
from pykbroker.protocol.topic_partition import TopicPartition

from .entries import Value
from .output import Column, print_table

NONE = "-"

_GROUP = Column("GROUP")
_TOPIC = Column("TOPIC")
_PARTITION = Column("PARTITION", 10, right=True)
_CONSUMER = (Column("CONSUMER-ID"), Column("HOST"), Column("CLIENT-ID"))


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition that has a committed offset or a consumer; what is not known is None.

    committed: of a share group its start offset. told_lag: the lag as the coordinator tells it, of share groups alone,
    which have read some of the records behind the start offset.
    """

    of: TopicPartition
    committed: int | None
    end: int | None
    owner: MemberDescription | None
    told_lag: int | None = None

    @property
    def lag(self) -> int | None:
        if self.told_lag is not None:
            return self.told_lag
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)


async def partition_rows(cluster: Cluster, group: GroupDescription) -> list[PartitionRow]:
    """Return every partition that has a committed offset or a consumer."""
    if group.group_type == SHARE:
        return await _share_partition_rows(cluster, group)
    committed = {of: answer.offset for of, answer in (await fetch_offsets(cluster, group.group_id)).items()}
    owners = {of: member for member in group.members for of in member.partitions}
    shown = sorted({*committed, *owners})
    ends = await log_end_offsets(cluster, shown)
    return [PartitionRow(of, committed.get(of), ends.get(of), owners.get(of)) for of in shown]


async def _share_partition_rows(cluster: Cluster, group: GroupDescription) -> list[PartitionRow]:
    """Return the partitions of a share group. Where several members read one, none of them is its owner."""
    offsets = await fetch_share_offsets(cluster, group.group_id)
    members: dict[TopicPartition, list[MemberDescription]] = {}
    for member in group.members:
        for of in member.partitions:
            members.setdefault(of, []).append(member)
    shown = sorted({*offsets, *members})
    ends = await log_end_offsets(cluster, shown)
    rows = []
    for of in shown:
        told = offsets.get(of, ShareOffset(None, None, None))
        readers = members.get(of, [])
        owner = readers[0] if len(readers) == 1 else None
        rows.append(PartitionRow(of, told.start_offset, ends.get(of), owner, told.lag))
    return rows


async def lag_of(cluster: Cluster, group: GroupDescription) -> int:
    """Return the lag of all partitions together; nobody has read one yet that has a consumer and no offset."""
    rows = await partition_rows(cluster, group)
    if group.group_type == SHARE:  # which begins where its configuration says, once it is told to
        return sum(row.lag or 0 for row in rows)
    unread = [row.of for row in rows if row.committed is None and row.end is not None]
    starts = await list_offsets(cluster, dict.fromkeys(unread, EARLIEST_TIMESTAMP)) if unread else {}
    behind = sum(row.end - starts[row.of].offset for row in rows if row.of in starts and row.end is not None)
    return behind + sum(row.lag or 0 for row in rows)


async def print_offsets(cluster: Cluster, group: GroupDescription) -> None:
    """Print a group's partitions; nothing where it has none."""
    columns = (
        _GROUP,
        _TOPIC,
        _PARTITION,
        Column("CURRENT-OFFSET", right=True),
        Column("LOG-END-OFFSET", right=True),
        Column("LAG", right=True),
        *_CONSUMER,
    )
    rows = [
        [
            group.group_id,
            row.of.topic,
            str(row.of.partition),
            _number(row.committed),
            _number(row.end),
            _number(row.lag),
            *_owner(row.owner),
        ]
        for row in await partition_rows(cluster, group)
    ]
    if rows:
        print_table(columns, rows, apart=True)


def as_json(
    group: GroupDescription, partitions: Sequence[PartitionRow] | None, lag: int | None, *, with_members: bool
) -> Value:
    """Return a group as JSON. partitions, lag: None where they are not asked for."""
    shown: dict[str, Value] = {
        "group": group.group_id,
        "type": group.group_type.lower(),
        "state": group.state,
        "assignor": group.assignor or None,
        "coordinator": {
            "id": group.coordinator.node_id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
    }
    if partitions is not None:
        shown |= {"lag": lag, "partitions": [_partition_json(row) for row in partitions]}
    if with_members:
        shown["members"] = [_member_json(member) for member in group.members]
    return shown


def _partition_json(row: PartitionRow) -> Value:
    return {
        "topic": row.of.topic,
        "partition": row.of.partition,
        "current_offset": row.committed,
        "log_end_offset": row.end,
        "lag": row.lag,
        "consumer_id": None if row.owner is None else row.owner.member_id,
    }


def _member_json(member: MemberDescription) -> Value:
    return {
        "consumer_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "host": member.client_host,
        "client_id": member.client_id,
        "epoch": member.epoch,
        "assignment": _assignment_json(member.partitions),
        "target_epoch": member.target_epoch,
        "target_assignment": None if member.target_partitions is None else _assignment_json(member.target_partitions),
    }


def _assignment_json(partitions: Iterable[TopicPartition]) -> Value:
    return [{"topic": of.topic, "partition": of.partition} for of in sorted(partitions)]


async def log_end_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end offsets of the partitions that still exist and have a leader."""
    wanted = list(partitions)
    metadata = await cluster.refresh({of.topic for of in wanted})
    led = [of for of in wanted if metadata.leader(of) is not None]
    found = await list_offsets(cluster, dict.fromkeys(led, LATEST_TIMESTAMP)) if led else {}
    return {of: answer.offset for of, answer in found.items()}


def print_members(groups: Iterable[GroupDescription], verbose: bool) -> None:
    members = [(group.group_id, member) for group in groups for member in group.members]
    static = any(member.group_instance_id is not None for _, member in members)
    columns = [_GROUP, Column("CONSUMER-ID")]
    columns += [Column("GROUP-INSTANCE-ID")] if static else []
    columns += [Column("HOST"), Column("CLIENT-ID"), Column("#PARTITIONS", right=True)]
    if verbose:
        columns += [Column("CURRENT-EPOCH"), Column("CURRENT-ASSIGNMENT", 20)]
        columns += [Column("TARGET-EPOCH"), Column("TARGET-ASSIGNMENT")]
    rows = []
    for group_id, member in members:
        row = [group_id, member.member_id]
        row += [member.group_instance_id or ""] if static else []
        row += [member.client_host, member.client_id, str(len(member.partitions))]
        if verbose:
            row += [_number(member.epoch), assignment_text(member.partitions)]
            row += [_number(member.target_epoch), assignment_text(member.target_partitions)]
        rows.append(row)
    print_table(columns, rows, apart=True)


def print_states(groups: Iterable[GroupDescription]) -> None:
    columns = [
        _GROUP,
        Column("COORDINATOR (ID)", 25),
        Column("ASSIGNMENT-STRATEGY", 20),
        Column("STATE", 20),
        Column("#MEMBERS", right=True),
    ]
    rows = [
        [
            group.group_id,
            f"{group.coordinator}  ({group.coordinator.node_id})",
            group.assignor or NONE,
            group.state,
            str(len(group.members)),
        ]
        for group in groups
    ]
    print_table(columns, rows, apart=True)


def assignment_text(partitions: Iterable[TopicPartition] | None) -> str:
    """`orders:0,1;users:2`, `-` for none."""
    topics: dict[str, list[str]] = {}
    for of in sorted(partitions or ()):
        topics.setdefault(of.topic, []).append(str(of.partition))
    return ";".join(f"{topic}:{','.join(listed)}" for topic, listed in topics.items()) or NONE


def _owner(member: MemberDescription | None) -> tuple[str, str, str]:
    if member is None:
        return (NONE, NONE, NONE)
    return (member.member_id, member.client_host, member.client_id)


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)
