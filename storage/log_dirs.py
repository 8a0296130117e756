"""One log directory: its lock, its owner, its partitions' logs and the files about all of them (`LogManager`).

The order of a start: `open` (lock, `meta.properties`, checkpoints), the metadata log, which stands in the same
directory but is no partition like the others, and then `open_log` for each partition that the metadata names.
"""

import json
import logging
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from pykbroker.protocol.uuids import random_uuid, uuid_from_text, uuid_to_text

from .checkpoints import (
    CLEANED_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    RECOVERY_POINT,
    OffsetCheckpoint,
    TopicPartition,
)
from .disk import Disk, DiskLock, DiskSpace
from .errors import CorruptLog, InconsistentDirectory
from .log import PRODUCER_ID_EXPIRATION_MS, Log
from .log_config import LogConfig
from .meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from .partition_metadata import read_topic_id, write_topic_id
from .segment import DELETED_SUFFIX

_log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
METADATA_LOG_DIRECTORY = "__cluster_metadata-0"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_MAX_NAME_BYTES = 255
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A partition's directory as it was found at the start; its topic id is None where the directory does not tell."""

    topic_partition: TopicPartition
    topic_id: bytes | None


def parse_partition_directory(name: str) -> TopicPartition | None:
    """None for anything else that stands in a log directory."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or name == METADATA_LOG_DIRECTORY:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def format_directory(disk: Disk, path: str, *, cluster_id: str, node_id: int, rng: Random) -> MetaProperties:
    """Make it the directory of this node. Raises `InconsistentDirectory` where it is formatted already."""
    disk.make_directory(path)
    if read_meta_properties(disk, path) is not None:
        raise InconsistentDirectory(f"the log directory {path} is already formatted")
    meta = MetaProperties(cluster_id, node_id, uuid_to_text(random_uuid(rng)))
    write_meta_properties(disk, path, meta)
    disk.sync_directory(posixpath.dirname(path) or "/")
    return meta


class LogDirectory:
    """Made by `LogDirectory.open`, and then this process's until `close` or `release`."""

    def __init__(self, disk: Disk, path: str, lock: DiskLock, meta: MetaProperties, rng: Random) -> None:
        self.path = path
        self.meta = meta
        self.was_clean_shutdown = False
        self.is_offline = False
        self.previous_broker_epoch = -1
        self.found: dict[TopicPartition, FoundLog] = {}
        """What stood in the directory at the start and is not opened yet."""
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        """As the checkpoint had them at the start."""
        self._disk = disk
        self._lock: DiskLock | None = lock
        self._rng = rng
        self._unsynced_topic_ids: dict[str, bytes] = {}
        """Per path of a partition that was created lately: a sync for each would make creating topics slow."""
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_start_offsets: dict[TopicPartition, int] = {}
        self._written_log_start_offsets: dict[TopicPartition, int] | None = None
        self._cleaned_offsets: dict[TopicPartition, int] = {}

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path}>"

    @classmethod
    def open(
        cls, disk: Disk, path: str, *, rng: Random, node_id: int | None = None, cluster_id: str | None = None
    ) -> "LogDirectory":
        """Take the lock and read everything but the logs. node_id, cluster_id: whose directory it should be.

        Raises `DirectoryLocked`, `InconsistentDirectory`, `DiskFailed`.
        """
        if not disk.is_directory(path):
            raise InconsistentDirectory(f"the log directory {path} does not exist")
        lock = disk.lock(posixpath.join(path, LOCK_FILE))
        try:
            meta = _owned_by(disk, path, node_id, cluster_id)
            directory = cls(disk, path, lock, meta, rng)
            directory._load()
        except BaseException:
            lock.release()
            raise
        return directory

    def _load(self) -> None:
        if self.meta.directory_id is None:
            # Formatted by a Kafka before 3.7: the id is given at the first start.
            self.meta = MetaProperties(self.meta.cluster_id, self.meta.node_id, uuid_to_text(random_uuid(self._rng)))
            write_meta_properties(self._disk, self.path, self.meta)
        self._take_clean_shutdown_marker()
        self._recovery_points = self._read_checkpoint(RECOVERY_POINT)
        self._log_start_offsets = self._read_checkpoint(LOG_START_OFFSET)
        self.high_watermarks = self._read_checkpoint(HIGH_WATERMARK)
        self._cleaned_offsets = self._read_checkpoint(CLEANED_OFFSET)
        for name in self._disk.list_directory(self.path):
            topic_partition = parse_partition_directory(name)
            path = self._join(name)
            if topic_partition is not None and self._disk.is_directory(path):
                self.found[topic_partition] = FoundLog(topic_partition, read_topic_id(self._disk, path))

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """A damaged checkpoint costs a longer recovery, not the start."""
        checkpoint = OffsetCheckpoint(self._disk, self._join(name))
        try:
            return checkpoint.read()
        except CorruptLog as error:
            _log.warning("starting without a checkpoint: %s", error)
            return {}

    def _take_clean_shutdown_marker(self) -> None:
        """It is valid for one start."""
        path = self._join(CLEAN_SHUTDOWN_FILE)
        if not self._disk.exists(path):
            return
        self.was_clean_shutdown = True
        self.previous_broker_epoch = _broker_epoch(self._disk.read_file(path))
        self._disk.remove(path)
        self._disk.sync_directory(self.path)

    def _join(self, name: str) -> str:
        return posixpath.join(self.path, name)

    # What others ask

    @property
    def directory_id(self) -> bytes:
        assert self.meta.directory_id is not None
        return uuid_from_text(self.meta.directory_id)

    @property
    def metadata_log_path(self) -> str:
        return self._join(METADATA_LOG_DIRECTORY)

    def space(self) -> DiskSpace:
        """Of the volume. Raises `DiskFailed`; may run in a thread."""
        return self._disk.space(self.path)

    @property
    def deleted_paths(self) -> list[str]:
        """Directories that are to be removed, from this run or an earlier one."""
        names = self._disk.list_directory(self.path)
        return [self._join(name) for name in names if name.endswith(DELETE_SUFFIX) and "." in name]

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
    ) -> Log:
        """The log of a partition, found here or created; each only once.

        A directory of another topic that had the same name is put aside as a stray one.
        Raises `CorruptLog`, `DiskFailed`.
        """
        at = TopicPartition(topic, partition)
        assert at not in self.logs, f"{at} is open already"
        name = str(at)
        assert parse_partition_directory(name) == at, f"{topic!r} must not become a path"
        path = self._join(name)
        found = self.found.get(at)
        if found is not None and found.topic_id not in (None, topic_id):
            self._put_aside(path, at, STRAY_SUFFIX)
            self._forget_offsets(at)
            found = None
        log = Log.open(
            self._disk,
            path,
            config,
            now_ms=now_ms,
            log_start_offset=self._log_start_offsets.get(at, 0),
            recovery_point=self._recovery_points.get(at, 0),
            clean_shutdown=self.was_clean_shutdown,
            producer_id_expiration_ms=producer_id_expiration_ms,
            rng=self._rng,
        )
        if found is None or found.topic_id is None:
            write_topic_id(self._disk, path, topic_id, sync=False)
            self._unsynced_topic_ids[path] = topic_id
        self.found.pop(at, None)
        self.logs[at] = log
        return log

    def delete_log(self, log: Log) -> str:
        """Take a log out of use at once. Returns the path that `remove_deleted` is to remove, later or in a thread."""
        at = next(at for at, other in self.logs.items() if other is log)
        del self.logs[at]
        self._forget_offsets(at)
        log.abandon()
        self._unsynced_topic_ids.pop(log.directory, None)
        return self._put_aside(log.directory, at, DELETE_SUFFIX)

    def delete_stray(self, at: TopicPartition) -> str:
        """Put a found directory aside that no topic of the cluster owns; nothing of it is removed."""
        del self.found[at]
        self._forget_offsets(at)
        return self._put_aside(self._join(str(at)), at, STRAY_SUFFIX)

    def _put_aside(self, path: str, at: TopicPartition, suffix: str) -> str:
        tail = f"-{at.partition}.{random_uuid(self._rng).hex()}{suffix}"
        target = self._join(at.topic[: _MAX_NAME_BYTES - len(tail)] + tail)
        self._disk.rename(path, target)
        return target

    def _forget_offsets(self, at: TopicPartition) -> None:
        for offsets in (self._recovery_points, self._log_start_offsets, self.high_watermarks, self._cleaned_offsets):
            offsets.pop(at, None)

    def remove_deleted(self, paths: Iterable[str]) -> None:
        """A deleted log's directory, or files that a log put aside; no matter if they are gone. May run in a thread."""
        for path in paths:
            assert path.endswith((DELETE_SUFFIX, DELETED_SUFFIX)), path
            if path.endswith(DELETE_SUFFIX):
                self._disk.remove_directory(path)
            else:
                self._disk.remove(path)

    # Checkpoints and the end

    def checkpoint_offsets(self) -> None:
        """Write down how far the logs are flushed and where they start. May run in a thread."""
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()

    def checkpoint_recovery_points(self) -> None:
        topic_ids, self._unsynced_topic_ids = self._unsynced_topic_ids, {}
        for path, topic_id in topic_ids.items():
            if self._disk.is_directory(path):
                write_topic_id(self._disk, path, topic_id, sync=True)
        recovery_points = dict(self._recovery_points)
        for at, log in list(self.logs.items()):
            recovery_points[at] = log.recovery_point
        self._write_checkpoint(RECOVERY_POINT, recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        """Only of logs that start within a segment: the others' files tell. Nothing is written where nothing moved."""
        log_start_offsets = dict(self._log_start_offsets)
        for at, log in list(self.logs.items()):
            log_start_offsets.pop(at, None)
            start = log.log_start_offset
            if start > log.segments[0].base_offset:
                log_start_offsets[at] = start
        if log_start_offsets != self._written_log_start_offsets:
            self._write_checkpoint(LOG_START_OFFSET, log_start_offsets)
            self._written_log_start_offsets = log_start_offsets

    def checkpoint_high_watermarks(self, high_watermarks: dict[TopicPartition, int]) -> None:
        """Of all open logs; logs that are not opened yet keep what they had. May run in a thread."""
        unopened = {at: self.high_watermarks[at] for at in list(self.found) if at in self.high_watermarks}
        self._write_checkpoint(HIGH_WATERMARK, unopened | high_watermarks)

    def cleaned_offset(self, at: TopicPartition) -> int | None:
        """Up to where compaction has come."""
        return self._cleaned_offsets.get(at)

    def checkpoint_cleaned_offset(self, at: TopicPartition, offset: int) -> None:
        """May run in a thread, one at a time."""
        self._cleaned_offsets[at] = offset
        self._write_checkpoint(CLEANED_OFFSET, dict(self._cleaned_offsets))

    def _write_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        OffsetCheckpoint(self._disk, self._join(name)).write(offsets)

    def take_offline(self) -> None:
        """Its disk has failed: nothing is written there any more, and the next start recovers what is there."""
        self.is_offline = True
        for log in self.logs.values():
            log.abandon()

    def close(self, *, broker_epoch: int = -1) -> None:
        """A clean shutdown: flush and close all logs, write the checkpoints and the marker, give up the lock."""
        if self.is_offline:
            self.release()
            return
        for log in self.logs.values():
            log.close()
        self.checkpoint_offsets()
        # Logs that nobody opened since a crash still need their recovery.
        if self.was_clean_shutdown or not self.found:
            marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
            self._disk.replace_file(self._join(CLEAN_SHUTDOWN_FILE), marker.encode())
        self.release()

    def release(self) -> None:
        """Give up the lock and leave everything as it is."""
        lock, self._lock = self._lock, None
        if lock is not None:
            for log in self.logs.values():
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


def _broker_epoch(marker: bytes) -> int:
    """-1 where an older Kafka wrote an empty marker."""
    try:
        return int(json.loads(marker)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
