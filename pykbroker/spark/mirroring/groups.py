"""Offsets of the source's groups, translated to the target's and committed there, as MirrorMaker 2 does (KIP-545).

A group that has members in the target is left alone; an offset never goes back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.group_offsets import MEMBERS_DECIDE, CommittedOffset, commit_offsets, fetch_offsets
from pykbroker.client.groups import list_groups
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from ..source import Source, ask
from ..writing.offset_syncs import CopyPosition, translated
from .positions import PREFIX

_OF_ANOTHER_KIND = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
_CONSUMERS = ("consumer", "")
"""Protocol types of groups that have offsets: of consumers, and of whoever commits without being a member."""

Offsets = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class Copy:
    """A topic's copy. positions: by partition."""

    target_topic: str
    positions: Mapping[int, CopyPosition]


def translate_groups(source: Source, target: Source, pattern: str, copies: Mapping[str, Copy]) -> int:
    """Commit the offsets of the groups whose whole names match; the number of offsets that have moved.

    copies: by topic of the source. Raises ClusterUnavailable.
    """
    wanted = re.compile(pattern)

    async def read(cluster: Cluster) -> dict[str, Offsets]:
        found = {}
        for group in await list_groups(cluster):
            name = group.group_id
            if group.protocol_type in _CONSUMERS and not name.startswith(PREFIX) and wanted.fullmatch(name):
                found[name] = await _offsets_of(cluster, name)
        return found

    moved = 0

    async def write(cluster: Cluster) -> None:
        nonlocal moved
        for name, offsets in committed.items():
            moved += await _move(cluster, name, translation(offsets, copies))

    committed = ask(source, read)
    ask(target, write)
    return moved


def translation(offsets: Offsets, copies: Mapping[str, Copy]) -> dict[TopicPartition, CommittedOffset]:
    """The offsets of the copies; what is not copied is left out."""
    found = {}
    for at, committed in offsets.items():
        copy = copies.get(at.topic)
        position = copy.positions.get(at.partition) if copy is not None else None
        if copy is None or position is None:
            continue
        offset = translated(position.syncs, committed.offset)
        if offset is not None:
            place = TopicPartition(copy.target_topic, at.partition)
            found[place] = CommittedOffset(offset, -1, committed.metadata)
    return found


async def _offsets_of(cluster: Cluster, group_id: str) -> Offsets:
    try:
        return await fetch_offsets(cluster, group_id)
    except KafkaError as error:
        if error.error_code in _OF_ANOTHER_KIND:  # or deleted meanwhile
            return {}
        raise


async def _move(cluster: Cluster, group_id: str, offsets: Offsets) -> int:
    if not offsets:
        return 0
    there = await _offsets_of(cluster, group_id)
    ahead = {at: new for at, new in offsets.items() if at not in there or there[at].offset < new.offset}
    if not ahead:
        return 0
    try:
        await commit_offsets(
            cluster,
            group_id,
            {at: new.offset for at, new in ahead.items()},
            metadata={at: new.metadata for at, new in ahead.items()},
        )
    except KafkaError as error:
        if error.error_code in MEMBERS_DECIDE | _OF_ANOTHER_KIND:
            return 0
        raise
    return len(ahead)
