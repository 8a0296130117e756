"""Which groups have to look at their topics again: noted by topic, and looked up by a group with its next heartbeat.

So a change costs nothing for the groups that it may concern, of which there may be a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Collection

from .consumer_group import ConsumerGroup

MOST_NOTED = 10_000
"""Names of topics. Where there are more, every group looks again."""


class TopicChanges:
    """Each change has a number; a group keeps the number of the newest one when it looked."""

    def __init__(self) -> None:
        self._newest = 1
        self._newest_of_all = 1
        self._newest_by_name: dict[str, int] = {}

    def note(self, names: Collection[str]) -> None:
        self._newest += 1
        self._newest_by_name.update(dict.fromkeys(names, self._newest))
        if len(self._newest_by_name) > MOST_NOTED:
            self._forget_names()

    def note_all(self) -> None:
        """Every topic may be another."""
        self._newest += 1
        self._forget_names()

    def _forget_names(self) -> None:
        self._newest_of_all = self._newest
        self._newest_by_name.clear()

    def concern(self, group: ConsumerGroup) -> bool:
        """Whether the group's topics have changed since it looked at them, if it ever did."""
        seen = group.seen_topic_change
        if seen == self._newest:
            return False
        return seen < self._newest_of_all or any(self._newest_by_name.get(name, 0) > seen for name in group.topic_names)

    def are_seen_by(self, group: ConsumerGroup) -> None:
        group.seen_topic_change = self._newest
