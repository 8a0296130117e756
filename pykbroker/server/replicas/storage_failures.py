"""Partitions go out of use when their files fail: a directory goes offline, a damaged log is quarantined.

Kafka's counterparts are `LogDirFailureChannel` and `ReplicaManager.handleLogDirFailure` (KIP-112).
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable

import trio

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.replication.partition import Partition
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import CorruptLog, DiskFailed, FileError, NoRoom
from pykbroker.storage.log.log import Log

from ..logs.full_directories import FullDirectories
from ..logs.hosted_logs import HostedLogs
from .hosted_partitions import HostedPartitions

logger = logging.getLogger(__name__)


class StorageFailures:
    """The handling of failed disks. metadata_log_dir: without it, or without any other directory, the node ends.

    full: the directories that have no room.
    """

    def __init__(
        self, partitions: HostedPartitions, logs: HostedLogs, full: FullDirectories, *, metadata_log_dir: str
    ) -> None:
        self._partitions = partitions
        self._logs = logs
        self.full = full
        self._metadata_log_dir = posixpath.normpath(metadata_log_dir)
        self._last: DiskFailed | None = None
        self._no_directory_left = trio.Event()
        self.offline_directory_ids: list[bytes] = []
        """The directories that have failed since the start."""
        self.on_offline: Callable[[], None] | None = None
        """The callback is told when another directory has failed."""

    async def raise_last(self) -> None:
        """Raises `DiskFailed` when no log directory is left to work with."""
        await self._no_directory_left.wait()
        assert self._last is not None
        raise self._last

    # Disks

    def in_log(self, log: Log, failure: FileError) -> None:
        directory = self._logs.directory_of(log)
        if directory is not None:
            self.in_directory(directory, failure)

    def at_path(self, failure: FileError) -> None:
        """A disk failed at a path, and only the failure knows in which directory that is."""
        for directory in list(self._logs.directories):
            if failure.path.startswith(directory.path + "/"):
                self.in_directory(directory, failure)

    def in_directory(self, directory: LogDirectory, failure: FileError) -> None:
        """The directory goes offline, unless only room or a descriptor was wanting."""
        if isinstance(failure, DiskFailed):
            self._take_offline(directory, failure)
        elif isinstance(failure, NoRoom):
            self.full.refused(directory.path, failure)

    def _take_offline(self, directory: LogDirectory, failure: DiskFailed) -> None:
        """A disk that failed once is not asked again: what it did with the last write is not known (KIP-112)."""
        if directory not in self._logs.directories:
            return
        logger.error("log directory %s is offline: %s", directory.path, failure)
        self._logs.take_offline(directory)
        gone = set(directory.logs.copy().values())
        for partition in list(self._partitions):
            if partition.log in gone:
                self._partitions.lose(partition)
        self.offline_directory_ids.append(directory.directory_id)
        if self.on_offline is not None:
            self.on_offline()
        if not self._logs.directories or directory.path == self._metadata_log_dir:
            self._last = failure
            self._no_directory_left.set()

    def written(self, log: Log) -> None:
        """A write was possible, where one may have found no room before."""
        directory = self._logs.directory_of(log)
        if directory is not None:
            self.full.written(directory.path)

    # Logs

    def quarantine(self, partition: Partition, damage: CorruptLog) -> None:
        """Take a partition with a damaged log out of use. Its files stay as they are, and other partitions go on."""
        if partition not in self._partitions:
            return
        log_damage(TopicPartition(partition.topic, partition.index), damage)
        self._logs.quarantine(partition.log, partition.high_watermark)
        self._partitions.lose(partition)

    def quarantine_log(self, at: TopicPartition, log: Log, damage: CorruptLog) -> None:
        partition = self._partitions.of_log(at, log)
        if partition is not None:
            self.quarantine(partition, damage)


def log_damage(at: TopicPartition, damage: CorruptLog) -> None:
    logger.error(
        "%s is quarantined, and clients get KAFKA_STORAGE_ERROR for it: %s. Nothing was removed: look at it with "
        "pykbroker dump, or stop the broker and run pykbroker verify on its log directories, which mends it when told "
        "(--repair, --salvage); or put a sound copy of its directory in its place, or delete the topic",
        at,
        damage,
    )
