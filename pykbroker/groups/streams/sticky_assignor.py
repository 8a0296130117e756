"""The sticky assignor of tasks (KIP-1071): tasks stay where they are, and processes get equal shares.

First each active task goes to the member that had it, then to one that had it as standby, as long as that member has
less than its share; the rest goes to the process with the least load. Standby tasks follow in the same way, never two
of one task in one process. The assignment is that of Kafka's `StickyTaskAssignor`, ties included: those are decided by
the orders of Java's tables and queues (`java_collections`).

Kafka 4.4 has other rules for standby tasks (KIP-1071): a member that tells how far it has a task's state is a candidate
for the task, too, behind those that had it as standby, and those with more of the state come first. Rack-aware
assignment tags change nothing in the assignments of Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..assignors.order import java_order
from .java_collections import JavaPriorityQueue, in_order_of_computed_table, in_table_order
from .tasks import TasksTuple

NAME: Final = "sticky"

_Task: TypeAlias = tuple[str, int]
"""Subtopology id and partition."""


@dataclass(frozen=True, slots=True)
class SubtopologyTasks:
    """A subtopology as the assignor sees it. is_stateful: whether it has changelogs, and may have standby tasks."""

    count: int
    is_stateful: bool


@dataclass(frozen=True, slots=True)
class MemberTasks:
    """A member as the assignor sees it.

    tasks: its part of the last target assignment; by the rules of Kafka 4.4 what it has. offsets: how much of a task's
    state the member has, by subtopology and partition, where it has told that.
    """

    process_id: str
    tasks: TasksTuple
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


def assign(
    members: Mapping[str, MemberTasks],
    subtopologies: Mapping[str, SubtopologyTasks],
    standby_replicas: int,
    *,
    is_of_4_4: bool = False,
) -> dict[str, TasksTuple]:
    """The new target assignment, with every member in it.

    members: at least one. is_of_4_4: whether the rules are those of Kafka 4.4, else those of 4.3.
    """
    return (_AssignmentOf44 if is_of_4_4 else _Assignment)(members, subtopologies, standby_replicas).run()


class _Member:
    __slots__ = ("active", "count", "member_id", "process", "standby")

    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.count = 0
        self.active: dict[str, set[int]] = {}
        self.standby: dict[str, set[int]] = {}


class _Process:
    """The members of one process. load: tasks by member."""

    __slots__ = ("_by_load", "_count", "load", "members", "tasks")

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.tasks: set[_Task] = set()
        self.load = 0.0
        self._count = 0
        self._by_load: JavaPriorityQueue[_Member] | None = None

    def add(self, member: _Member, task: _Task, *, is_active: bool) -> int:
        """Give the member the task. Returns how many tasks it has then."""
        self._by_load = None
        return self._add(member, task, is_active)

    def add_to_least_loaded(self, task: _Task, *, is_active: bool) -> int:
        if len(self.members) == 1:
            return self._add(next(iter(self.members.values())), task, is_active)
        if self._by_load is None:
            ordered = map(self.members.__getitem__, in_table_order(self.members))
            self._by_load = JavaPriorityQueue(lambda member: member.count, ordered)
        member = self._by_load.poll()
        count = self._add(member, task, is_active)
        self._by_load.add(member)
        return count

    def _add(self, member: _Member, task: _Task, is_active: bool) -> int:
        self.tasks.add(task)
        tasks = member.active if is_active else member.standby
        tasks.setdefault(task[0], set()).add(task[1])
        member.count += 1
        self._count += 1
        self.load = self._count / len(self.members)
        return member.count


class _Quota:
    """The share of each member: what is left, divided by the members that have not reached their share."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = 0
        self._divide()

    def note(self, count: int) -> None:
        """Note that a member has so many tasks now."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self._divide()

    def _divide(self) -> None:
        # Java's division goes towards zero, and its remainder is not above zero where the tasks are below it.
        quotient, rest = divmod(abs(self._tasks), self._members) if self._members else (0, 0)
        self.each = quotient + (rest > 0) if self._tasks >= 0 else -quotient


class _Assignment:
    def __init__(
        self, members: Mapping[str, MemberTasks], subtopologies: Mapping[str, SubtopologyTasks], standby_replicas: int
    ) -> None:
        self._subtopologies = subtopologies
        self._replicas = standby_replicas
        total_active = sum(each.count for each in subtopologies.values())
        total_standby = standby_replicas * sum(each.count for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(total_active, len(members))
        self._quota = _Quota(total_active + total_standby, len(members))
        self._processes: dict[str, _Process] = {}
        self._members: dict[str, _Member] = {}
        self._had_active: dict[_Task, _Member] = {}
        self._had_standby: dict[_Task, list[_Member]] = {}
        ordered = in_table_order(members)
        for member_id in ordered:
            self._add_member(member_id, members[member_id])
        processes = self._in_table_order([members[member_id].process_id for member_id in ordered])
        self._ordered_processes = [self._processes[process_id] for process_id in processes]

    def _in_table_order(self, process_ids: Sequence[str]) -> Sequence[str]:
        """The processes in the order of Java's table. process_ids: of each member."""
        return in_table_order(process_ids, len(process_ids))

    def _add_member(self, member_id: str, spec: MemberTasks) -> None:
        process = self._processes.setdefault(spec.process_id, _Process())
        member = self._members[member_id] = process.members[member_id] = _Member(member_id, process)
        for task in _each(spec.tasks.active):
            self._had_active[task] = member
        self._note_standby(member, spec)

    def _note_standby(self, member: _Member, spec: MemberTasks) -> None:
        for task in _each(spec.tasks.standby):
            self._had_standby.setdefault(task, []).append(member)

    def run(self) -> dict[str, TasksTuple]:
        self._assign_active()
        if self._replicas > 0:
            self._assign_standby()
        return {
            member_id: TasksTuple(_frozen(member.active), _frozen(member.standby))
            for member_id, member in self._members.items()
        }

    def _tasks(self, *, is_stateful: bool) -> list[_Task]:
        """All tasks, or those with state alone, by partition, and within it by subtopology."""
        names = [name for name, each in self._subtopologies.items() if each.is_stateful or not is_stateful]
        names.sort(key=java_order)
        most = max((self._subtopologies[name].count for name in names), default=0)
        counts = [(name, self._subtopologies[name].count) for name in names]
        return [(name, partition) for partition in range(most) for name, count in counts if partition < count]

    # Active tasks

    def _assign_active(self) -> None:
        rest = [task for task in self._tasks(is_stateful=False) if not self._stays(task, self._had_active.get(task))]
        rest = [task for task in rest if not self._stays(task, self._least_loaded(self._had_standby.get(task, ())))]
        rest.sort(key=lambda task: (java_order(task[0]), task[1]))
        queue = JavaPriorityQueue(_load_of, self._ordered_processes)
        for task in rest:
            process = queue.poll()
            self._note(process.add_to_least_loaded(task, is_active=True), is_active=True)
            queue.add(process)

    def _stays(self, task: _Task, member: _Member | None) -> bool:
        """Give the active task to the member if that has less than its share. Whether it did."""
        if member is None or member.count >= self._active_quota.each:
            return False
        self._note(member.process.add(member, task, is_active=True), is_active=True)
        return True

    def _note(self, count: int, *, is_active: bool) -> None:
        if is_active:
            self._active_quota.note(count)
        self._quota.note(count)

    def _least_loaded(self, members: Sequence[_Member], task: _Task | None = None) -> _Member | None:
        """The member with the least load, of process and member. task: that its process must not have.

        As in Kafka it is the process of the first member that must not have the task, whoever is chosen.
        """
        if not members:
            return None
        first = chosen = members[0]
        load, count = first.process.load, first.count
        for member in members[1:]:
            process = member.process
            if process.load < load and (task is None or task not in process.tasks) and member.count < count:
                chosen, load, count = member, process.load, member.count
        return chosen if task is None or task not in first.process.tasks else None

    # Standby tasks

    def _assign_standby(self) -> None:
        rest: list[tuple[_Task, int]] = []
        for task in reversed(self._tasks(is_stateful=True)):
            for number in range(self._replicas):
                if not self._stays_as_standby(task):
                    rest.append((task, self._replicas - number))
                    break
        rest.sort(key=lambda each: (java_order(each[0][0]), each[0][1]), reverse=True)
        queue = JavaPriorityQueue(_load_of, self._ordered_processes)
        for task, replicas in rest:
            for _ in range(replicas):
                if not self._add_to_least_loaded(queue, task):
                    break  # there are not enough processes for all replicas

    def _stays_as_standby(self, task: _Task) -> bool:
        """Give the standby task to a member that had the task. Whether it did."""
        member = self._had_active.get(task)
        if member is not None and task not in member.process.tasks and member.count < self._quota.each:
            self._note(member.process.add(member, task, is_active=False), is_active=False)
            return True
        member = self._least_loaded(self._had_standby.get(task, ()), task)
        if member is not None and member.count < self._quota.each:
            self._note(member.process.add(member, task, is_active=False), is_active=False)
            return True
        return False

    def _add_to_least_loaded(self, queue: JavaPriorityQueue[_Process], task: _Task) -> bool:
        """Give the standby task to the process with the least load among those without the task."""
        polled: list[_Process] = []
        is_found = False
        while queue and not is_found:
            process = queue.poll()
            polled.append(process)
            if task not in process.tasks:
                self._note(process.add_to_least_loaded(task, is_active=False), is_active=False)
                is_found = True
        for process in reversed(polled):
            queue.add(process)
        return is_found


class _AssignmentOf44(_Assignment):
    """The rules of Kafka 4.4 for members that had a task as standby, or tell how much of its state they have."""

    def __init__(
        self, members: Mapping[str, MemberTasks], subtopologies: Mapping[str, SubtopologyTasks], standby_replicas: int
    ) -> None:
        self._candidates: dict[_Task, list[tuple[bool, int, _Member]]] = {}
        super().__init__(members, subtopologies, standby_replicas)
        for task, candidates in self._candidates.items():
            candidates.sort(key=lambda each: each[:2])  # those that are equal stay in the order of the members
            self._had_standby[task] = [member for *_, member in candidates]

    def _in_table_order(self, process_ids: Sequence[str]) -> Sequence[str]:
        return in_order_of_computed_table(process_ids, len(process_ids))

    def _note_standby(self, member: _Member, spec: MemberTasks) -> None:
        standby = spec.tasks.standby
        for name, partition in _each(standby):
            offset = spec.offsets.get(name, {}).get(partition, 0)
            self._candidates.setdefault((name, partition), []).append((False, -offset, member))
        for name, offsets in spec.offsets.items():
            known = standby.get(name, frozenset())
            for partition, offset in offsets.items():
                if partition not in known:
                    self._candidates.setdefault((name, partition), []).append((True, -offset, member))

    def _least_loaded(self, members: Sequence[_Member], task: _Task | None = None) -> _Member | None:
        """The member with the least load, of process and member, whose process does not have the task."""
        chosen: _Member | None = None
        load, count = 0.0, 0
        for member in members:
            process = member.process
            if task is not None and task in process.tasks:
                continue
            if chosen is None or (process.load < load and member.count < count):
                chosen, load, count = member, process.load, member.count
        return chosen


def _each(tasks: Mapping[str, frozenset[int]]) -> Iterator[_Task]:
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield subtopology_id, partition


def _load_of(process: _Process) -> float:
    return process.load


def _frozen(tasks: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {subtopology_id: frozenset(partitions) for subtopology_id, partitions in tasks.items()}
