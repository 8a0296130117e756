"""Log loading opens the logs that a node found at its start: several at a time, in threads (`LogManager.loadLogs`).

After a clean shutdown that is a look at each; after a crash whatever was not flushed is read and checked, which may
take a while. How far it has come is told to `on_loading`, or else to the log. Nothing is served meanwhile. Later the
logs of new partitions are made in the same way: files are what takes the time, and others want answers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.log import LogConfig
from pykbroker.storage.log.recovery_progress import RecoveryProgress, RecoveryStopped

from ..runtime.clock import Clock
from ..runtime.threads import Threads
from .hosted_logs import HostedLogs

logger = logging.getLogger(__name__)

SILENT_S = 1.0
"""A start that takes no longer is not talked about."""
LINE_INTERVAL_S = 5.0
WATCHER_INTERVAL_S = 0.1
_MEASURED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class LogToOpen:
    """A log to open belongs to a partition of this node and stands in `directory`, or is to be made there."""

    directory: LogDirectory
    at: TopicPartition
    topic_id: bytes
    config: LogConfig


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """The progress of a load counts logs and bytes.

    bytes_to_check: of the logs that were not closed cleanly, as far as that is known by now.
    """

    logs: int
    logs_opened: int
    bytes_to_check: int
    bytes_checked: int

    @property
    def is_done(self) -> bool:
        return self.logs_opened == self.logs

    def __str__(self) -> str:
        opened = f"opened {self.logs_opened} of {self.logs} logs"
        if not self.bytes_to_check:
            return opened
        left = max(self.bytes_to_check - self.bytes_checked, 0)
        return f"{opened}, {_megabytes(self.bytes_checked)} checked, {_megabytes(left)} to check"


OnLoading = Callable[[LoadProgress], None]


class LogLoading:
    """The loading opens logs in threads.

    on_loading: told every moment from the first second on, and when the load is done; else the log gets lines.
    """

    def __init__(
        self,
        logs: HostedLogs,
        *,
        clock: Clock,
        threads: Threads,
        threads_per_directory: int,
        on_loading: OnLoading | None = None,
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._threads = threads
        self.threads_per_directory = threads_per_directory
        self._on_loading = on_loading
        self._is_stopped = False
        self._queues: dict[LogDirectory, deque[LogToOpen]] = {}
        self._count = 0
        self._opened: list[LogToOpen] = []
        self._progress: dict[TopicPartition, RecoveryProgress] = {}
        self._measured: dict[TopicPartition, int] = {}

    async def load(self, logs: Sequence[LogToOpen]) -> None:
        """Open the logs of a start: return when all are open or known to be unusable, and say how
        far it is meanwhile.
        """
        started_ms = self._clock.monotonic_ms()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report)
            await self.open_all(logs)
            nursery.cancel_scope.cancel()
        self._report_end(self._clock.monotonic_ms() - started_ms)

    async def open_all(self, logs: Sequence[LogToOpen]) -> None:
        """Several at a time. Where it is cancelled, recovery ends where it is."""
        self._is_stopped = False
        self._count, self._opened, self._progress, self._measured = len(logs), [], {}, {}
        self._queues = {}
        for each in logs:
            self._queues.setdefault(each.directory, deque()).append(each)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_when_cancelled)
            async with trio.open_nursery() as workers:
                for queue in self._queues.values():
                    for _ in range(min(self.threads_per_directory, len(queue))):
                        workers.start_soon(self._threads.run, self._work_off, queue)
            nursery.cancel_scope.cancel()
        self._measured = {}  # all are begun

    def _report_end(self, took_ms: int) -> None:
        if self._on_loading is not None:
            self._on_loading(self._state())
        if took_ms >= SILENT_S * 1000:
            logger.info("%s after %.1f s", self._state(), took_ms / 1000)

    def _work_off(self, queue: deque[LogToOpen]) -> None:
        """Open logs in a thread; other threads take from the same queue."""
        while not self._is_stopped:
            try:
                found = queue.popleft()
            except IndexError:
                return
            progress = self._progress[found.at] = RecoveryProgress(self._stopped)
            try:
                self._logs.load(found.directory, found.at, found.topic_id, found.config, progress)
            except RecoveryStopped:
                return
            self._opened.append(found)

    def _stopped(self) -> bool:
        return self._is_stopped

    async def _stop_when_cancelled(self) -> None:
        """Stop the threads when the load is cancelled: what runs in a thread cannot be cancelled, it has to look."""
        try:
            await trio.sleep_forever()
        finally:
            self._is_stopped = True

    # Progress

    async def _report(self) -> None:
        await trio.sleep(SILENT_S)
        await self._measure()
        while True:
            if self._on_loading is not None:
                self._on_loading(self._state())
                await trio.sleep(WATCHER_INTERVAL_S)
            else:
                logger.info("%s", self._state())
                await trio.sleep(LINE_INTERVAL_S)

    async def _measure(self) -> None:
        """Return how much there is to check in the logs that nobody has begun with."""
        unclean = [queue for directory, queue in self._queues.items() if not directory.was_clean_shutdown]
        for number, found in enumerate(each for queue in unclean for each in list(queue)):
            if number % _MEASURED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            try:
                self._measured[found.at] = found.directory.bytes_to_check(found.at)
            except FileError:
                continue  # whoever opens the log will say so

    def _state(self) -> LoadProgress:
        # Copies: threads go on meanwhile.
        begun = self._progress.copy()
        measured = sum(size for at, size in self._measured.items() if at not in begun)
        return LoadProgress(
            logs=self._count,
            logs_opened=len(self._opened),
            bytes_to_check=measured + sum(each.bytes_to_check for each in begun.values()),
            bytes_checked=sum(each.bytes_checked for each in begun.values()),
        )


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
