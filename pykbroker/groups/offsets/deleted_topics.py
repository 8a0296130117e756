"""Offsets of topics that were deleted: they mean nothing in a new topic of the same name.

A topic may have been read by a hundred thousand groups, so a shard forgets it in several steps. Meanwhile there may be
a new topic of that name, with offsets of its own. Most offsets have the id of their topic; of the others those are of
the deleted topic that were committed before its deletion was seen. A shard that was not there then, or has read its log
anew since, does not know which those are, and keeps them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.schema import NO_UUID

from ..common.context import Step
from ..common.records import offset_commit_record
from .offsets import CommittedOffset, CommittedOffsets
from .pending_offsets import PendingOffsets

MOST_LOOKED_AT = 2_000
MOST_FORGOTTEN = 500
"""Offsets in one step."""

GroupPlace = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(frozen=True, slots=True, eq=False)
class DeletedTopics:
    """Topics that were deleted together. names: by id."""

    names: Mapping[bytes, str]


@dataclass(slots=True)
class _Progress:
    """last_order: of the offsets that were there when the deletion was seen. places: where it was not looked yet."""

    last_order: int
    places: Iterator[GroupPlace]


class ForgottenTopics:
    """What a shard has still to forget."""

    def __init__(self, offsets: CommittedOffsets, pending: PendingOffsets) -> None:
        self._offsets = offsets
        self._pending = pending
        self._under_way: dict[DeletedTopics, _Progress] = {}
        self._kept: KeptEntries[DeletedTopics, _Progress] = KeptEntries(self._under_way.get, lambda progress: progress)

    def begin(self, deleted: DeletedTopics) -> bool:
        """The deletion is seen now. Whether there is anything to forget."""
        if not any(self._offsets.groups_by_topic.topics_among(deleted.names.values())):
            return False
        self._under_way[deleted] = _Progress(self._offsets.last_order, self._places(deleted))
        return True

    def begin_trial(self) -> None:
        """What changes from here on may be taken back by `end_trial`."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        """is_kept: whether the step did happen; else it is looked through everything again."""
        for deleted, progress in self._kept.end().items():
            if not is_kept:
                self._under_way.pop(deleted, None)
                if progress is not None:
                    self._under_way[deleted] = _Progress(progress.last_order, self._places(deleted))

    def forget(self, deleted: DeletedTopics, step: Step) -> bool:
        """A part of it. Whether that was the last."""
        self._kept.keep(deleted)
        progress = self._under_way.get(deleted)
        if progress is None:
            progress = self._under_way[deleted] = _Progress(0, self._places(deleted))
        gone, is_last = self._next_gone(deleted, progress)
        for group_id, topic, partition in gone:
            step.append(offset_commit_record(group_id, topic, partition, None))
        for group_id, count in Counter(group_id for group_id, _, _ in gone).items():
            step.because(f"group {group_id}: {count} offsets of deleted topics")
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
        """Everything that may be of the topics; others may have it by the time that it is looked at."""
        groups_by_topic = self._offsets.groups_by_topic
        for topic in dict.fromkeys(groups_by_topic.topics_among(deleted.names.values())):
            for group_id in list(groups_by_topic.groups_of(topic)):
                partitions = list(self._offsets.of_topic(group_id, topic))
                pending = list(self._pending.places(group_id))  # a transaction may end before it is their turn
                for partition in partitions:
                    yield group_id, topic, partition
                for place in pending:
                    yield group_id, *place

    def _offsets_at(self, place: GroupPlace) -> Iterator[CommittedOffset]:
        committed = self._pending.committed(*place)
        if committed is not None:
            yield committed
        yield from self._pending.offsets_at(*place)


def _is_of(deleted: DeletedTopics, names: set[str], topic: str, offset: CommittedOffset, last_order: int) -> bool:
    """Where an offset was committed without an id, its topic's name tells."""
    if offset.topic_id == NO_UUID:
        return topic in names and offset.order <= last_order
    return offset.topic_id in deleted.names
