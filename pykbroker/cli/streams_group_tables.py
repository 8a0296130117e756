"""Groups of Kafka Streams as `pykbroker streams-groups describe` shows them: in the columns of
`kafka-streams-groups`, and as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, list_offsets
from pykbroker.client.streams_groups import StreamsGroup, StreamsMember, Tasks
from pykbroker.protocol.topic_partition import TopicPartition

from .entries import Value
from .group_tables import NONE, log_end_offsets
from .output import Column, print_table
from .printable import printable

_GROUP = Column("GROUP")
_TOPIC = Column("TOPIC")
_PARTITION = Column("PARTITION", 10, right=True)


@dataclass(frozen=True, slots=True)
class InputRow:
    """A partition that the application reads; what is not known is None.

    is_read: a member has the active task of it. lag: of a partition without a committed offset all that it has.
    """

    of: TopicPartition
    committed: int | None
    leader_epoch: int | None
    end: int | None
    lag: int | None
    is_read: bool


async def input_rows(cluster: Cluster, group: StreamsGroup) -> list[InputRow]:
    """Return the partitions that active tasks read, and those of read topics that have a committed offset."""
    read = {of for member in group.members for of in group.partitions_of(member.tasks)}
    committed = {
        of: told for of, told in (await fetch_offsets(cluster, group.group_id)).items() if of.topic in group.read_topics
    }
    shown = sorted({*read, *committed})
    ends = await log_end_offsets(cluster, shown)
    unread = [of for of in shown if of not in committed and of in ends]
    starts = await list_offsets(cluster, dict.fromkeys(unread, EARLIEST_TIMESTAMP)) if unread else {}
    rows = []
    for of in shown:
        told, end = committed.get(of), ends.get(of)
        begin = told.offset if told is not None else starts[of].offset if of in starts else None
        rows.append(
            InputRow(
                of,
                None if told is None else told.offset,
                None if told is None or told.leader_epoch < 0 else told.leader_epoch,
                end,
                None if begin is None or end is None else end - begin,
                of in read,
            )
        )
    return rows


def print_offsets(group: StreamsGroup, rows: Sequence[InputRow], *, verbose: bool) -> None:
    """Print partitions with their lag; nothing of a group that has none."""
    warn_of_state(group)
    if not rows:
        return
    columns = [_GROUP, _TOPIC, _PARTITION]
    if verbose:
        columns += [Column(title, right=True) for title in ("CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET")]
    cells = []
    for row in rows:
        line = [group.group_id, row.of.topic, str(row.of.partition)]
        line += [_number(row.committed), _number(row.leader_epoch), _number(row.end)] if verbose else []
        cells.append([*line, _number(row.lag)])
    print_table([*columns, Column("OFFSET-LAG", 0, right=True)], cells)


def print_members(group: StreamsGroup, *, verbose: bool) -> None:
    """Print the members with their tasks; nothing where there are none."""
    warn_of_state(group)
    if not group.members:
        return
    process = (Column("PROCESS"), Column("CLIENT-ID"), Column("ASSIGNMENTS", 0))
    if not verbose:
        rows = [
            [group.group_id, member.member_id, member.process_id, member.client_id, tasks_text(member.tasks)]
            for member in group.members
        ]
        print_table((_GROUP, Column("MEMBER"), *process), rows)
        return
    columns = (
        _GROUP,
        Column("TARGET-ASSIGNMENT-EPOCH", 25, right=True),
        Column("TOPOLOGY-EPOCH", 15, right=True),
        Column("MEMBER"),
        Column("MEMBER-PROTOCOL"),
        Column("MEMBER-EPOCH", right=True),
        *process,
    )
    print_table(columns, [_verbose_row(group, member) for member in group.members])


def _verbose_row(group: StreamsGroup, member: StreamsMember) -> list[str]:
    return [
        group.group_id,
        str(group.assignment_epoch),
        str(group.topology_epoch),
        member.member_id,
        "classic" if member.is_classic else "streams",
        str(member.epoch),
        member.process_id,
        member.client_id,
        " ".join(filter(None, (tasks_text(member.tasks), tasks_text(member.target_tasks, "TARGET-")))),
    ]


def tasks_text(tasks: Tasks, prefix: str = "") -> str:
    """`ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 0:[2];`, as Kafka's tool writes tasks."""
    kinds = (("ACTIVE", tasks.active), ("STANDBY", tasks.standby), ("WARMUP", tasks.warmup))
    return " ".join(
        f"{prefix}{kind}: "
        + " ".join(f"{subtopology}:[{','.join(map(str, partitions))}];" for subtopology, partitions in listed)
        for kind, listed in kinds
        if listed
    )


def print_state(group: StreamsGroup, *, verbose: bool) -> None:
    """Print who coordinates a group, and what state it is in."""
    warn_of_state(group)
    columns = [_GROUP, Column("COORDINATOR (ID)", 25), Column("STATE", 25)]
    row = [group.group_id, f"{group.coordinator} ({group.coordinator.node_id})", group.state]
    if verbose:
        columns += [Column("GROUP-EPOCH", right=True), Column("TARGET-ASSIGNMENT-EPOCH", 25, right=True)]
        row += [str(group.epoch), str(group.assignment_epoch)]
    print_table([*columns, Column("#MEMBERS", 0, right=True)], [[*row, str(len(group.members))]])


def warn_of_state(group: StreamsGroup) -> None:
    """Say on standard error that nobody is in a group."""
    if group.state == "Empty":
        click.echo(f"Streams group '{printable(group.group_id)}' has no active members.", err=True)


def as_json(group: StreamsGroup, rows: Sequence[InputRow] | None, *, with_members: bool) -> Value:
    """Return a group as JSON. rows: None where they are not asked for."""
    shown: dict[str, Value] = {
        "group": group.group_id,
        "state": group.state,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.topology_epoch,
        "coordinator": {
            "id": group.coordinator.node_id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "subtopologies": [
            {
                "id": each.subtopology_id,
                "source_topics": list(each.source_topics),
                "repartition_source_topics": list(each.repartition_source_topics),
                "changelog_topics": list(each.changelog_topics),
            }
            for each in group.subtopologies
        ],
    }
    if rows is not None:
        known = [row.lag for row in rows if row.lag is not None]
        shown["lag"] = sum(known) if known else None
        shown["partitions"] = [
            {
                "topic": row.of.topic,
                "partition": row.of.partition,
                "current_offset": row.committed,
                "leader_epoch": row.leader_epoch,
                "log_end_offset": row.end,
                "lag": row.lag,
                "is_read": row.is_read,
            }
            for row in rows
        ]
    if with_members:
        shown["members"] = [_member_json(member) for member in group.members]
    return shown


def _member_json(member: StreamsMember) -> Value:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "process_id": member.process_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "epoch": member.epoch,
        "topology_epoch": member.topology_epoch,
        "protocol": "classic" if member.is_classic else "streams",
        "tasks": _tasks_json(member.tasks),
        "target_tasks": _tasks_json(member.target_tasks),
    }


def _tasks_json(tasks: Tasks) -> Value:
    kinds = {"active": tasks.active, "standby": tasks.standby, "warmup": tasks.warmup}
    return {
        kind: [{"subtopology": subtopology, "partitions": list(partitions)} for subtopology, partitions in listed]
        for kind, listed in kinds.items()
    }


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)
