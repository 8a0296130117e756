"""The sticky assignor of tasks (KIP-1071): tasks stay where they are, and processes get equal shares.

First each active task goes to the member that had it, then to one that had it as standby, as long as that member has
less than its share; the rest goes to the process with the least load. Standby tasks follow in the same way, never two
of one task in one process. The assignment is that of Kafka's `StickyTaskAssignor`, ties included: those are decided by
the orders of Java's tables and queues (`java_collections`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..assignors.order import java_order
from .java_collections import JavaPriorityQueue, in_table_order
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
    """A member as the assignor sees it: its process, and its part of the last target assignment."""

    process_id: str
    tasks: TasksTuple


def assign(
    members: Mapping[str, MemberTasks], subtopologies: Mapping[str, SubtopologyTasks], standby_replicas: int
) -> dict[str, TasksTuple]:
    """The new target assignment, with every member in it. members: at least one."""
    return _Assignment(members, subtopologies, standby_replicas).run()


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
        for member_id in in_table_order(members):
            self._add_member(member_id, members[member_id])
        self._ordered_processes = [
            self._processes[process_id] for process_id in in_table_order(self._processes, len(members))
        ]

    def _add_member(self, member_id: str, spec: MemberTasks) -> None:
        process = self._processes.setdefault(spec.process_id, _Process())
        member = self._members[member_id] = process.members[member_id] = _Member(member_id, process)
        for subtopology_id, partitions in spec.tasks.active.items():
            for partition in partitions:
                self._had_active[subtopology_id, partition] = member
        for subtopology_id, partitions in spec.tasks.standby.items():
            for partition in partitions:
                self._had_standby.setdefault((subtopology_id, partition), []).append(member)

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


def _load_of(process: _Process) -> float:
    return process.load


def _frozen(tasks: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {subtopology_id: frozenset(partitions) for subtopology_id, partitions in tasks.items()}
