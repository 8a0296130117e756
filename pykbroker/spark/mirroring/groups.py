"""Offsets of the source's groups, translated to the target's and committed there, as MirrorMaker 2 does (KIP-545).

A group that has members in the target is left alone; an offset never goes back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError
from pykbroker.client.group_offsets import (
    MEMBERS_DECIDE,
    MOST_GROUPS_AT_ONCE,
    CommittedOffset,
    commit_offsets,
    fetch_offsets_of_groups,
)
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
        names = [
            group.group_id
            for group in await list_groups(cluster)
            if group.protocol_type in _CONSUMERS
            and not group.group_id.startswith(PREFIX)
            and wanted.fullmatch(group.group_id)
        ]
        return await _offsets_of(cluster, names)

    async def write(cluster: Cluster) -> int:
        moved, names = 0, list(translations)
        for first in range(0, len(names), MOST_GROUPS_AT_ONCE):  # what is there is known shortly before it changes
            there = await _offsets_of(cluster, names[first : first + MOST_GROUPS_AT_ONCE])
            for name, committed in there.items():
                moved += await _move(cluster, name, translations[name], committed)
        return moved

    found = {name: translation(offsets, copies) for name, offsets in ask(source, read).items()}
    translations = {name: offsets for name, offsets in found.items() if offsets}
    return ask(target, write) if translations else 0


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


async def _offsets_of(cluster: Cluster, group_ids: Collection[str]) -> dict[str, Offsets]:
    """The committed offsets of each group: none of a group of another kind, or one that was deleted meanwhile."""
    found: dict[str, Offsets] = {}
    for group_id, offsets in (await fetch_offsets_of_groups(cluster, group_ids)).items():
        if not isinstance(offsets, KafkaError):
            found[group_id] = offsets
        elif offsets.error_code in _OF_ANOTHER_KIND:
            found[group_id] = {}
        else:
            raise offsets
    return found


async def _move(cluster: Cluster, group_id: str, offsets: Offsets, there: Offsets) -> int:
    """The number of offsets that were ahead of those in the target, and are committed now."""
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
