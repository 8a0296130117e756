"""The loop monitor tells who held the event loop: it knows the CPU of each step of a task, and writes a line for a step
that took too long.

Everything of a node runs on one loop, so a task that computes for long stops all clients. The monitor is an instrument
of Trio and is called before each step: it reads the wall clock, and the thread's CPU time only when a millisecond has
passed since it read that last. So a step's CPU is known to a millisecond, for a microsecond a step. What is waited for,
or lost to other threads, does not count; a pass of the garbage collector does, and is named.

`logging_holds` warns of steps above `PYKBROKER_LOOP_BOUND_MS` (100), with the task, the request and its client. A test
fails whose loop was held for more than 250 ms (`tests/loops.py`, `compat_tests/loop_holds.py`).

A step is reported when the next one begins. `REQUESTER` names the connection for whose request a task works: the tasks
that a handler starts inherit it.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import trio

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.framing import RequestHeader

from .clock import Clock
from .histogram import Histogram
from .log_lines import RateLimitedLog, printable

_log = logging.getLogger(__name__)

BOUND_VARIABLE = "PYKBROKER_LOOP_BOUND_MS"
DEFAULT_BOUND_MS = 100.0
_LOOK_EVERY_S = 0.001
_SHORT_ROUND_S = 0.000125


class Requester(Protocol):
    """The requester is a connection, as far as it says whose request is in hand."""

    @property
    def client_address(self) -> str: ...
    @property
    def request(self) -> RequestHeader | None: ...


REQUESTER: ContextVar[Requester | None] = ContextVar("REQUESTER", default=None)


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold is one step of a task that took longer than the bound."""

    task: str
    request: str
    cpu_ms: float
    collecting_ms: float
    """The share of the garbage collector."""

    def __str__(self) -> str:
        collecting = f", {self.collecting_ms:.0f} ms of it garbage collection" if self.collecting_ms >= 1 else ""
        return f"{self.task}{self.request} held the event loop for {self.cpu_ms:.0f} ms of CPU{collecting}"


class LoopMonitor(trio.abc.Instrument):
    """The monitor calls `on_hold` on the loop, once for each step above `bound_ms`. `watching` installs it."""

    def __init__(
        self,
        bound_ms: float,
        on_hold: Callable[[Hold], None],
        *,
        wall_s: Callable[[], float] = time.perf_counter,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._bound_s = bound_ms / 1000
        self._on_hold = on_hold
        self._wall_s = wall_s
        self._cpu_s = cpu_s
        self._task: trio.lowlevel.Task | None = None
        self._thread = 0
        self._wall_read_s = 0.0
        self._cpu_read_s = 0.0
        self._collecting_since_s = 0.0
        self._collecting_s = 0.0
        self._round_began_s = 0.0
        self.holds = 0
        self.longest: Hold | None = None
        self.rounds = Histogram()
        """How long the loop was busy between two looks at its sockets and timers, where that was more than an eighth of
        a millisecond: whoever comes meanwhile waits. short_rounds, short_rounds_s: the others."""
        self.short_rounds, self.short_rounds_s = 0, 0.0
        self.collected_s = 0.0
        """CPU of the garbage collector in the loop's thread."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the loop of the running Trio program from now on."""
        self._thread = threading.get_ident()
        self._task = trio.lowlevel.current_task()
        self._wall_read_s, self._cpu_read_s = self._wall_s(), self._cpu_s()
        trio.lowlevel.add_instrument(self)
        gc.callbacks.append(self._note_collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._note_collection)
            trio.lowlevel.remove_instrument(self)
            self._look(self._wall_s())

    def after_io_wait(self, timeout: float) -> None:
        self._round_began_s = self._wall_s()

    def before_io_wait(self, timeout: float) -> None:
        took_s = self._wall_s() - self._round_began_s
        if took_s < _SHORT_ROUND_S:  # nearly all of them
            self.short_rounds += 1
            self.short_rounds_s += took_s
        elif self._round_began_s:
            self.rounds.record(int(took_s * 1e9))

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        now_s = self._wall_s()
        if now_s - self._wall_read_s > _LOOK_EVERY_S:
            self._look(now_s)
        self._task = task

    def _look(self, now_s: float) -> None:
        cpu_s = self._cpu_s()
        used_s, collecting_s = cpu_s - self._cpu_read_s, self._collecting_s
        self._wall_read_s, self._cpu_read_s, self._collecting_s = now_s, cpu_s, 0.0
        task = self._task
        if task is None:
            return
        if self.longest is None or used_s * 1000 > self.longest.cpu_ms or used_s > self._bound_s:
            hold = Hold(task.name, _request_of(task), used_s * 1000, collecting_s * 1000)
            if self.longest is None or hold.cpu_ms > self.longest.cpu_ms:
                self.longest = hold
            if used_s > self._bound_s:
                self.holds += 1
                self._on_hold(hold)

    def _note_collection(self, phase: str, _info: dict[str, int]) -> None:
        """Note a collection, in whichever thread set it off; another thread's CPU is not the loop's."""
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting_since_s = self._cpu_s()
        else:
            took_s = self._cpu_s() - self._collecting_since_s
            self._collecting_s += took_s
            self.collected_s += took_s


@contextmanager
def logging_holds(clock: Clock) -> Iterator[LoopMonitor]:
    """Watch the running loop, with a line for each hold and one with the longest at the end; yields the monitor.

    Lines have a limit, but a hold that is longer than all before it is told in any case.
    """
    lines = RateLimitedLog(_log, clock)

    def tell(hold: Hold) -> None:
        warn = _log.warning if hold is monitor.longest else lines.warning
        warn("%s", hold)

    monitor = LoopMonitor(bound_ms(), tell)
    try:
        with monitor.watching():
            yield monitor
    finally:
        _log.info("longest step: %s; %d were above %g ms", monitor.longest, monitor.holds, bound_ms())


def bound_ms() -> float:
    """Return the bound from the environment: tests ask for less than an operator wants to be told."""
    return float(os.environ.get(BOUND_VARIABLE, DEFAULT_BOUND_MS))


def _request_of(task: trio.lowlevel.Task) -> str:
    requester = task.context.get(REQUESTER)
    if requester is None:
        return ""
    request = requester.request
    if request is None:
        return f" of {requester.client_address}"
    name = api_name(request.api_key)
    client = printable(request.client_id)
    return f" with {name} version {request.api_version} of client {client} at {requester.client_address}"
