"""Offsets that nobody needs any more: too old (KIP-211), or of a group that was deleted.

An offset is kept for `offsets.retention.minutes` after the group became empty, or, where members still come without
reading the topic and where a group has offsets only, after its commit; and as long as a transaction may replace it. A
group without members and offsets goes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from ..classic.classic_group import EMPTY, STABLE
from ..common.config import GroupConfig
from ..common.context import Step
from ..common.records import NO_TIMESTAMP, offset_commit_record
from ..consumer.consumer_group import ConsumerGroup
from ..consumer.group_types import Group
from .offsets import CommittedOffset, CommittedOffsets
from .pending_offsets import PendingOffsets, Place


class OffsetCleanup:
    def __init__(self, config: GroupConfig, offsets: CommittedOffsets, pending: PendingOffsets) -> None:
        self._config = config
        self._offsets = offsets
        self._pending = pending
        self._left: tuple[str, Iterator[Place]] | None = None
        """Of a group with very many offsets: those that were not looked at yet."""

    def begin_anew(self) -> None:
        self._left = None

    def expire_some(self, group: Group, most: int, step: Step) -> int:
        """How many offsets were looked at; 0 at the end, when each of them was."""
        group_id = group.group_id
        if self._left is None or self._left[0] != group_id:
            self._left = (
                group_id,
                _each_place([(topic, list(each)) for topic, each in self._offsets.of_group(group_id)]),
            )
        places = list(islice(self._left[1], most))
        expired = [place for place in places if self._is_there_and_expired(group, place, step)]
        self._delete(group_id, expired, step)
        if expired:
            step.because(f"group {group_id}: {len(expired)} offsets expired")
        if not places:
            self._left = None
        return len(places)

    def _is_there_and_expired(self, group: Group, place: Place, step: Step) -> bool:
        offset = self._pending.committed(group.group_id, *place)
        return offset is not None and self._is_expired(group, place, offset, step)

    def expire(self, group: Group, step: Step) -> bool:
        """Whether nothing is left of the group's offsets."""
        self.begin_anew()
        offsets = list(self._offsets_of(group.group_id))
        expired = [place for place, offset in offsets if self._is_expired(group, place, offset, step)]
        self._delete(group.group_id, expired, step)
        if expired:
            step.because(f"group {group.group_id}: {len(expired)} offsets expired")
        return len(expired) == len(offsets) and group.group_id not in self._pending

    def _is_expired(self, group: Group, place: Place, offset: CommittedOffset, step: Step) -> bool:
        topic, partition = place
        since_ms = _unused_since_ms(group, topic, offset)
        if since_ms is None or self._pending.is_moving(group.group_id, topic, partition):
            return False
        if offset.expire_timestamp_ms is not None:
            return step.timestamp_ms >= offset.expire_timestamp_ms
        return step.timestamp_ms - since_ms >= self._config.offsets_retention_ms

    def delete_some(self, group_id: str, most: int, step: Step) -> bool:
        """The group goes, and with it what transactions under way committed for it. Whether these are the last."""
        committed = (place for place, _ in self._offsets_of(group_id))
        places = list(islice(chain(committed, self._pending.places(group_id)), most + 1))
        self._delete(group_id, dict.fromkeys(places[:most]), step)
        return len(places) <= most

    def _delete(self, group_id: str, places: Iterable[Place], step: Step) -> None:
        for topic, partition in places:
            step.append(offset_commit_record(group_id, topic, partition, None))

    def _offsets_of(self, group_id: str) -> Iterator[tuple[Place, CommittedOffset]]:
        for topic, partitions in self._offsets.of_group(group_id):
            for partition, offset in partitions.items():
                yield (topic, partition), offset


def _each_place(topics: Iterable[tuple[str, list[int]]]) -> Iterator[Place]:
    for topic, partitions in topics:
        for partition in partitions:
            yield topic, partition


def _unused_since_ms(group: Group, topic: str, offset: CommittedOffset) -> int | None:
    """None while the offset is, or may be, in use."""
    if group.is_subscribed_to(topic):
        return None
    if isinstance(group, ConsumerGroup) or group.protocol_type is None:
        return offset.commit_timestamp_ms
    if group.state is EMPTY:
        since_ms = group.state_timestamp_ms
        return offset.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
    if group.state is STABLE and group.topics is not None:
        return offset.commit_timestamp_ms
    return None
