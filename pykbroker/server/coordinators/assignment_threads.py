"""Threads compute the large target assignments of consumer, share and streams groups (KIP-1263).

All shards of a node share them: a task waits for its turn, is computed, and what came of it goes back to the shard that
wanted it, if that is still there. Kafka's counterpart is the executor of its `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from ..runtime.log_lines import printable
from ..runtime.signal import Signal
from ..runtime.threads import Threads

if TYPE_CHECKING:
    from pykbroker.groups.modern.assignment_tasks import AssignmentTask, ComputedAssignment, InBatches

    Task: TypeAlias = AssignmentTask[Any, Any]
    Computed: TypeAlias = ComputedAssignment[Any, Any]

_log = logging.getLogger(__name__)

SMALL: Final = 5_000
"""Members and partitions of a group whose assignment is no work for a thread: it takes some milliseconds."""
AT_ONCE: Final = 2
MOST_WAITING: Final = 16
"""Each holds what it needs to know of its group. Whoever comes then asks again with its next heartbeat."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    task: Task
    in_batches: InBatches
    put: Callable[[Computed], None]


class AssignmentThreads:
    """The threads compute some assignments at a time, in the order in which they are wanted."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._waiting: deque[_Wanted] = deque()
        self._more = Signal()

    @property
    def has_room(self) -> bool:
        return len(self._waiting) < MOST_WAITING

    def begin(
        self,
        task: Task,
        in_batches: InBatches,
        put: Callable[[Computed], None],
    ) -> None:
        """Begin with an assignment when its turn has come.

        in_batches: called in a thread with the records of the assignment. put: called on the event loop when all of it
        is there.
        """
        self._waiting.append(_Wanted(task, in_batches, put))
        self._more.set()

    async def run(self) -> None:
        """Compute what is wanted until it is cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._compute_all)

    async def _compute_all(self) -> None:
        while True:
            if self._waiting:
                await self._carry_out(self._waiting.popleft())
            else:
                await self._more.next()

    async def _carry_out(self, wanted: _Wanted) -> None:
        wanted.put(await self._compute(wanted))
        await self._threads.run(wanted.task.let_go)

    async def _compute(self, wanted: _Wanted) -> Computed:
        """A fault of an assignor concerns its group alone, which asks again."""
        task = wanted.task
        try:
            return await self._threads.run(task.run_in_thread, wanted.in_batches)
        except Exception:
            _log.exception("no assignment of group %s by %s", printable(task.group_id), task.assignor)
            return task.failed()


class ShardAssignments:
    """The assignments of one shard: a `pykbroker.groups.modern.assignment_tasks.AssignmentOffload`.

    encoding: gives what puts records into batches in a thread, of a size that the log takes now. put: what assignments
    go through.
    """

    def __init__(
        self,
        assignments: AssignmentThreads,
        encoding: Callable[[], InBatches],
        put: Callable[[Computed], None],
    ) -> None:
        self._assignments = assignments
        self._encoding = encoding
        self._put = put

    @property
    def has_room(self) -> bool:
        return self._assignments.has_room

    def begin(self, task: Task) -> None:
        self._assignments.begin(task, self._encoding(), self._put)
