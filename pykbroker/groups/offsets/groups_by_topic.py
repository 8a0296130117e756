"""The groups that have offsets of a topic, committed or pending, so that a deleted topic's offsets are found."""

from __future__ import annotations

from collections.abc import Collection, Iterator


class GroupsByTopic:
    """The counter of how often, for each topic, a group was added and not removed since."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, int]] = {}

    def add(self, topic: str, group_id: str) -> None:
        groups = self._groups.setdefault(topic, {})
        groups[group_id] = groups.get(group_id, 0) + 1

    def remove(self, topic: str, group_id: str) -> None:
        groups = self._groups[topic]
        groups[group_id] -= 1
        if not groups[group_id]:
            del groups[group_id]
            if not groups:
                del self._groups[topic]

    def topics_among(self, names: Collection[str]) -> Iterator[str]:
        """The topics that have offsets, in the order of `names`."""
        return (name for name in names if name in self._groups)

    def groups_of(self, topic: str) -> Collection[str]:
        return self._groups.get(topic, {}).keys()
