"""Assignments that are computed beside the event loop: they are there some time after they were wanted, or never."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from pykbroker.groups.common.records import EncodedRecord
from pykbroker.groups.consumer.assignment_tasks import AssignmentTask, ComputedAssignment
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.server.coordinators.coordinator_log import encode_batches
from pykbroker.state_machine import Result

MOST_WAITING = 3
_BATCH_BYTES = 400
"""For two or three records."""


def written(result: Result[Any]) -> list[tuple[bytes, bytes | None]]:
    """Everything that a step appends, in the order of the log."""
    records = [each for data in result.prepared for batch in iter_batches(data) for each in iter_records(batch)]
    prepared = [(each.key, each.value) for each in records if each.key is not None]
    return [*prepared, *(record.encode() for record in result.records)]


def _in_batches(records: Sequence[EncodedRecord]) -> Sequence[bytes]:
    return encode_batches([records], 1, _BATCH_BYTES) if records else ()


class LateAssignments:
    """A `pykbroker.groups.consumer.assignment_tasks.AssignmentOffload`."""

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
        computed = [task.run_in_thread(_in_batches) for task in done]
        for task in done:
            task.let_go()
        return computed
