"""The tables of `pykbroker groups --describe`, in the columns of `kafka-consumer-groups`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykbroker.client.cluster import Cluster
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.groups import GroupDescription, MemberDescription
from pykbroker.client.offsets import LATEST_TIMESTAMP, list_offsets
from pykbroker.protocol.topic_partition import TopicPartition

from .output import Column, print_table

NONE = "-"

_GROUP = Column("GROUP")
_TOPIC = Column("TOPIC")
_PARTITION = Column("PARTITION", 10, right=True)
_CONSUMER = (Column("CONSUMER-ID"), Column("HOST"), Column("CLIENT-ID"))


async def print_offsets(cluster: Cluster, group: GroupDescription) -> None:
    """Every partition that has a committed offset or a consumer."""
    committed = {of: answer.offset for of, answer in (await fetch_offsets(cluster, group.group_id)).items()}
    owners = {of: member for member in group.members for of in member.partitions}
    shown = sorted({*committed, *owners})
    ends = await log_end_offsets(cluster, shown)
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
            of.topic,
            str(of.partition),
            _number(committed.get(of)),
            _number(ends.get(of)),
            _number(_lag(committed.get(of), ends.get(of))),
            *_owner(owners.get(of)),
        ]
        for of in shown
    ]
    if rows:
        print_table(columns, rows, apart=True)


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


def print_plan(plan: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    rows = [
        [group_id, of.topic, str(of.partition), str(offset)]
        for group_id, offsets in plan.items()
        for of, offset in sorted(offsets.items())
    ]
    print_table((_GROUP, _TOPIC, _PARTITION, Column("NEW-OFFSET", right=True)), rows, apart=True)


def print_deleted(outcomes: Iterable[tuple[str, str, str]]) -> None:
    """Topic, partition and outcome."""
    print_table((_TOPIC, _PARTITION, Column("STATUS")), [list(row) for row in outcomes], apart=True)


def assignment_text(partitions: Iterable[TopicPartition] | None) -> str:
    """`orders:0,1;users:2`, `-` for none."""
    topics: dict[str, list[str]] = {}
    for of in sorted(partitions or ()):
        topics.setdefault(of.topic, []).append(str(of.partition))
    return ";".join(f"{topic}:{','.join(listed)}" for topic, listed in topics.items()) or NONE


def _lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else max(end - committed, 0)


def _owner(member: MemberDescription | None) -> tuple[str, str, str]:
    if member is None:
        return (NONE, NONE, NONE)
    return (member.member_id, member.client_host, member.client_id)


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)
