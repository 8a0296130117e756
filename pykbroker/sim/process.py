"""The tasks of one simulated process, which can be stopped as by SIGSTOP: nothing of it runs, its threads included.

Its clocks go on, its connections stay, what it is sent waits in its buffers, and whoever connects is accepted by its
machine. When it goes on, all timers that have run out meanwhile do so at once.
"""

from __future__ import annotations

from contextvars import ContextVar

import trio

from .determinism import run_queue

_process: ContextVar[SimulatedProcess | None] = ContextVar("process", default=None)


class ProcessDied(BaseException):
    """The death of the process, which is no `Exception`: no process lives to handle its own death."""


class SimulatedProcess(trio.abc.Instrument):
    """The tasks that descend from the one that called `begin`."""

    def __init__(self) -> None:
        self._held: list[trio.lowlevel.Task] = []
        self.is_paused = False

    def begin(self) -> None:
        """The current task and its children are the process."""
        _process.set(self)

    def pause(self) -> None:
        """Pause the process at the end of the scheduler's turn. It must go on before its nursery can end."""
        assert not self.is_paused, "it is paused already"
        self.is_paused = True
        queue = run_queue()
        self._held = [task for task in queue if self._owns(task)]
        for task in self._held:
            queue.remove(task)
        trio.lowlevel.add_instrument(self)

    def resume(self) -> None:
        if self.is_paused:
            self.is_paused = False
            trio.lowlevel.remove_instrument(self)
            run_queue().extend(self._held)
            self._held = []

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        if self._owns(task):
            scheduled = run_queue().pop()
            assert scheduled is task, "Trio appends to its queue before it tells"
            self._held.append(task)

    def _owns(self, task: trio.lowlevel.Task) -> bool:
        return task.context.get(_process) is self
