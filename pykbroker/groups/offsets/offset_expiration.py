"""Offsets that are too old go (KIP-211), and with them groups that have neither members nor offsets.

An offset is kept for `offsets.retention.minutes` after the group became empty; in a group whose members do not read the
topic, or that has offsets only, for that time after its commit; and as long as an open transaction may replace it. The
model is `cleanupExpiredOffsets` of Kafka's `GroupCoordinatorShard` and `OffsetMetadataManager`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.group import Group
from ..common.records import offset_tombstone
from .committed_offsets import CommittedOffset, CommittedOffsets, Place
from .pending_offsets import PendingOffsets

_AT_ONCE_MS = -1
MOST_LOOKED_AT = 2_000
"""How many groups and offsets one step looks at, about."""
MOST_EXPIRED = 500
"""How many records one step appends, about."""


class OffsetExpiration:
    """The search of the groups of a shard for expired offsets, a part of them in each step.

    groups: the shard's. next_ms: when the next search begins or goes on; None before the timers have started.
    """

    def __init__(
        self, config: GroupConfig, groups: Mapping[str, Group], committed: CommittedOffsets, pending: PendingOffsets
    ) -> None:
        self._config = config
        self._groups = groups
        self._committed = committed
        self._pending = pending
        self.next_ms: int | None = None
        self._kept_next_ms: int | None = None
        self._groups_left: deque[str] = deque()
        self._places_left: tuple[str, Iterator[Place]] | None = None
        """The group with very many offsets that is looked through now, and where nobody has looked yet."""

    def start(self, now_ms: int) -> None:
        self.next_ms = now_ms + self._config.offsets_retention_check_interval_ms

    def look_now(self) -> None:
        """Have the next steps look at all groups, whenever the next search would begin."""
        if self.next_ms is not None:
            self.next_ms = _AT_ONCE_MS
            self._groups_left.clear()
            self._places_left = None

    def expire_if_due(self, step: Step) -> Iterator[Group]:
        """Delete expired offsets of some groups, until all groups were looked at. Yields groups without offsets."""
        if self.next_ms is None or self.next_ms > step.now_ms:
            return
        if not self._groups_left:
            self._groups_left.extend(self._groups)
        left = MOST_LOOKED_AT
        while self._groups_left and left > 0 and len(step.records) < MOST_EXPIRED:
            group = self._groups.get(self._groups_left.popleft())
            if group is None:
                continue
            left -= 1
            count = self._committed.count(group.group_id)
            if count > MOST_EXPIRED:
                left -= self._expire_some(group, step)
                continue
            left -= count
            if self._expire_all(group, step):
                yield group
        if not self._groups_left:
            self.start(step.now_ms)

    def _expire_some(self, group: Group, step: Step) -> int:
        """Return how many offsets were looked at.

        The group is looked at again until all were; once few offsets are left, they may expire together with the group.
        """
        group_id = group.group_id
        if self._places_left is None or self._places_left[0] != group_id:
            offsets = [(topic, list(partitions)) for topic, partitions in self._committed.of_group(group_id)]
            self._places_left = group_id, _each_place(offsets)
        places = list(islice(self._places_left[1], MOST_EXPIRED))
        self._expire(group, [place for place in places if self._is_there_and_expired(group, place, step)], step)
        if places:
            self._groups_left.appendleft(group_id)
        else:
            self._places_left = None
        return len(places)

    def _expire_all(self, group: Group, step: Step) -> bool:
        """Tell whether the group has no offsets now, committed or pending."""
        self._places_left = None
        offsets = list(self._committed.offsets_of(group.group_id))
        expired = [place for place, offset in offsets if self._is_expired(group, place, offset, step)]
        self._expire(group, expired, step)
        return len(expired) == len(offsets) and group.group_id not in self._pending

    def _expire(self, group: Group, places: list[Place], step: Step) -> None:
        for place in places:
            step.append(offset_tombstone(group.group_id, *place))
        if places:
            step.because(group.group_id, f"{len(places)} offsets expired")

    def _is_there_and_expired(self, group: Group, place: Place, step: Step) -> bool:
        offset = self._pending.committed_offset(group.group_id, *place)
        return offset is not None and self._is_expired(group, place, offset, step)

    def _is_expired(self, group: Group, place: Place, offset: CommittedOffset, step: Step) -> bool:
        if group.is_subscribed_to(place[0]):
            return False
        since_ms = group.offset_unused_since_ms(offset.commit_timestamp_ms)
        if since_ms is None or self._pending.is_moving(group.group_id, *place):
            return False
        reckon, expire_ms = self._config.reckon_offsets, offset.expire_timestamp_ms
        if expire_ms is not None:
            return reckon(step.timestamp_ms, expire_ms - offset.commit_timestamp_ms) >= expire_ms
        retention_ms = self._config.offsets_retention_ms
        return reckon(step.timestamp_ms, retention_ms) - since_ms >= retention_ms

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept_next_ms = self.next_ms

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the step did happen; else the search begins with the first group
        again."""
        if not is_kept:
            self.next_ms = self._kept_next_ms
            self._groups_left.clear()
            self._places_left = None


def _each_place(topics: Iterable[tuple[str, list[int]]]) -> Iterator[Place]:
    for topic, partitions in topics:
        for partition in partitions:
            yield topic, partition
