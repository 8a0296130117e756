"""The log cleaner cleans compacted logs, the dirtiest first, beside everything else (Kafka's `LogCleaner`).

What reads and writes runs in threads, or where `cleaning_process` has it done; the log itself is changed on the event
loop, between two steps. A log that is deleted or truncated meanwhile is left alone, and one that cannot be cleaned is
left alone until the next start.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from pykbroker.config import BrokerConfig
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.reckoning import Reckoning, by_the_clock
from pykbroker.storage.compaction.cleanable_logs import CleanableLog, dirtiest, find_cleanable
from pykbroker.storage.compaction.cleaning_task import CleanerConfig, CleaningAborted, Uncleanable
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.log.log import Log

from ..runtime.clock import Clock
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from ..runtime.throttle import Throttle
from .cleaning_process import CleaningProcessLost, ThisThread, Workplace
from .hosted_logs import HostedLogs

if TYPE_CHECKING:
    from pykbroker.storage.compaction.compaction import Cleaning

logger = logging.getLogger(__name__)

_MOST_THREADS = 4
"""More would only wait for each other, and keep the node's threads from flushes."""
_LEAST_LOAD_FACTOR = 0.01
"""Kafka allows any number, also one with which no table would have room for a key."""
_BREATH_AFTER_S = 0.001
_BREATH_S = 0.00005

LastStableOffset = Callable[[TopicPartition, Log], int | None]
NewWorkplace = Callable[[], Workplace]


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """The settings of a node's log cleaner. memory_bytes: for the offsets of keys, of all threads together."""

    threads: int
    memory_bytes: int
    load_factor: float
    backoff_ms: int
    bytes_per_second: float

    @staticmethod
    def of(config: BrokerConfig) -> CleanerSettings:
        """Return the settings that a broker's configuration gives; no threads where `log.cleaner.enable` is false."""
        return CleanerSettings(
            threads=config.int("log.cleaner.threads") if config.bool("log.cleaner.enable") else 0,
            memory_bytes=config.int("log.cleaner.dedupe.buffer.size"),
            load_factor=min(max(config.float("log.cleaner.io.buffer.load.factor"), _LEAST_LOAD_FACTOR), 1.0),
            backoff_ms=config.int("log.cleaner.backoff.ms"),
            bytes_per_second=config.float("log.cleaner.io.max.bytes.per.second"),
        )


class LogCleaner:
    """The log cleaner works on all hosted logs of a node that are compacted.

    last_stable_offset: None where the log is no replica at the moment. on_failure: takes a directory offline.
    on_damage: quarantines a log. new_workplace: where the reading and copying of one log at a time is done. reckon: how
    late it is for tombstones and the lags of compaction.
    """

    def __init__(
        self,
        config: BrokerConfig,
        logs: HostedLogs,
        *,
        clock: Clock,
        threads: Threads,
        last_stable_offset: LastStableOffset,
        on_failure: Callable[[LogDirectory, FileError], None],
        on_damage: Callable[[TopicPartition, Log, CorruptLog], None],
        new_workplace: NewWorkplace = ThisThread,
        reckon: Reckoning = by_the_clock,
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._threads = threads
        self._last_stable_offset = last_stable_offset
        self._on_failure = on_failure
        self._on_damage = on_damage
        self._new_workplace = new_workplace
        self._reckon = reckon
        self._settings = CleanerSettings.of(config)
        self.throttle = Throttle(self._settings.bytes_per_second)
        self._working: set[int] = set()
        """Numbers of the tasks that clean, from 0 on."""
        self._reconfigured = Signal()
        self._nursery: trio.Nursery | None = None
        self._in_progress: set[Log] = set()
        self._ended = Signal()
        self._uncleanable: weakref.WeakSet[Log] = weakref.WeakSet()
        self._checkpointing = trio.Lock()
        self._is_stopping = False

    async def run(self) -> None:
        """Clean until the surrounding scope is cancelled. A cleaning that is under way ends soon after that."""
        async with trio.open_nursery() as self._nursery:
            self._start_missing()
            try:
                await trio.sleep_forever()
            finally:
                # Threads cannot be cancelled; they ask for this now and then.
                self._is_stopping = True
                self._nursery = None

    def configure(self, settings: CleanerSettings) -> None:
        """Go on with these settings: the limit of bytes counts at once, the others from each task's next log on."""
        if settings == self._settings:
            return
        self.throttle.configure(settings.bytes_per_second)
        if settings.memory_bytes > self._settings.memory_bytes or settings.load_factor > self._settings.load_factor:
            self._uncleanable.clear()  # the keys of a log may have room now
        self._settings = settings
        self._start_missing()
        self._reconfigured.set()

    @property
    def _wanted_tasks(self) -> int:
        return min(self._settings.threads, _MOST_THREADS)

    def _start_missing(self) -> None:
        if self._nursery is not None and not self._is_stopping:
            for number in set(range(self._wanted_tasks)) - self._working:
                self._working.add(number)
                self._nursery.start_soon(self._clean_forever, number)

    async def _clean_forever(self, number: int) -> None:
        """Clean one log after the other until there are to be fewer tasks."""
        workplace = self._new_workplace()
        try:
            while number < self._wanted_tasks:
                seen = self._reconfigured.count
                if not await self.clean_dirtiest(workplace):
                    if workplace.is_open:
                        await self._threads.run(workplace.close)
                    with trio.move_on_after(max(self._settings.backoff_ms, 1) / 1000):
                        await self._reconfigured.next(seen)
        finally:
            self._working.discard(number)
            workplace.close()

    async def clean_all(self) -> None:
        """Clean until no log is due, and none is being cleaned. Nothing happens where `log.cleaner.enable` is false."""
        if not self._settings.threads:
            return
        workplace = self._new_workplace()
        try:
            while await self.clean_dirtiest(workplace) or self._in_progress:
                if self._in_progress:
                    await self._ended.next()
        finally:
            workplace.close()

    async def clean_dirtiest(self, workplace: Workplace | None = None) -> bool:
        """One round; False where no log is due, or the one that was could not be cleaned."""
        due: dict[CleanableLog, tuple[LogDirectory, TopicPartition]] = {}
        for directory in list(self._logs.directories):
            for at, log in directory.logs.copy().items():
                left_alone = log in self._in_progress or log in self._uncleanable or log in self._logs.moving
                if log.config.compact and not left_alone:
                    found = self._look_at(directory, at, log)
                    if found is not None:
                        due[found] = (directory, at)
        cleanable = dirtiest(due)
        return cleanable is not None and await self._clean(cleanable, workplace or ThisThread(), *due[cleanable])

    def _look_at(self, directory: LogDirectory, at: TopicPartition, log: Log) -> CleanableLog | None:
        last_stable_offset = self._last_stable_offset(at, log)
        if last_stable_offset is None or log.is_closed:
            return None
        try:
            return find_cleanable(
                log, directory.cleaned_offset(at), last_stable_offset, self._clock.now_ms(), self._reckon
            )
        except FileError as failure:
            self._on_failure(directory, failure)
            return None

    async def _clean(
        self, cleanable: CleanableLog, workplace: Workplace, directory: LogDirectory, at: TopicPartition
    ) -> bool:
        from pykbroker.storage.compaction.compaction import Cleaning  # not in memory before a log is to be cleaned

        log = cleanable.log
        self._in_progress.add(log)
        now_ms = self._clock.now_ms()
        cleaning = Cleaning(
            cleanable,
            self.task_config(),
            now_ms=now_ms,
            horizon_ms=self._reckon(now_ms, log.config.delete_retention_ms),
            progress=_Pace(self.throttle, self._must_stop(log)),
            begin=workplace.begin,
        )
        try:
            freed_bytes = await self._clean_groups(cleaning, directory, log)
            async with self._checkpointing:
                await self._threads.run(directory.checkpoint_cleaned_offset, at, log, cleaning.end_offset)
        except CleaningProcessLost as loss:
            logger.warning("the cleaning of %s was aborted, and is tried again: %s", at, loss)
            return False
        except CleaningAborted as reason:
            logger.info("the cleaning of %s was aborted: %s", at, reason)
            return False
        except Uncleanable as error:
            logger.error("%s cannot be cleaned, and is not cleaned any more until the next start: %s", at, error)
            self._uncleanable.add(log)
            return False
        except CorruptLog as damage:
            if not cleaning.is_overtaken:
                self._on_damage(at, log, damage)
            return False
        except FileError as failure:
            if cleaning.is_overtaken:
                logger.info("the cleaning of %s was aborted: it lost segments meanwhile", at)
            else:
                self._on_failure(directory, failure)
            return False
        finally:
            self._in_progress.remove(log)
            self._ended.set()
        logger.info(
            "cleaned %s up to offset %d, dirty from %d: %d bytes less",
            at,
            cleaning.end_offset,
            cleanable.first_dirty_offset,
            freed_bytes,
        )
        return True

    def task_config(self) -> CleanerConfig:
        """Each task has its part of the memory."""
        settings = self._settings
        return CleanerConfig(
            memory_bytes=settings.memory_bytes // max(settings.threads, 1), load_factor=settings.load_factor
        )

    async def _clean_groups(self, cleaning: Cleaning, directory: LogDirectory, log: Log) -> int:
        """Return how many bytes smaller the log has become."""
        freed_bytes = 0
        for group in await self._threads.run(cleaning.plan):
            segment = await self._threads.run(cleaning.clean, group)
            cleaning.begin_swap(segment, group)
            await self._threads.run(log.sync_names)
            paths = cleaning.swap(segment)
            await self._threads.run(log.sync_names)
            self._logs.remove_later(directory, log, paths)
            freed_bytes += sum(each.size for each in group) - segment.size
        return freed_bytes

    def _must_stop(self, log: Log) -> Callable[[], bool]:
        return lambda: self._is_stopping or log.is_closed


class _Pace:
    """A thread's progress: within the throttle, never long without letting the event loop run, and to be stopped."""

    def __init__(self, throttle: Throttle, must_stop: Callable[[], bool]) -> None:
        self._throttle = throttle
        self._must_stop = must_stop
        self._breath_s = time.monotonic()

    def __call__(self, size: int) -> None:
        if self._must_stop():
            raise CleaningAborted("the log is closed, or the broker stops")
        self._throttle.wait(size, self._must_stop)
        if time.monotonic() - self._breath_s > _BREATH_AFTER_S:
            # The interpreter would let a busy thread run on for five milliseconds.
            time.sleep(_BREATH_S)
            self._breath_s = time.monotonic()
