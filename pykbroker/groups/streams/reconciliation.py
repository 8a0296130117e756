"""One member's next step from the tasks that it has to those that it should have (KIP-1071).

First the member gives up the tasks that its target does not have, and stays in its epoch until it has confirmed that.
Then it goes to the target's epoch and gets the other tasks that are free. An active task is free when no process has
it, and the member's own process has it in no other role; a standby or warm-up task is free when the member's own
process does not have it in any role. The model is Kafka's `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from .streams_group import StreamsGroup
from .streams_group_member import (
    STABLE,
    UNKNOWN,
    UNRELEASED_TASKS,
    UNREVOKED_TASKS,
    StreamsGroupMember,
)
from .tasks import OwnedTasks, Tasks, TasksTuple


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The facts that decide one member's next step. owned: what the member reports, None where it reports nothing."""

    group: StreamsGroup
    member: StreamsGroupMember
    target_epoch: int
    target: TasksTuple
    owned: TasksTuple | None

    def next(self) -> StreamsGroupMember | None:
        """The member after its step, unchanged where it can take none yet; None where it has to start anew."""
        member = self.member
        if member.state is STABLE:
            return member if member.member_epoch == self.target_epoch else self._towards_target(member.member_epoch)
        if member.state is UNREVOKED_TASKS:
            if self._may_own_any(member.pending_revocation):
                return member
            return self._towards_target(member.member_epoch + 1)
        if member.state is UNKNOWN:
            if self.owned is None or not self.owned.is_empty:
                return None
            return self._towards_target(self.target_epoch)
        return self._towards_target(member.member_epoch)

    def _may_own_any(self, tasks: OwnedTasks) -> bool:
        """Tell whether the member still owns one of the tasks; a member that does not report may own them all."""
        return self.owned is None or self.owned.contains_any(tasks)

    def _towards_target(self, member_epoch: int) -> StreamsGroupMember:
        active = self._difference_of_active()
        standby = _Difference.of(self.member.assigned.standby, self.target.standby, self._is_kept)
        warmup = _Difference.of(self.member.assigned.warmup, self.target.warmup, self._is_kept)
        return self._after(member_epoch, active, standby, warmup)

    def _after(
        self, member_epoch: int, active: _ActiveDifference, standby: _Difference, warmup: _Difference
    ) -> StreamsGroupMember:
        """The member after it gave up what it has to give up, or after it got what is free."""
        revoked = OwnedTasks(active.revoked, standby.revoked, warmup.revoked)
        kept = OwnedTasks(active.kept, standby.kept, warmup.kept)
        if not revoked.is_empty and self._may_own_any(revoked):
            return self.member.in_epoch(member_epoch, UNREVOKED_TASKS, kept, revoked)
        state = UNRELEASED_TASKS if active.awaits or standby.awaits or warmup.awaits else STABLE
        gained = OwnedTasks(active.gained, standby.gained, warmup.gained)
        return self.member.in_epoch(self.target_epoch, state, kept.merged(gained))

    def _is_kept(self, subtopology_id: str, partition: int) -> bool:
        """Tell whether the member's own process has the task, in whichever role."""
        process_id = self.member.process_id
        return self.group.active_process(subtopology_id, partition) == process_id or self.group.keeps_task(
            subtopology_id, partition, process_id
        )

    def _is_active_elsewhere(self, subtopology_id: str, partition: int) -> bool:
        """Tell whether a process has the active task, or the member's own process has it in another role."""
        return self.group.active_process(subtopology_id, partition) is not None or self.group.keeps_task(
            subtopology_id, partition, self.member.process_id
        )

    def _difference_of_active(self) -> _ActiveDifference:
        difference = _ActiveDifference({}, {}, {}, awaits=False)
        for subtopology_id in dict.fromkeys([*self.target.active, *self.member.assigned.active]):
            target = self.target.active.get(subtopology_id, frozenset())
            current = self.member.assigned.active.get(subtopology_id, {})
            kept = {partition: epoch for partition, epoch in current.items() if partition in target}
            revoked = {partition: epoch for partition, epoch in current.items() if partition not in target}
            wanted = [partition for partition in target if partition not in kept]
            gained = [each for each in wanted if not self._is_active_elsewhere(subtopology_id, each)]
            difference.awaits |= len(gained) < len(wanted)
            for tasks, partitions in (
                (difference.kept, kept),
                (difference.revoked, revoked),
                (difference.gained, dict.fromkeys(gained, self.target_epoch)),
            ):
                if partitions:
                    tasks[subtopology_id] = partitions
        return difference


@dataclass(slots=True)
class _ActiveDifference:
    """Active tasks that stay, go and come. awaits: whether some of the target are not free yet."""

    kept: dict[str, dict[int, int]]
    revoked: dict[str, dict[int, int]]
    gained: dict[str, dict[int, int]]
    awaits: bool


@dataclass(slots=True)
class _Difference:
    """Standby or warm-up tasks that stay, go and come. awaits: whether some of the target are not free yet."""

    kept: dict[str, frozenset[int]]
    revoked: dict[str, frozenset[int]]
    gained: dict[str, frozenset[int]]
    awaits: bool

    @staticmethod
    def of(assigned: Tasks, target: Tasks, is_kept: Callable[[str, int], bool]) -> _Difference:
        difference = _Difference({}, {}, {}, awaits=False)
        for subtopology_id in dict.fromkeys([*target, *assigned]):
            wanted = target.get(subtopology_id, frozenset())
            current = assigned.get(subtopology_id, frozenset())
            new = wanted - current
            gained = frozenset(partition for partition in new if not is_kept(subtopology_id, partition))
            difference.awaits |= len(gained) < len(new)
            for tasks, partitions in (
                (difference.kept, current & wanted),
                (difference.revoked, current - wanted),
                (difference.gained, gained),
            ):
                if partitions:
                    tasks[subtopology_id] = partitions
        return difference


class ReconciliationOf44(Reconciliation):
    """The rules of Kafka 4.4, by which a member keeps a task's state while the task's role changes within it.

    An active task that becomes a standby task is one at once, while the member gives up the active one. A standby or
    warm-up task that becomes the other of the two does so at once. One that becomes active stays what it is until the
    active task is free.
    """

    def _towards_target(self, member_epoch: int) -> StreamsGroupMember:
        mine, target = self.member.assigned, self.target
        active = self._difference_of_active()
        standby = _Difference.of(mine.standby, target.standby, self._is_standby_elsewhere)
        warmup = _Difference.of(mine.warmup, target.warmup, self._is_warmup_elsewhere)
        _move(mine.active, standby, None)
        _move(mine.standby, warmup, standby)
        _move(mine.warmup, standby, warmup)
        for difference in (standby, warmup):
            _take(difference.revoked, target.active)
        revoked = OwnedTasks(active.revoked, standby.revoked, warmup.revoked)
        granted = {} if not revoked.is_empty and self._may_own_any(revoked) else active.gained
        for difference, tasks in ((standby, mine.standby), (warmup, mine.warmup)):
            for name, partitions in tasks.items():
                promoted = partitions & target.active.get(name, frozenset())
                _give(difference.kept, name, promoted.difference(granted.get(name, ())))
        return self._after(member_epoch, active, standby, warmup)

    def _is_held_elsewhere(self, subtopology_id: str, partition: int) -> bool:
        """Tell whether another member of the process has the task as standby or warm-up task."""
        mine = self.member.assigned
        is_mine = any(partition in tasks.get(subtopology_id, ()) for tasks in (mine.standby, mine.warmup))
        return not is_mine and self.group.keeps_task(subtopology_id, partition, self.member.process_id)

    def _is_active_elsewhere(self, subtopology_id: str, partition: int) -> bool:
        owner = self.group.active_process(subtopology_id, partition)
        return owner is not None or self._is_held_elsewhere(subtopology_id, partition)

    def _is_standby_elsewhere(self, subtopology_id: str, partition: int) -> bool:
        is_mine = partition in self.member.assigned.active.get(subtopology_id, ())
        owner = self.group.active_process(subtopology_id, partition)
        return (owner == self.member.process_id and not is_mine) or self._is_held_elsewhere(subtopology_id, partition)

    def _is_warmup_elsewhere(self, subtopology_id: str, partition: int) -> bool:
        owner = self.group.active_process(subtopology_id, partition)
        return owner == self.member.process_id or self._is_held_elsewhere(subtopology_id, partition)


def _move(tasks: Mapping[str, Collection[int]], to: _Difference, source: _Difference | None) -> None:
    """Let those of the member's tasks that it would get in another role have that role at once."""
    for name, partitions in tasks.items():
        moved = to.gained.get(name, frozenset()).intersection(partitions)
        if moved:
            _give(to.kept, name, moved)
            _take(to.gained, {name: moved})
            if source is not None:
                _take(source.revoked, {name: moved})


def _give(tasks: dict[str, frozenset[int]], name: str, partitions: frozenset[int]) -> None:
    if partitions:
        tasks[name] = tasks.get(name, frozenset()) | partitions


def _take(tasks: dict[str, frozenset[int]], taken: Tasks) -> None:
    for name in tasks.keys() & taken.keys():
        rest = tasks[name] - taken[name]
        if rest:
            tasks[name] = rest
        else:
            del tasks[name]
