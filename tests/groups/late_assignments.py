"""Assignments that are computed beside the event loop: they are there some time after they were wanted, or never."""

from __future__ import annotations

from random import Random

from pykbroker.groups.assignment_tasks import AssignmentTask, ComputedAssignment

MOST_WAITING = 3


class LateAssignments:
    """A `pykbroker.groups.assignment_tasks.AssignmentOffload`."""

    def __init__(self, rng: Random | None = None) -> None:
        self._rng = rng
        self.tasks: list[AssignmentTask] = []

    @property
    def has_room(self) -> bool:
        return len(self.tasks) < MOST_WAITING

    def begin(self, task: AssignmentTask) -> None:
        self.tasks.append(task)

    def done(self) -> list[ComputedAssignment]:
        """Those that are there by now: all, or what chance says."""
        is_done = [self._rng is None or self._rng.random() < 0.5 for _ in self.tasks]
        done = [task for task, is_it in zip(self.tasks, is_done, strict=True) if is_it]
        self.tasks = [task for task in self.tasks if task not in done]
        return [task.run_in_thread() for task in done]
