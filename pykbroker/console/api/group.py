"""`GET /api/group?id=`: a group with its members, its committed offsets and its lag; and its deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput
from pykbroker.client.groups import GroupDescription, MemberDescription, delete_group, describe_group
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.topic_partition import TopicPartition

from .group_lags import MOST_PARTITIONS, Committed, committed_offsets, offsets_at, total_lag
from .group_pages import GroupPagesAsked
from .pages import Page
from .partition_offsets import Found

LONGEST_ID: Final = 32_767
MOST_SHOWN: Final = 200
"""Partitions, or tasks, of a member that are named."""


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member. assigned: the first partitions of its assignment, as `topic-0`; count: how many there are in all."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    assigned: Sequence[str]
    count: int


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A partition. committed, end, lag: None where there is none, or nobody tells; owner: the member that reads it."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    owner: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """A group. lag: over all its partitions, None where it is not known of any, or there are too many (not_shown)."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: Page[MemberRow]
    offsets: Page[OffsetRow]
    lag: int | None
    not_shown: int


async def group(asking: Asking, given: Arguments) -> Group:
    """Raises BadInput, KafkaError, ClientError."""
    asked = GroupPagesAsked.of(given)
    name = group_id(given)
    described = await describe_group(asking.cluster, name)
    connection = await asking.cluster.node_connection(described.coordinator)
    committed = (await committed_offsets(connection, [name], MOST_PARTITIONS)).get(name, {})
    owners = {at: each.client_id for each in described.members for at in each.partitions}
    wanted = sorted({*committed, *owners})
    shown = wanted[:MOST_PARTITIONS]
    ends = await offsets_at(asking.cluster, shown)

    def reckoned() -> tuple[Page[OffsetRow], Page[MemberRow], int | None]:
        rows = [offset_row(at, committed, ends, owners) for at in shown]
        member_rows = asked.member_page(described.members).mapped(_member_row)
        return asked.partition_page(rows), member_rows, total_lag(committed, ends.offsets)

    offsets, members, lag = await asking.threads.run(reckoned)
    return _group(described, members, offsets, lag, len(wanted) - len(shown))


async def delete(asking: Asking, given: Arguments) -> None:
    """Delete a group with its offsets. Raises BadInput, KafkaError, ClientError."""
    name = group_id(given)
    if given.text("confirm", "", longest=LONGEST_ID) != name:
        raise BadInput("'confirm' is the group's name once more")
    await delete_group(asking.cluster, name)


def group_id(given: Arguments) -> str:
    """Raises BadInput."""
    return given.text("id", longest=LONGEST_ID)


def _group(
    described: GroupDescription, members: Page[MemberRow], offsets: Page[OffsetRow], lag: int | None, not_shown: int
) -> Group:
    return Group(
        group_id=described.group_id,
        type=described.group_type,
        state=described.state,
        protocol_type=described.protocol_type,
        assignor=described.assignor,
        coordinator=described.coordinator.node_id,
        members=members,
        offsets=offsets,
        lag=None if not_shown else lag,
        not_shown=not_shown,
    )


def offset_row(
    at: TopicPartition, committed: Committed, ends: Found, owners: Mapping[TopicPartition, str]
) -> OffsetRow:
    """Return the row of a partition. owners: the client that reads each."""
    offset, end = committed.get(at), ends.offsets.get(at)
    return OffsetRow(
        topic=at.topic,
        partition=at.partition,
        committed=offset,
        end=end,
        lag=None if offset is None or end is None else max(0, end - offset),
        owner=owners.get(at),
        error=ends.errors.get(at),
    )


def _member_row(member: MemberDescription) -> MemberRow:
    return MemberRow(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        epoch=member.epoch,
        assigned=[str(at) for at in member.partitions[:MOST_SHOWN]],
        count=len(member.partitions),
    )
