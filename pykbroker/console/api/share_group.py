"""`GET /api/group/share?id=`: a share group with its members, start offsets and lag (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pykbroker.client.share_groups import (
    ShareGroup,
    ShareMember,
    ShareOffset,
    describe_share_group,
    fetch_share_offsets,
)
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.topic_partition import TopicPartition

from .group import MOST_SHOWN, group_id
from .group_lags import MOST_PARTITIONS, offsets_at
from .group_pages import GroupPagesAsked
from .pages import Page
from .partition_offsets import Found


@dataclass(frozen=True, slots=True)
class SharerRow:
    """A member. assigned: the first partitions of its assignment, as `topic-0`; count: how many there are in all."""

    member_id: str
    client_id: str
    host: str
    epoch: int
    assigned: Sequence[str]
    count: int


@dataclass(frozen=True, slots=True)
class SharedRow:
    """A partition. start, end, lag: None where nobody tells, or nobody has read there yet. readers: the clients that
    have it, up to a bound; reader_count: all of them.
    """

    topic: str
    partition: int
    start: int | None
    end: int | None
    lag: int | None
    readers: Sequence[str]
    reader_count: int
    error: str | None


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """A share group. lag: over the partitions that have been read, None where none has, or there are too many."""

    group_id: str
    type: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    coordinator: int
    members: Page[SharerRow]
    partitions: Page[SharedRow]
    lag: int | None
    not_shown: int


async def share_group(asking: Asking, given: Arguments) -> SharedGroup:
    """Raises BadInput, KafkaError, ClientError."""
    asked = GroupPagesAsked.of(given)
    name = group_id(given)
    described = await describe_share_group(asking.cluster, name)
    offsets = await fetch_share_offsets(asking.cluster, name)

    def places() -> tuple[list[TopicPartition], dict[TopicPartition, list[str]]]:
        readers: dict[TopicPartition, list[str]] = {}
        for member in described.members:
            for at in member.partitions:
                readers.setdefault(at, []).append(member.client_id)
        return sorted({*offsets, *readers}), readers

    wanted, readers = await asking.threads.run(places)
    shown = wanted[:MOST_PARTITIONS]
    ends = await offsets_at(asking.cluster, shown)

    def reckoned() -> tuple[Page[SharedRow], Page[SharerRow], int | None]:
        rows = [_row(at, offsets, ends, readers) for at in shown]
        known = [row.lag for row in rows if row.lag is not None]
        members = asked.member_page(described.members).mapped(_member)
        return asked.partition_page(rows), members, sum(known) if known or not rows else None

    partitions, members, lag = await asking.threads.run(reckoned)
    return _group(described, members, partitions, lag, len(wanted) - len(shown))


def _group(
    described: ShareGroup, members: Page[SharerRow], partitions: Page[SharedRow], lag: int | None, not_shown: int
) -> SharedGroup:
    return SharedGroup(
        group_id=described.group_id,
        type="share",
        state=described.state,
        epoch=described.epoch,
        assignment_epoch=described.assignment_epoch,
        assignor=described.assignor,
        coordinator=described.coordinator.node_id,
        members=members,
        partitions=partitions,
        lag=None if not_shown else lag,
        not_shown=not_shown,
    )


def _row(
    at: TopicPartition,
    offsets: Mapping[TopicPartition, ShareOffset],
    ends: Found,
    readers: Mapping[TopicPartition, Sequence[str]],
) -> SharedRow:
    offset, clients = offsets.get(at), readers.get(at, ())
    return SharedRow(
        topic=at.topic,
        partition=at.partition,
        start=None if offset is None else offset.start_offset,
        end=ends.offsets.get(at),
        lag=None if offset is None else offset.lag,
        readers=list(dict.fromkeys(clients))[:MOST_SHOWN],
        reader_count=len(clients),
        error=ends.errors.get(at),
    )


def _member(member: ShareMember) -> SharerRow:
    return SharerRow(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        epoch=member.epoch,
        assigned=[str(at) for at in member.partitions[:MOST_SHOWN]],
        count=len(member.partitions),
    )
