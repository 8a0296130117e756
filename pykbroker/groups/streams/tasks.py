"""Tasks of a streams group: sets of partitions by subtopology, active, standby and warm-up.

The models are Kafka's `TasksTuple` and `TasksTupleWithEpochs`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Subtopology id to partitions. No subtopology in it is without partitions."""

TasksWithEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""Subtopology id to partitions, each with the epoch in which it was assigned."""


class TaskIdsLike(Protocol):
    """The fields that all structs of task ids have."""

    subtopology_id: str
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class TasksTuple:
    """The tasks that a member should have, or says that it has."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def contains_any(self, other: OwnedTasks) -> bool:
        """Tell whether one of the other's tasks is among these, in the same role."""
        return (
            _intersect(self.active, other.active)
            or _intersect(self.standby, other.standby)
            or _intersect(self.warmup, other.warmup)
        )


@dataclass(frozen=True, slots=True)
class OwnedTasks:
    """The tasks that a member has, or must give up; active ones with the epochs in which they were assigned."""

    active: TasksWithEpochs = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def merged(self, other: OwnedTasks) -> OwnedTasks:
        active = {subtopology_id: dict(each) for subtopology_id, each in self.active.items()}
        for subtopology_id, each in other.active.items():
            active.setdefault(subtopology_id, {}).update(each)
        return OwnedTasks(active, _merged(self.standby, other.standby), _merged(self.warmup, other.warmup))


NO_TASKS: Final = TasksTuple()
NOTHING_OWNED: Final = OwnedTasks()


def tasks_of(task_ids: Iterable[TaskIdsLike]) -> dict[str, frozenset[int]]:
    """The tasks that structs name; those of one subtopology together."""
    tasks: dict[str, frozenset[int]] = {}
    for each in task_ids:
        if each.partitions:
            tasks[each.subtopology_id] = tasks.get(each.subtopology_id, frozenset()).union(each.partitions)
    return tasks


def in_order(tasks: Mapping[str, Collection[int]]) -> Sequence[tuple[str, list[int]]]:
    """Subtopologies in the order of the alphabet with their partitions, sorted: records and descriptions say it so."""
    return [(subtopology_id, sorted(tasks[subtopology_id])) for subtopology_id in sorted(tasks)]


def _intersect(tasks: Tasks, others: Mapping[str, Collection[int]]) -> bool:
    return any(not partitions.isdisjoint(others.get(name, ())) for name, partitions in tasks.items())


def _merged(some: Tasks, more: Tasks) -> dict[str, frozenset[int]]:
    return {name: _get(some, name) | _get(more, name) for name in dict.fromkeys([*some, *more])}


def _get(tasks: Tasks, name: str) -> frozenset[int]:
    return tasks.get(name, frozenset())
