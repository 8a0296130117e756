"""The hosted logs are all logs in the log directories of a node: where each is, and what is to be removed of it later.

With `log_upkeep` the class is what `LogManager` is in Kafka. Who leads a log's partition is the business of
`replica_manager`.
"""

from __future__ import annotations

import logging
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import CorruptLog, FileError, NoRoom
from pykbroker.storage.log.log import Log, LogConfig
from pykbroker.storage.log.recovery_progress import RecoveryProgress

from ..runtime.clock import Clock
from ..runtime.signal import Signal
from .preferred_directories import PreferredDirectories

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion is a log's directory, or files of a log, that were put out of use: to be removed when their time has
    come.
    """

    directory: LogDirectory
    paths: tuple[str, ...]
    due_ms: int


class HostedLogs:
    """The hosted logs know the directories that work, and all logs in them.

    settings_changed: is set when a log is opened, reconfigured or to be removed. preferred: where clients want logs
    that are not there yet.
    """

    def __init__(self, directories: Sequence[LogDirectory], *, clock: Clock, producer_id_expiration_ms: int) -> None:
        self.directories = list(directories)
        self.deletions: list[Deletion] = []
        self.settings_changed = Signal()
        self.preferred = PreferredDirectories()
        self.moving: set[Log] = set()
        """Logs that are copied to another directory: compaction leaves them alone meanwhile."""
        self._clock = clock
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self._loaded: dict[TopicPartition, tuple[LogDirectory, Log | CorruptLog | FileError]] = {}
        """What `load` has opened, or why it could not, until `open` asks for it a moment later."""
        for directory in self.directories:
            for path in directory.deleted_paths:
                self.deletions.append(Deletion(directory, (path,), clock.monotonic_ms()))

    def __iter__(self) -> Iterator[Log]:
        for directory in self.directories:
            yield from directory.logs.copy().values()

    def directory_of(self, log: Log) -> LogDirectory | None:
        """Return None where the directory is offline or the log deleted."""
        if log.is_closed:
            return None
        return next((each for each in self.directories if each.holds(log.directory)), None)

    def is_found(self, at: TopicPartition, topic_id: bytes) -> bool:
        """Tell whether the log stood in one of the directories at the start."""
        return at in self._loaded or self.find(at, topic_id, ()) is not None

    def find(self, at: TopicPartition, topic_id: bytes, assigned: Container[bytes]) -> LogDirectory | None:
        """Return the directory that the log stood in at the start, as long as it is not opened. A crash in the last
        moment of a move leaves it in two directories; then it is in the one that the controller knows of.
        """
        found = [each for each in self.directories if _is_in(each, at, topic_id)]
        if len(found) > 1:
            found.sort(key=lambda each: each.directory_id not in assigned)
        return found[0] if found else None

    # Opening and deleting

    def load(
        self,
        directory: LogDirectory,
        at: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        progress: RecoveryProgress,
    ) -> None:
        """Open or create a log, for `open` to hand out. May run in several threads, for a log each.

        Who read it before the start asks for more, and is shown nothing that `flush.messages` wants on the disk first:
        that is flushed here, or when there is room for it. Raises `RecoveryStopped`.
        """
        try:
            log = self._open_in(directory, at, topic_id, config, progress)
            if log.lacks_flush(log.log_end_offset):
                with suppress(NoRoom):
                    log.flush()
        except (CorruptLog, FileError) as failure:
            self._loaded[at] = directory, failure
        else:
            self._loaded[at] = directory, log

    def open(
        self,
        at: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        assigned: Collection[bytes],
        cordoned: Callable[[], Container[str]] = frozenset,
    ) -> tuple[Log, int]:
        """The log and its high watermark as checkpointed. cordoned: absolute paths of directories that a new log is
        not to be put in. Raises `FileError`, `CorruptLog`.
        """
        directory, log = self._loaded.pop(at, (None, None))
        if isinstance(log, CorruptLog | FileError):
            raise log
        if directory is None or log is None:
            if not self.is_found(at, topic_id):
                for each in self.directories:
                    each.ensure_not_lost(at)
            directory = self._directory_for(at, topic_id, assigned, cordoned)
            log = self._open_in(directory, at, topic_id, config)
        self.preferred.forget(at)
        self.settings_changed.set()
        return log, directory.high_watermarks.get(at, 0)

    def _open_in(
        self,
        directory: LogDirectory,
        at: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        progress: RecoveryProgress | None = None,
    ) -> Log:
        return directory.open_log(
            at.topic,
            at.partition,
            topic_id,
            config,
            now_ms=self._clock.now_ms(),
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            progress=progress,
        )

    def place(
        self,
        at: TopicPartition,
        assigned: Collection[bytes],
        cordoned: Callable[[], Container[str]],
        planned: Counter[LogDirectory],
    ) -> LogDirectory | None:
        """Return the directory for a new log, when `planned` are made first. None where something stands in its way."""
        if not self.directories or any(each.knows(at) for each in self.directories):
            return None
        return self._directory_for_new(at, assigned, cordoned, planned)

    def _directory_for(
        self, at: TopicPartition, topic_id: bytes, assigned: Collection[bytes], cordoned: Callable[[], Container[str]]
    ) -> LogDirectory:
        return self.find(at, topic_id, assigned) or self._directory_for_new(at, assigned, cordoned, Counter())

    def _directory_for_new(
        self,
        at: TopicPartition,
        assigned: Collection[bytes],
        cordoned: Callable[[], Container[str]],
        planned: Counter[LogDirectory],
    ) -> LogDirectory:
        """Choose the directory that the controller wants, else the one that a client wants, else the one with the
        fewest logs.
        """
        preferred = self.preferred.of(at)
        wanted = [each for each in self.directories if each.directory_id in assigned]
        wanted += [each for each in self.directories if each is preferred]
        if wanted:
            return wanted[0]
        closed = cordoned()
        free = [each for each in self.directories if posixpath.abspath(each.path) not in closed]
        return min(free or self.directories, key=lambda each: len(each.logs) + planned[each])

    def reconfigure(self, log: Log, config: LogConfig) -> None:
        log.update_config(config)
        self.settings_changed.set()

    def delete(self, log: Log) -> None:
        """Put the log out of use at once; its files go after `file.delete.delay.ms`. Raises `FileError`."""
        directory = self.directory_of(log)
        if directory is not None:
            self.remove_later(directory, log, [directory.delete_log(log)])

    def quarantine(self, log: Log, high_watermark: int) -> None:
        """Put the log out of use at once, and leave its files as they are."""
        directory = self.directory_of(log)
        if directory is not None:
            directory.quarantine(log, high_watermark)

    def delete_damaged(self, at: TopicPartition) -> None:
        """Delete a log that was quarantined, at the start or later. Raises `FileError`."""
        for directory in self.directories:
            path = directory.delete_damaged(at) if at in directory.damaged else None
            if path is not None:
                self.deletions.append(Deletion(directory, (path,), self._clock.monotonic_ms()))
                self.settings_changed.set()

    def put_old_segments_aside(self, directory: LogDirectory, log: Log, high_watermark: int, now_ms: int) -> None:
        """Put segments that retention allows to delete out of use at once; their files go as a deleted log's do. Raises
        `FileError`.
        """
        paths = log.put_old_segments_aside(high_watermark, now_ms)
        if paths:
            logger.info("%s begins at offset %d now", log.directory, log.log_start_offset)
            self.remove_later(directory, log, paths)

    def remove_later(self, directory: LogDirectory, log: Log, paths: Sequence[str]) -> None:
        """Remove files that were put out of use already, after `file.delete.delay.ms`."""
        due_ms = self._clock.monotonic_ms() + log.config.file_delete_delay_ms
        self.deletions.append(Deletion(directory, tuple(paths), due_ms))
        self.settings_changed.set()

    def remove_now(self, directory: LogDirectory, paths: Sequence[str]) -> None:
        """Remove files that nobody can be reading."""
        self.deletions.append(Deletion(directory, tuple(paths), self._clock.monotonic_ms()))
        self.settings_changed.set()

    def put_strays_aside(self) -> None:
        """Rename logs that stood in the directories and belong to no partition of this node; their bytes stay."""
        for directory in list(self.directories):
            for at in list(directory.found):
                logger.warning(
                    "%s in %s belongs to no topic of the cluster: it is renamed to -stray, and may be removed",
                    at,
                    directory.path,
                )
                directory.delete_stray(at)

    def take_offline(self, directory: LogDirectory) -> None:
        """Stop every use of the directory: nothing is read or written there any more."""
        directory.take_offline()
        self.directories.remove(directory)
        self._loaded = {at: each for at, each in self._loaded.items() if each[0] is not directory}
        self.deletions = [each for each in self.deletions if each.directory is not directory]


def _is_in(directory: LogDirectory, at: TopicPartition, topic_id: bytes) -> bool:
    found = directory.found.get(at)
    return found is not None and found.is_of(topic_id)
