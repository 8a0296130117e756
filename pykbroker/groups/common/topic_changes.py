"""Topics that have changed since a group looked at its own; a group asks with its next heartbeat.

Changes are noted by topic, so that a change costs nothing for the groups that it concerns: there may be a hundred
thousand of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

MOST_NOTED_AT_ONCE = 200
"""How many topics a shard is told by name that they have changed: there are many shards."""
MOST_NOTED = 10_000
"""How many names of topics are kept. Where more have changed, every group looks again."""


class SubscribedGroup(Protocol):
    """A group whose members are subscribed to topics. seen_topic_change: the newest change that it has looked at."""

    seen_topic_change: int

    @property
    def topic_names(self) -> Iterable[str]: ...


class TopicChanges:
    """Changes are numbered; a group keeps the number of the newest change that it has looked at."""

    def __init__(self) -> None:
        self._newest = 1
        self._newest_of_all = 1
        self._newest_by_name: dict[str, int] = {}

    def note(self, names: Collection[str]) -> None:
        """Note that the topics were created, have more partitions, or were deleted. Where there are very many, every
        topic counts as changed."""
        if len(names) > MOST_NOTED_AT_ONCE:
            self.note_all()
            return
        self._newest += 1
        self._newest_by_name.update(dict.fromkeys(names, self._newest))
        if len(self._newest_by_name) > MOST_NOTED:
            self._forget_names()

    def note_all(self) -> None:
        """Note that any topic may have changed."""
        self._newest += 1
        self._forget_names()

    def _forget_names(self) -> None:
        self._newest_of_all = self._newest
        self._newest_by_name.clear()

    def concern(self, group: SubscribedGroup) -> bool:
        """Tell whether the group's topics have changed since it looked at them, or it never did."""
        seen = group.seen_topic_change
        if seen == self._newest:
            return False
        return seen < self._newest_of_all or any(self._newest_by_name.get(name, 0) > seen for name in group.topic_names)

    def are_seen_by(self, group: SubscribedGroup) -> None:
        group.seen_topic_change = self._newest
