"""One log directory: its lock, its owner, and its partitions' logs (`LogManager`).

The order of a start: `open` (lock, `meta.properties`, checkpoints), the metadata log, which stands in the same
directory but is no partition like the others, and then `open_log` for each partition that the metadata names.
"""

import logging
import posixpath
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import random_uuid, uuid_from_text, uuid_to_text

from ..files.disk import Disk, DiskLock, DiskSpace
from ..files.errors import CorruptLog, FileError, InconsistentDirectory, NoRoom
from ..log.log import PRODUCER_ID_EXPIRATION_MS, Log
from ..log.recovery_progress import RecoveryProgress
from ..segments.log_config import LogConfig
from ..segments.segment import DELETED_SUFFIX, LOG_SUFFIX, offset_file_name
from .directory_checkpoints import DirectoryCheckpoints
from .directory_names import (
    DELETE_SUFFIX,
    METADATA_LOG_DIRECTORY,
    STRAY_SUFFIX,
    is_deleted,
    name_aside,
    parse_partition_directory,
    partition_of_future,
)
from .future_logs import FutureLogs
from .meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from .partition_metadata import UnsyncedTopicIds, read_topic_id, write_topic_id
from .shutdown_marks import ShutdownMarks

_log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
_DAMAGED_BITS = 8
_MANY_LOGS = 64
"""So many that are to be closed are worth a sync of the volume, which may hold much of others."""


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A partition's directory as it was found at the start; its topic id is None where the directory does not tell."""

    topic_partition: TopicPartition
    topic_id: bytes | None

    def is_of(self, topic_id: bytes) -> bool:
        """Ids are random: one that differs in a few bits is not another topic's, it is damaged."""
        return self.topic_id is None or _different_bits(self.topic_id, topic_id) <= _DAMAGED_BITS


def _different_bits(one: bytes, other: bytes) -> int:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()


def format_directory(
    disk: Disk, path: str, *, cluster_id: str, node_id: int, rng: Random, directory_id: bytes | None = None
) -> MetaProperties:
    """Make it the directory of this node. Raises `InconsistentDirectory` where it is formatted already.

    directory_id: where somebody else knows it already.
    """
    make_durable_directory(disk, path)
    if read_meta_properties(disk, path) is not None:
        raise InconsistentDirectory(f"the log directory {path} is already formatted")
    meta = MetaProperties(cluster_id, node_id, uuid_to_text(directory_id or random_uuid(rng)))
    write_meta_properties(disk, path, meta)
    return meta


def make_durable_directory(disk: Disk, path: str) -> None:
    """Make a directory and its new parents, with durable names: a crash could take a name with all that is in it."""
    unsynced = [path]
    while (parent := posixpath.dirname(unsynced[-1])) not in ("", "/") and not disk.is_directory(parent):
        unsynced.append(parent)
    disk.make_directory(path)
    for each in unsynced:
        disk.sync_directory(posixpath.dirname(each) or ("/" if each.startswith("/") else "."))


class LogDirectory:
    """Made by `LogDirectory.open`, and then this process's until `close` or `release`.

    Before a log is truncated the checkpoints take back what they promise of it (`Log.before_truncation`), and where it
    begins anew they say where (`Log.before_beginning_anew`).
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        lock: DiskLock,
        meta: MetaProperties,
        marks: ShutdownMarks,
        checkpoints: DirectoryCheckpoints,
        rng: Random,
    ) -> None:
        self.path = path
        self.meta = meta
        self.is_offline = False
        self.has_unclean_log = False
        """One in the directory that others own could not be closed: the directory is not to be marked."""
        self.found: dict[TopicPartition, FoundLog] = {}
        """What stood in the directory at the start and is not opened yet."""
        self.damaged: set[TopicPartition] = set()
        """Set apart, or missing: neither opened nor written to, nor forgotten by the checkpoints."""
        self.futures = FutureLogs(disk, path, rng=rng, is_clean=marks.was_clean_shutdown)
        self.logs: dict[TopicPartition, Log] = {}
        """Threads open logs, so go over a `copy()`. `list(logs.items())` makes tuples, a tuple may set off a garbage
        collection, and whoever it calls lets a thread add one more.
        """
        self._leaving: dict[TopicPartition, Log] = {}
        """Out of use, and a thread knows their files by name and has not ended its work."""
        self._disk = disk
        self._lock: DiskLock | None = lock
        self._rng = rng
        self._marks = marks
        self._checkpoints = checkpoints
        self._unsynced_topic_ids = UnsyncedTopicIds(disk)
        self._promotions = self._synced_promotions = 0
        """How many copies have become logs, and of how many the names are durable."""
        self._noting_boot_id = disk.turn()
        """Logs are opened in threads, and each of the last ones may find that none is left."""

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path}>"

    @classmethod
    def open(
        cls, disk: Disk, path: str, *, rng: Random, node_id: int | None = None, cluster_id: str | None = None
    ) -> "LogDirectory":
        """Take the lock and read everything but the logs. node_id, cluster_id: whose directory it should be.

        Raises `DirectoryLocked`, `InconsistentDirectory`, `FileError`.
        """
        if not disk.is_directory(path):
            raise InconsistentDirectory(f"the log directory {path} does not exist")
        lock = disk.lock(posixpath.join(path, LOCK_FILE))
        try:
            meta = _owned_by(disk, path, node_id, cluster_id)
            if meta.directory_id is None:
                # Formatted by a Kafka before 3.7: the id is given at the first start.
                meta = MetaProperties(meta.cluster_id, meta.node_id, uuid_to_text(random_uuid(rng)))
                write_meta_properties(disk, path, meta)
            marks = ShutdownMarks.take(disk, path)
            directory = cls(disk, path, lock, meta, marks, DirectoryCheckpoints.read(disk, path), rng)
            directory._find_logs()
        except BaseException:
            lock.release()
            raise
        return directory

    def _find_logs(self) -> None:
        names = self._disk.list_directory(self.path)
        if not self.was_clean_shutdown:
            self._checkpoints.forget_deleted(names)
        for name in names:
            topic_partition = parse_partition_directory(name)
            path = self._join(name)
            if topic_partition is not None and self._disk.is_directory(path):
                self.found[topic_partition] = FoundLog(topic_partition, read_topic_id(self._disk, path))
            elif (future := partition_of_future(name)) is not None and self._disk.is_directory(path):
                self.futures.find(name, future)
        self._note_boot_id()

    def _note_boot_id(self) -> None:
        """Once all logs are recovered from what the start before may have left."""
        if self.found:
            return
        with self._noting_boot_id:
            if self._marks.is_boot_noted:
                return
            try:
                logs = self.logs.copy()
                end_offsets = {at: log.log_end_offset for at, log in logs.items()}
                self._checkpoints.lower_high_watermarks(end_offsets, self.damaged.copy())
                self._marks.note_boot_id()
            except NoRoom:
                pass  # with the next log; without it a recovery trusts less

    def _join(self, name: str) -> str:
        return posixpath.join(self.path, name)

    # What others ask

    @property
    def directory_id(self) -> bytes:
        assert self.meta.directory_id is not None
        return uuid_from_text(self.meta.directory_id)

    @property
    def was_clean_shutdown(self) -> bool:
        return self._marks.was_clean_shutdown

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of the run that ended with a clean shutdown, or -1."""
        return self._marks.previous_broker_epoch

    @property
    def machine_stayed_up(self) -> bool:
        """Tell whether the machine ran on since the logs were last written to: then no write is missing."""
        return self._marks.machine_stayed_up

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """The high watermarks as the checkpoint had them at the start."""
        return self._checkpoints.high_watermarks

    @property
    def metadata_log_path(self) -> str:
        return self._join(METADATA_LOG_DIRECTORY)

    def holds(self, path: str) -> bool:
        """Tell whether it is the path of something that stands directly in this directory."""
        name = posixpath.basename(path)
        return bool(name) and self._join(name) == path

    def space(self) -> DiskSpace:
        """Return the space of the volume. Raises `FileError`; may run in a thread."""
        return self._disk.space(self.path)

    @property
    def deleted_paths(self) -> list[str]:
        """Directories that are to be removed, from this run or an earlier one."""
        names = self._disk.list_directory(self.path)
        return [self._join(name) for name in names if is_deleted(name)]

    # Logs

    def open_log(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        now_ms: int,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        progress: RecoveryProgress | None = None,
    ) -> Log:
        """The log of a partition, found here or created; each only once. Several may be opened in threads at a time.

        A directory of another topic that had the same name is put aside as a stray one, and so is one that holds
        records and tells neither its topic nor, in the checkpoint, a recovery point.
        Raises `CorruptLog`, `FileError`, and `RecoveryStopped` where `progress` says so.
        """
        at = TopicPartition(topic, partition)
        assert at not in self.logs, f"{at} is open already"
        name = str(at)
        assert parse_partition_directory(name) == at, f"{topic!r} must not become a path"
        path = self._join(name)
        self._await_threads_of_earlier(at)
        found = self.found.get(at)
        if found is not None and self._is_of_other_topic(found, topic_id):
            self._put_stray_aside(at)
            del self.found[at]
            found = None
        if found is None:
            self.ensure_not_lost(at)
            self._forget_what_is_gone(at)
        try:
            log = Log.open(
                self._disk,
                path,
                config,
                now_ms=now_ms,
                log_start_offset=self._checkpoints.log_start_offsets.get(at, 0),
                recovery_point=self._checkpoints.recovery_points.get(at, 0),
                high_watermark=self._checkpoints.known_high_watermark(at),
                clean_shutdown=self.was_clean_shutdown and at in self._checkpoints.recovery_points,
                machine_stayed_up=self.was_clean_shutdown or self.machine_stayed_up,
                has_been_compacted=at in self._checkpoints.cleaned_offsets,
                producer_id_expiration_ms=producer_id_expiration_ms,
                rng=self._rng,
                progress=progress,
            )
        except CorruptLog:
            self.found.pop(at, None)
            self.damaged.add(at)
            self._note_boot_id()
            raise
        except NoRoom:
            if found is None:
                self._disk.remove_directory(path)
            raise
        self._keep_checkpoints_of(at, log)
        if found is None or found.topic_id != topic_id:
            self._write_new_topic_id(path, topic_id, is_new=found is None)
        if found is None or found.topic_id is None or not log.log_end_offset:
            self._unsynced_topic_ids.add(path)
            log.before_first_flush = partial(self._unsynced_topic_ids.sync, path)
        elif not self.was_clean_shutdown and not self._checkpoints.recovery_points.get(at):
            # What recovery found is served from now on, and nothing says yet that the id is as durable as it is.
            self._unsynced_topic_ids.add(path)
            self._unsynced_topic_ids.sync(path)
        self.logs[at] = log
        self.found.pop(at, None)  # only then: who finds nothing left looks at all logs
        self._note_boot_id()
        return log

    def _keep_checkpoints_of(self, at: TopicPartition, log: Log) -> None:
        log.before_truncation = partial(self._checkpoints.lower, at)
        log.before_beginning_anew = partial(self.checkpoint_log_start_offset, at, log)

    def _write_new_topic_id(self, path: str, topic_id: bytes, *, is_new: bool) -> None:
        """Raises `NoRoom`; then a new log leaves nothing: the next attempt may be in another directory."""
        try:
            write_topic_id(self._disk, path, topic_id, sync=False)
        except NoRoom:
            if is_new:
                self._disk.remove_directory(path)
            raise

    def open_copy(self, at: TopicPartition, topic_id: bytes, config: LogConfig, *, now_ms: int) -> Log:
        """A log to copy one of another directory into: what the checkpoints say of one that was here before is not said
        of it. May run in a thread. Raises `FileError`.
        """
        self._await_threads_of_earlier(at)
        self._forget_what_is_gone(at)
        return self.futures.open(at, topic_id, config, now_ms=now_ms)

    def _await_threads_of_earlier(self, at: TopicPartition) -> None:
        """Wait for threads that know the files of a deleted log: the next one's have the same names."""
        leaving = self._leaving.pop(at, None)
        if leaving is not None:
            leaving.await_threads()

    def _forget_what_is_gone(self, at: TopicPartition) -> None:
        """Forget what the checkpoints say of logs that are neither here nor missed: deleted ones, and lost copies."""
        if self._is_here(at):
            return
        self._checkpoints.forget(at)
        if self._checkpoints.is_written(at):
            # The next start must not take it for what is to be here.
            self._forget_deleted_in_checkpoints()

    def _is_here(self, at: TopicPartition) -> bool:
        return any(at in names for names in (self.logs, self.found, self.damaged))

    def promote_future(self, at: TopicPartition, durable_end_offset: int) -> Log:
        """The copy of a log of another directory is the partition's log from now on. The new name is durable after
        `Log.flush` of it, or after `sync_names`; until then a power cut may leave the other one in its place, of which
        all is durable below `durable_end_offset`. Raises `FileError`.
        """
        assert at not in self.logs, f"{at} is here already"
        log = self.futures.logs[at]
        path = self._join(str(at))
        self._disk.rename(log.directory, path)
        self._promotions += 1
        log.move_to(path, durable_end_offset)
        self._keep_checkpoints_of(at, log)
        self.logs[at] = self.futures.logs.pop(at)
        return log

    def delete_copy(self, at: TopicPartition) -> str:
        """Give up a copy that did not become the log. Returns the path that `remove_deleted` is to remove."""
        path = self.futures.delete(at)
        if not self._is_here(at):
            self._checkpoints.forget(at)
        return path

    def sync_names(self) -> None:
        """Make the directory's names durable. May run in a thread."""
        promotions = self._promotions
        self._disk.sync_directory(self.path)
        self._synced_promotions = max(self._synced_promotions, promotions)

    def bytes_to_check(self, at: TopicPartition) -> int:
        """Return how much recovery would read of a log that is not open yet; nothing after a clean shutdown."""
        if self.was_clean_shutdown:
            return 0
        path = self._join(str(at))
        names = [name for name in self._disk.list_directory(path) if name.endswith(LOG_SUFFIX)]
        last_trusted = offset_file_name(self._checkpoints.recovery_points.get(at, 0), LOG_SUFFIX)
        first = max(bisect_right(names, last_trusted) - 1, 0)
        size = 0
        for name in names[first:]:
            file = self._disk.open(posixpath.join(path, name))
            size += file.end_of_data()
            file.close()
        return size

    def knows(self, at: TopicPartition) -> bool:
        """Tell whether there is a log of this name, or was one: of any topic, open, found or damaged."""
        return any(at in names for names in (self.logs, self.found, self.damaged)) or self._checkpoints.knows(at)

    def _is_of_other_topic(self, found: FoundLog, topic_id: bytes) -> bool:
        """Tell whether a log is another topic's.

        One without a topic id may be a power cut's leftover of an earlier topic, whose records nobody was promised: the
        id is durable before records are. Elsewhere the id is lost, and the log is not.
        """
        if found.topic_id is not None:
            return not found.is_of(topic_id)
        if self.machine_stayed_up or self.was_clean_shutdown:
            return False
        if self._checkpoints.written_recovery_point(found.topic_partition):
            return False
        path = self._join(str(found.topic_partition))
        paths = [posixpath.join(path, name) for name in self._disk.list_directory(path) if name.endswith(LOG_SUFFIX)]
        return any(self._disk.open(each).size() for each in paths)

    def ensure_not_lost(self, at: TopicPartition) -> None:
        """Raises `CorruptLog` where a log was here: a new one would give its offsets away once more."""
        end_offset = self._checkpoints.recovery_points.get(at, 0)
        if self.was_clean_shutdown or self.machine_stayed_up:
            end_offset = max(end_offset, self.high_watermarks.get(at, 0))
        if end_offset and at not in self.found and at not in self.logs:
            self.damaged.add(at)
            raise CorruptLog(f"{self._join(str(at))} is missing, which held offsets up to {end_offset - 1}")

    def _at(self, log: Log) -> TopicPartition:
        at = parse_partition_directory(posixpath.basename(log.directory))
        assert at is not None
        assert self.logs.get(at) is log, f"{log.directory} is not open here"
        return at

    def quarantine(self, log: Log, high_watermark: int) -> None:
        """Take a damaged log out of use, as it is; what is known of it stays in the checkpoints."""
        at = self._at(log)
        del self.logs[at]
        self._checkpoints.quarantine(at, log.recovery_point, high_watermark)
        self._abandon(at, log)
        self._unsynced_topic_ids.forget(log.directory)
        self.damaged.add(at)

    def delete_log(self, log: Log) -> str:
        """Take a log out of use at once. Returns the path that `remove_deleted` is to remove, later or in a thread."""
        at = self._at(log)
        del self.logs[at]
        self._checkpoints.forget(at)
        self._abandon(at, log)
        self._unsynced_topic_ids.forget(log.directory)
        try:
            return self._put_aside(log.directory, at, DELETE_SUFFIX)
        except NoRoom:
            # A topic that gets the name must not get the records.
            self.found[at] = FoundLog(at, read_topic_id(self._disk, log.directory))
            raise

    def _abandon(self, at: TopicPartition, log: Log) -> None:
        """The next log of that name is not made before what threads do to the files of this one has ended: the leader
        epochs that a flush writes would be found there, and the segments of a compaction.
        """
        log.abandon()
        self._leaving = {other: each for other, each in self._leaving.copy().items() if each.is_in_threads}
        if log.is_in_threads:
            self._leaving[at] = log

    def delete_stray(self, at: TopicPartition) -> str:
        """Put a found directory aside that no topic of the cluster owns; nothing of it is removed."""
        del self.found[at]
        target = self._put_stray_aside(at)
        self._note_boot_id()
        return target

    def delete_damaged(self, at: TopicPartition) -> str | None:
        """Delete a quarantined log as `delete_log` does; return None where nothing is left of it."""
        self.damaged.discard(at)
        self._checkpoints.forget(at)
        path = self._join(str(at))
        return self._put_aside(path, at, DELETE_SUFFIX) if self._disk.is_directory(path) else None

    def _put_stray_aside(self, at: TopicPartition) -> str:
        """Put a stray log aside: another log may have its name next, about which its offsets say nothing."""
        self._checkpoints.forget(at)
        self._checkpoints.forget_in_files([at])
        return self._put_aside(self._join(str(at)), at, STRAY_SUFFIX)

    def _put_aside(self, path: str, at: TopicPartition, suffix: str) -> str:
        target = self._join(name_aside(at, suffix, self._rng))
        self._disk.rename(path, target)
        return target

    def _forget_deleted_in_checkpoints(self) -> None:
        logs = self.logs.copy().keys() | self.futures.logs.copy().keys()
        self._checkpoints.forget_others_in_files(logs | self.found.keys())

    def remove_deleted(self, paths: Collection[str]) -> None:
        """A deleted log's directory, or files that a log put aside; no matter if they are gone. May run in a thread."""
        if any(path.endswith(DELETE_SUFFIX) for path in paths):
            self._forget_deleted_in_checkpoints()
        for directory in sorted({posixpath.dirname(path) for path in paths}):
            # A file that is removed under its new name must not turn up under the old one, alone among its like.
            self._sync_if_there(directory)
        for path in paths:
            assert path.endswith((DELETE_SUFFIX, DELETED_SUFFIX)), path
            if path.endswith(DELETE_SUFFIX):
                self._disk.remove_directory(path)
            else:
                self._disk.remove(path)

    def _sync_if_there(self, directory: str) -> None:
        """A log's directory may get another name at any time: it is deleted, or moves to another log directory."""
        try:
            self._disk.sync_directory(directory)
        except FileError as failed:
            if not isinstance(failed.error, FileNotFoundError):
                raise

    # Checkpoints and the end

    def checkpoint_offsets(self) -> None:
        """Write down how far the logs are flushed and where they start. May run in a thread."""
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()

    def checkpoint_recovery_points(self) -> None:
        logs = self.logs.copy()
        # Logs without records are made anew where they are lost.
        if self._unsynced_topic_ids:
            self._unsynced_topic_ids.sync_all({log.directory for log in logs.values() if log.log_end_offset})
        self._checkpoints.write_recovery_points(logs)

    def checkpoint_log_start_offsets(self) -> None:
        """Write the start offsets of logs. May flush logs, and may run in a thread.

        The start of a log that came from another directory counts when that log is found here: so its name is made
        durable, too.
        """
        logs = self.logs.copy()
        if self._synced_promotions != self._promotions:
            self.sync_names()
        self._checkpoints.write_log_start_offsets(logs)

    @property
    def lowerings(self) -> int:
        """Return how often the checkpoints were lowered for a truncation."""
        return self._checkpoints.lowerings

    def checkpoint_high_watermarks(
        self, high_watermarks: dict[TopicPartition, int], lowerings: int | None = None
    ) -> None:
        """Write the high watermarks of all open logs; logs that are not opened yet keep theirs. May run in a thread.

        lowerings: how many there were when somebody looked at the high watermarks; None for now.
        """
        self._checkpoints.write_high_watermarks(
            high_watermarks, self.found.keys() | self.damaged, self.lowerings if lowerings is None else lowerings
        )

    def cleaned_offset(self, at: TopicPartition) -> int | None:
        """Return the offset up to which compaction has come."""
        return self._checkpoints.cleaned_offsets.get(at)

    @property
    def cleaned_offsets(self) -> dict[TopicPartition, int]:
        """A copy of the offsets up to which compaction has come, of all logs that were ever cleaned."""
        return self._checkpoints.cleaned_offsets.copy()

    def checkpoint_cleaned_offset(self, at: TopicPartition, log: Log, offset: int) -> None:
        """Write how far a log, or a copy that is to become one, was cleaned; nothing where it is neither any more."""
        self._checkpoints.write_cleaned_offset(at, offset, lambda: self._has(at, log))

    def checkpoint_log_start_offset(self, at: TopicPartition, log: Log, offset: int) -> None:
        """Write where a log will begin that begins anew, or a copy that is to become a log with deleted records. May
        run in a thread.
        """
        self._checkpoints.write_log_start_offset(at, offset, lambda: self._has(at, log))

    def _has(self, at: TopicPartition, log: Log) -> bool:
        return log in (self.logs.get(at), self.futures.logs.get(at))

    def take_offline(self) -> None:
        """Take the directory offline, whose disk has failed: nothing is written until a start recovers it."""
        self.is_offline = True
        for log in self._all_logs():
            log.abandon()

    def _all_logs(self) -> list[Log]:
        """A copy: new logs are made in threads."""
        return [*self.logs.copy().values(), *self.futures.logs.copy().values()]

    def close(self, *, broker_epoch: int = -1) -> None:
        """A clean shutdown: flush and close all logs, write the checkpoints and the marker, give up the lock.

        Many logs are flushed by a sync of the volume in the place of one for each file (`Disk.sync_volume`); behind it
        each file tells whether a write of it was lost (`DiskFile.check_written`). Where there is no room for all that
        the records are durable, and the next start recovers. broker_epoch: stands in the marker (KIP-966).
        """
        if not self.is_offline:
            try:
                self._close_logs()
                self.checkpoint_offsets()
                self._mark_clean_shutdown(broker_epoch)
            except NoRoom as refusal:
                _log.warning("%s is not marked as shut down cleanly, the next start recovers: %s", self.path, refusal)
        self.release()

    def _close_logs(self) -> None:
        logs = [log for log in self._all_logs() if not log.is_closed]
        if sum(log.lacks_close for log in logs) < _MANY_LOGS or not self._disk.sync_volume(self.path):
            self._close_each(logs)
        else:
            self._close_together(logs)

    def _close_together(self, logs: Sequence[Log]) -> None:
        """A few syncs of all that there is on the volume take the place of some for each log."""
        refused: dict[Log, NoRoom] = {}
        for log in logs:
            try:
                log.begin_close()
            except NoRoom as refusal:
                refused[log] = refusal
        self._disk.sync_volume(self.path)
        renamed = [log for log in logs if log.replace_staged()]
        if renamed:
            self._disk.sync_volume(self.path)
        for log in logs:
            if log in refused:
                log.flush()
            else:
                log.finish_close()
        self._unsynced_topic_ids.forget_all()
        if refused:
            raise next(iter(refused.values()))

    def _close_each(self, logs: Sequence[Log]) -> None:
        refusal: NoRoom | None = None
        for log in logs:
            try:
                log.close()
            except NoRoom as refused:
                refusal = refused
        if refusal is not None:
            raise refusal

    def _mark_clean_shutdown(self, broker_epoch: int) -> None:
        # Logs that nobody opened since a crash still need their recovery.
        if not self.has_unclean_log and (self.was_clean_shutdown or not self.found):
            self._marks.mark_clean_shutdown(broker_epoch)

    def release(self) -> None:
        """Give up the lock and leave everything as it is."""
        lock, self._lock = self._lock, None
        if lock is not None:
            for log in self._all_logs():
                log.abandon()
            lock.release()


def _owned_by(disk: Disk, path: str, node_id: int | None, cluster_id: str | None) -> MetaProperties:
    meta = read_meta_properties(disk, path)
    if meta is None:
        raise InconsistentDirectory(f"the log directory {path} is not formatted")
    if node_id is not None and meta.node_id != node_id:
        raise InconsistentDirectory(f"the log directory {path} belongs to node {meta.node_id}, not to node {node_id}")
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise InconsistentDirectory(
            f"the log directory {path} belongs to cluster {meta.cluster_id}, not to cluster {cluster_id}"
        )
    return meta
