"""The upkeep of a node's logs happens by time: flushes, checkpoints, retention, the removal of what was deleted.

Whatever waits for the disk runs in threads, so that no request does; no task wakes up where nothing is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TypeVarTuple, Unpack

import trio

from pykbroker.config import BrokerConfig
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.log_config import MAX_LONG

from ..runtime.clock import Clock
from ..runtime.recurring_step import RecurringStep
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from ..runtime.time_scopes import BY_THE_CLOCK, TimeScopes
from .full_directories import FullDirectories
from .hosted_logs import HostedLogs
from .log_flushes import LogFlushes

Ts = TypeVarTuple("Ts")
HighWatermarks = Callable[[LogDirectory], dict[TopicPartition, int]]
OnNewStart = Callable[[TopicPartition, Log], None]

_FLUSHED_AT_ONCE = 64
"""Of all that are due: thousands, when a node starts. They share threads (`log_flushes`)."""
_RETRY_FLUSHING_S = 1


class LogUpkeep:
    """The upkeep does for all hosted logs what their settings and the broker's ask for by time.

    high_watermarks: what a directory's checkpoint is to hold. on_failure: told what became of a directory.
    on_new_start: told of a log that begins later than before. time: how late it is for retention and for producer ids.
    """

    def __init__(
        self,
        config: BrokerConfig,
        logs: HostedLogs,
        *,
        clock: Clock,
        threads: Threads,
        flushes: LogFlushes,
        full: FullDirectories,
        high_watermarks: HighWatermarks,
        on_failure: Callable[[LogDirectory, FileError], None],
        on_new_start: OnNewStart,
        time: TimeScopes = BY_THE_CLOCK,
    ) -> None:
        self._config = config
        self._logs = logs
        self._clock = clock
        self._threads = threads
        self._flushes = flushes
        self._full = full
        self._high_watermarks = high_watermarks
        self._on_failure = on_failure
        self._on_new_start = on_new_start
        self._written_high_watermarks: dict[str, Mapping[TopicPartition, int]] = {}
        self._flushed_ms: dict[Log, int] = {}
        self._checkpointing = trio.Lock()
        self._to_flush: dict[Log, None] = {}
        self._has_to_flush = Signal()
        self._time = time
        self.retention = RecurringStep(self._delete_old_segments)
        self.producer_expiry = RecurringStep(self._expire_producers)

    async def run(self) -> None:
        """Look after the logs until the surrounding scope is cancelled."""
        async with trio.open_nursery() as nursery:
            for key, step in (
                ("log.flush.offset.checkpoint.interval.ms", RecurringStep(self.checkpoint_recovery_points)),
                ("log.flush.start.offset.checkpoint.interval.ms", RecurringStep(self._checkpoint_log_start_offsets)),
                ("replica.high.watermark.checkpoint.interval.ms", RecurringStep(self.checkpoint_high_watermarks)),
                ("producer.id.expiration.check.interval.ms", self.producer_expiry),
                ("log.retention.check.interval.ms", self.retention),
            ):
                nursery.start_soon(self._every, max(self._config.int(key), 1), step)
            nursery.start_soon(self._flush_what_is_due, nursery)
            await self._when_due()

    def begun(self, log: Log) -> None:
        """Flush a log that has its first records. Without the names of its directory and files, and its topic's id, a
        power cut would take everything that comes before the first flush, which may be far away.
        """
        self.flush_soon(log)

    def flush_soon(self, log: Log) -> None:
        """Flush the log soon. Where `flush.messages` wants its records on the disk, the flush is tried again until they
        are: readers wait for that.
        """
        self._to_flush[log] = None
        self._has_to_flush.set()

    async def _flush_what_is_due(self, retrying: trio.Nursery) -> None:
        while True:
            await self._has_to_flush.wait()
            due, self._to_flush = iter(self._to_flush), {}
            while some := list(islice(due, _FLUSHED_AT_ONCE)):
                async with trio.open_nursery() as nursery:
                    for log in some:
                        nursery.start_soon(self._flush_due, log, retrying)

    async def _flush_due(self, log: Log, retrying: trio.Nursery) -> None:
        end_offset = log.log_end_offset
        await self._flushes.flush(log, end_offset)
        if log.lacks_flush(end_offset) and not log.is_closed:
            retrying.start_soon(self._flush_later, log)

    async def _flush_later(self, log: Log) -> None:
        await trio.sleep(_RETRY_FLUSHING_S)
        self.flush_soon(log)

    async def _every(self, interval_ms: int, step: RecurringStep) -> None:
        """Repeat the step: for the first time after `log.initial.task.delay.ms` at the latest, when a start has
        settled.
        """
        first_ms = min(self._config.int("log.initial.task.delay.ms"), interval_ms)
        await step.run(first_ms / 1000, interval_ms / 1000)

    async def _when_due(self) -> None:
        while True:
            self._logs.settings_changed.clear()
            now_ms = self._clock.monotonic_ms()
            next_ms = min(await self._remove_deleted(now_ms), await self._flush_by_time(now_ms))
            await self._logs.settings_changed.wait(max(next_ms - self._clock.monotonic_ms(), 0) / 1000)

    async def _remove_deleted(self, now_ms: int) -> float:
        """Return when to look again."""
        logs = self._logs
        due = [each for each in logs.deletions if each.due_ms <= now_ms]
        logs.deletions = [each for each in logs.deletions if each.due_ms > now_ms]
        for deletion in due:
            await self._in_thread(deletion.directory, deletion.directory.remove_deleted, deletion.paths)
        return min((each.due_ms for each in logs.deletions), default=math.inf)

    async def _flush_by_time(self, now_ms: int) -> float:
        """`flush.ms` of each log that has one; Kafka's default is to leave it to the operating system."""
        next_ms = math.inf
        flushed_before = self._flushed_ms
        self._flushed_ms = {}
        for log in self._logs:
            interval_ms = log.config.flush_ms
            if interval_ms == MAX_LONG:
                continue
            flushed_ms = flushed_before.get(log, now_ms)
            if now_ms - flushed_ms >= interval_ms and log.unflushed_messages:
                await self._flushes.flush(log, log.log_end_offset)
                flushed_ms = now_ms
            elif not log.unflushed_messages:
                flushed_ms = now_ms
            self._flushed_ms[log] = flushed_ms
            next_ms = min(next_ms, flushed_ms + max(interval_ms, 1))
        return next_ms

    async def _delete_old_segments(self) -> None:
        for directory in list(self._logs.directories):
            high_watermarks = self._high_watermarks(directory)
            for at, log in directory.logs.copy().items():
                await trio.lowlevel.checkpoint()  # there may be thousands, and others wait for their answers
                if log.is_closed or at not in high_watermarks:
                    continue
                start = log.log_start_offset
                try:
                    if not await self._confirm_timestamps(log):
                        continue
                    if not await self._prepare_deletion(log, high_watermarks[at]):
                        continue
                    if directory not in self._logs.directories:
                        continue
                    now_ms = self._retention_now_ms(log)
                    self._logs.put_old_segments_aside(directory, log, high_watermarks[at], now_ms)
                    if log.log_start_offset > start:
                        self._on_new_start(at, log)
                except FileError as failure:
                    self._on_failure(directory, failure)
                    if directory not in self._logs.directories:
                        break

    def _retention_now_ms(self, log: Log) -> int:
        return self._time.retention(self._clock.now_ms(), log.config.retention_ms)

    async def _confirm_timestamps(self, log: Log) -> bool:
        """Tell whether the log is as it was: else it is looked at the next time. Raises `FileError`."""
        confirmation = log.timestamps_to_confirm(self._retention_now_ms(log))
        if confirmation is None:
            return True
        try:
            await self._threads.run(confirmation.read)
        except FileError:
            if confirmation.is_overtaken:
                return False
            raise
        if confirmation.is_overtaken:
            return False
        confirmation.apply()
        return True

    async def _prepare_deletion(self, log: Log, high_watermark: int) -> bool:
        """Tell whether the log is as it was: else it is looked at the next time. Raises `FileError`."""
        if not log.prepare_deletion(high_watermark, self._retention_now_ms(log)):
            return True
        truncations = log.truncations
        await self._threads.run(log.make_names_durable)
        return not log.is_closed and log.truncations == truncations

    async def checkpoint_recovery_points(self) -> None:
        """Segments that are full are flushed first, so that recovery has to look at one segment of a log at most."""
        for log in self._logs:
            if log.recovery_point < log.segments[-1].base_offset:
                await self._flushes.flush(log, log.log_end_offset)
        for directory in list(self._logs.directories):
            await self._in_thread(directory, directory.checkpoint_recovery_points)

    async def _checkpoint_log_start_offsets(self) -> None:
        for directory in list(self._logs.directories):
            await self.checkpoint_log_start_offsets(directory)

    async def checkpoint_log_start_offsets(self, directory: LogDirectory) -> None:
        """One at a time: a client's deletion of records does not wait for the next interval."""
        async with self._checkpointing:
            if directory in self._logs.directories:
                await self._in_thread(directory, directory.checkpoint_log_start_offsets)

    async def checkpoint_high_watermarks(self) -> None:
        for directory in list(self._logs.directories):
            current = self._high_watermarks(directory)
            if self._written_high_watermarks.get(directory.path) != current and await self._in_thread(
                directory, directory.checkpoint_high_watermarks, current, directory.lowerings
            ):
                self._written_high_watermarks[directory.path] = current
                if self._full:
                    # Other steps may have had nothing to write.
                    self._full.written(directory.path)

    async def _expire_producers(self) -> None:
        expiration_ms = self._logs.producer_id_expiration_ms
        now_ms = self._time.producers(self._clock.now_ms(), expiration_ms)
        for log in self._logs:
            log.producers.expiration_ms = expiration_ms
            log.remove_expired_producers(now_ms)

    async def _in_thread(self, directory: LogDirectory, step: Callable[[Unpack[Ts]], object], *args: *Ts) -> bool:
        """Tell whether it was done. What found no room is tried again at the next interval."""
        try:
            await self._threads.run(step, *args)
        except FileError as failure:
            self._on_failure(directory, failure)
            return False
        return True
