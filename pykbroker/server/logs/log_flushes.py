"""One flush of a log at a time runs, and serves everybody whose records were there when it began: group commit.

A caller that comes while one is under way waits for its end, and where that did not cover its records, for the next
one. However many wait for a log, there is one flush that runs and at most one that is wanted. Where many logs are
wanted at the same time they share threads: handing work to one costs as much as the sync itself. What `flush.messages`
wants on the disk is below the high watermark only after its flush (`Partition.maybe_increment_high_watermark`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice

import trio

from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.log import Log

from ..runtime.histogram import Histogram
from ..runtime.threads import Threads

_MOST_JOBS = 4
"""Threads that sync at the same time: a file system makes one commit of several syncs, and others need threads too."""


class _Flush:
    """A flush is waited for by everybody who wants it. failure: why nobody should try at once to do better."""

    __slots__ = ("done", "failure")

    def __init__(self) -> None:
        self.done = trio.Event()
        self.failure: FileError | None = None


class LogFlushes:
    """The log flushes of a node run in a few threads.

    on_failure, on_success: told once for each flush what became of it, before anybody who waits for it goes on.
    """

    def __init__(
        self,
        threads: Threads,
        on_failure: Callable[[Log, FileError], None],
        on_success: Callable[[Log], None] = lambda log: None,
    ) -> None:
        self._threads = threads
        self._on_failure = on_failure
        self._on_success = on_success
        self._wanted: dict[Log, _Flush] = {}
        self._running: dict[Log, _Flush] = {}
        self._free_jobs = trio.Semaphore(_MOST_JOBS)
        self.times = Histogram()
        """How long flushes took, failed ones included."""

    async def flush(self, log: Log, end_offset: int) -> bool:
        """Tell whether everything that is below `end_offset` at the call is durable; else it cannot be now.

        A truncation meanwhile may have taken it, and others may have appended there since: then nothing is known.
        """
        truncations = log.truncations
        while log.truncations == truncations and not log.is_closed:
            if log.recovery_point >= end_offset:
                return True
            if log.log_end_offset < end_offset:
                break
            flush = self._running.get(log) or self._wanted.get(log)
            if flush is None:
                flush = self._wanted[log] = _Flush()
                await self._see_to(log, flush)
            await flush.done.wait()
            if flush.failure is not None:
                break
        return log.truncations == truncations and log.recovery_point >= end_offset

    async def _see_to(self, log: Log, flush: _Flush) -> None:
        """Return when the flush is under way: in a job of this task, or in that of another one that was earlier."""
        try:
            await self._acquire_job()
            try:
                if self._wanted.get(log) is flush:
                    await self._run_job()
            finally:
                self._free_jobs.release()
        finally:
            if self._wanted.get(log) is flush:  # the task was cancelled before its turn
                del self._wanted[log]
                flush.done.set()

    async def _acquire_job(self) -> None:
        try:
            self._free_jobs.acquire_nowait()  # without a checkpoint, in which others would take the other jobs
        except trio.WouldBlock:
            await self._free_jobs.acquire()

    async def _run_job(self) -> None:
        """One log where threads are free, and its share of all that are wanted where they are not."""
        free = self._free_jobs.value + 1
        job = dict(islice(self._wanted.items(), -(-len(self._wanted) // free)))
        for log in job:
            del self._wanted[log]
        self._running |= job
        try:
            failures, times_ns = await self._threads.run(_flush_all, list(job))
            for time_ns in times_ns:
                self.times.record(time_ns)
            for log, failure in failures:
                job[log].failure = failure
                self._on_failure(log, failure)
            for log, flush in job.items():
                if flush.failure is None:
                    self._on_success(log)
        finally:
            for log, flush in job.items():
                del self._running[log]
                flush.done.set()


def _flush_all(logs: Sequence[Log]) -> tuple[list[tuple[Log, FileError]], list[int]]:
    """Return what failed, and how long each flush took."""
    failures, times_ns = [], []
    for log in logs:
        began_ns = time.perf_counter_ns()
        try:
            log.flush()
        except FileError as failure:
            failures.append((log, failure))
        times_ns.append(time.perf_counter_ns() - began_ns)
    return failures, times_ns
