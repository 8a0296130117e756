"""Offsets of deleted topics are deleted, because they mean nothing in a new topic of the same name.

A hundred thousand groups may have read a topic, so a shard forgets it in several steps. Meanwhile a new topic of that
name may have offsets of its own. Most offsets have the id of their topic. An offset without an id is the deleted
topic's if it was committed before the shard saw the deletion; a shard that did not see it, or has loaded its log since,
cannot tell, and keeps such offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.schema import NO_UUID

from ..common.context import Step
from ..common.records import offset_tombstone
from .committed_offsets import CommittedOffset, CommittedOffsets
from .pending_offsets import PendingOffsets

MOST_LOOKED_AT = 2_000
MOST_FORGOTTEN = 500
"""How many offsets one step looks at, and deletes."""

GroupPlace = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(frozen=True, slots=True, eq=False)
class DeletedTopics:
    """Topics that were deleted together. names: by topic id."""

    names: Mapping[bytes, str]


@dataclass(slots=True)
class _Progress:
    """The progress of a shard in forgetting topics.

    last_order: the order of the newest offset when the deletion was seen. places: where nobody has looked yet.
    """

    last_order: int
    places: Iterator[GroupPlace]


class ForgottenTopics:
    """The deleted topics whose offsets a shard has not deleted yet."""

    def __init__(self, offsets: CommittedOffsets, pending: PendingOffsets) -> None:
        self._offsets = offsets
        self._pending = pending
        self._under_way: dict[DeletedTopics, _Progress] = {}
        self._kept: KeptEntries[DeletedTopics, _Progress] = KeptEntries(self._under_way.get, lambda progress: progress)

    def begin(self, deleted: DeletedTopics) -> bool:
        """Note that the deletion is seen now. Whether there is an offset that may have to go."""
        if not any(self._offsets.groups_by_topic.topics_among(deleted.names.values())):
            return False
        self._under_way[deleted] = _Progress(self._offsets.last_order, self._places(deleted))
        return True

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the step did happen; else every offset is looked at again."""
        for deleted, progress in self._kept.end().items():
            if not is_kept:
                self._under_way.pop(deleted, None)
                if progress is not None:
                    self._under_way[deleted] = _Progress(progress.last_order, self._places(deleted))

    def forget(self, deleted: DeletedTopics, step: Step) -> bool:
        """Delete a part of the offsets. Whether that was the last part."""
        self._kept.keep(deleted)
        progress = self._under_way.get(deleted)
        if progress is None:
            progress = self._under_way[deleted] = _Progress(0, self._places(deleted))
        gone, is_last = self._next_gone(deleted, progress)
        for group_id, topic, partition in gone:
            step.append(offset_tombstone(group_id, topic, partition))
        for group_id, count in Counter(group_id for group_id, _, _ in gone).items():
            step.because(group_id, f"{count} offsets of deleted topics are deleted")
        if is_last:
            del self._under_way[deleted]
        return is_last

    def _next_gone(self, deleted: DeletedTopics, progress: _Progress) -> tuple[dict[GroupPlace, None], bool]:
        names = set(deleted.names.values())
        gone: dict[GroupPlace, None] = {}
        for looked_at, place in enumerate(progress.places, 1):
            if any(_is_of(deleted, names, place[1], each, progress.last_order) for each in self._offsets_at(place)):
                gone[place] = None
            if looked_at >= MOST_LOOKED_AT or len(gone) >= MOST_FORGOTTEN:
                return gone, False
        return gone, True

    def _places(self, deleted: DeletedTopics) -> Iterator[GroupPlace]:
        """All places that may have offsets of the topics; they may have others by the time that they are looked at."""
        groups_by_topic = self._offsets.groups_by_topic
        for topic in dict.fromkeys(groups_by_topic.topics_among(deleted.names.values())):
            for group_id in list(groups_by_topic.groups_of(topic)):
                partitions = list(self._offsets.of_topic(group_id, topic))
                pending = list(self._pending.places(group_id))  # a transaction may end before its places are looked at
                for partition in partitions:
                    yield group_id, topic, partition
                for place in pending:
                    yield group_id, *place

    def _offsets_at(self, place: GroupPlace) -> Iterator[CommittedOffset]:
        committed = self._pending.committed_offset(*place)
        if committed is not None:
            yield committed
        yield from self._pending.offsets_at(*place)


def _is_of(deleted: DeletedTopics, names: set[str], topic: str, offset: CommittedOffset, last_order: int) -> bool:
    """Tell whether the offset is a deleted topic's.

    For an offset without an id its topic's name and its order decide.
    """
    if offset.topic_id == NO_UUID:
        return topic in names and offset.order <= last_order
    return offset.topic_id in deleted.names
