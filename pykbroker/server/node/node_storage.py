"""A node keeps its log directories on disk and, in one of them, the metadata log.

`open` formats what is unformatted. `close` ends a clean shutdown; `release` alone leaves everything as a crash would.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeVar

from pykbroker.config import BrokerConfig
from pykbroker.metadata.features import UnsupportedFeatureLevel, bootstrap_records
from pykbroker.metadata.image import InconsistentMetadata
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.raft.election_state import InvalidQuorumState
from pykbroker.raft.voters import InvalidVoters
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import FileError, NoRoom
from pykbroker.storage.segments.log_config import LogConfig

from ..quorum.bootstrap_checkpoint import InvalidBootstrapCheckpoint, read_bootstrap_checkpoint
from ..quorum.formatting import directory_paths, format_path, formatted_cluster_id, is_unformatted, partition_paths
from ..quorum.metadata_log import MetadataLog
from ..quorum.metadata_remedy import remedy, telling
from ..runtime.clock import Clock
from ..runtime.startup_error import StartupError

_log = logging.getLogger(__name__)

T = TypeVar("T")


class NodeStorage:
    """The log directories and the metadata log of one node, locked and open until `release`.

    directories: those that hold partitions. bootstrap: the records with which the first controller of a cluster begins
    an empty metadata log. broker_epoch: goes into the mark of a clean shutdown; -1 where the broker never had one.
    """

    def __init__(
        self,
        cluster_id: str,
        directories: Sequence[LogDirectory],
        opened: Sequence[LogDirectory],
        metadata_log: MetadataLog,
        bootstrap: Sequence[Message],
    ) -> None:
        self.cluster_id = cluster_id
        self.directories = directories
        self.broker_epoch = -1
        self._opened = opened
        self.metadata_log = metadata_log
        self.bootstrap = bootstrap

    @classmethod
    def open(
        cls,
        disk: Disk,
        config: BrokerConfig,
        *,
        clock: Clock,
        rng: Random,
        feature_levels: Mapping[str, int] | None = None,
    ) -> NodeStorage:
        """Raises StorageError, StartupError.

        feature_levels: of features that shall not begin at their greatest level, in a cluster that begins here.
        """
        paths = _Paths(config)
        unformatted = paths.attempt(lambda path: is_unformatted(disk, path))
        cluster_id = formatted_cluster_id(disk, paths.usable) or uuid_to_text(random_uuid(rng))

        opened: list[LogDirectory] = []

        def open_directory(path: str) -> LogDirectory:
            if unformatted[path]:
                format_path(
                    disk, config, path, cluster_id, rng=rng, now_ms=clock.now_ms(), feature_levels=feature_levels
                )
            directory = LogDirectory.open(disk, path, rng=rng, node_id=config.node_id, cluster_id=cluster_id)
            opened.append(directory)
            return directory

        try:
            paths.attempt(open_directory)
            with telling(remedy(config)):
                metadata_log = MetadataLog.open(
                    disk,
                    opened[0].metadata_log_path,
                    _metadata_log_config(config),
                    clean_shutdown=opened[0].was_clean_shutdown,
                    machine_stayed_up=opened[0].machine_stayed_up,
                    now_ms=clock.now_ms(),
                )
            with refusing_start():
                bootstrap = read_bootstrap_checkpoint(disk, opened[0].path) or bootstrap_records(feature_levels)
        except BaseException:
            for directory in opened:
                directory.release()
            raise
        # A metadata directory of its own is not in log.dirs and takes no partitions.
        of_partitions = [each for each in opened if each.path in partition_paths(config)]
        return cls(cluster_id, of_partitions, opened, metadata_log, bootstrap)

    @property
    def metadata_directory_id(self) -> bytes:
        return self._opened[0].directory_id

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last run, where all directories were closed cleanly; -1 elsewhere."""
        epochs = {directory.previous_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def close(self) -> None:
        """Flush everything and mark it as cleanly shut down. The call blocks, so a thread makes it."""
        try:
            self.metadata_log.close()
        except NoRoom:
            # The log's records are durable, and the next start has to look at it.
            self._opened[0].has_unclean_log = True
        for directory in self._opened:
            directory.close(broker_epoch=self.broker_epoch)

    def release(self) -> None:
        """Give up the locks, and leave the files as they are."""
        for directory in self._opened:
            directory.release()


class _Paths:
    """The directories of a node, without those whose disk fails: the others serve without them (KIP-112)."""

    def __init__(self, config: BrokerConfig) -> None:
        self.usable = directory_paths(config)
        self._metadata_path = self.usable[0]
        self._partition_paths = partition_paths(config)

    def attempt(self, step: Callable[[str], T]) -> dict[str, T]:
        """Take the step for each. Raises FileError where the metadata log's fails, or the last for partitions."""
        results: dict[str, T] = {}
        for path in list(self.usable):
            try:
                results[path] = step(path)
            except FileError as failure:
                self.usable.remove(path)
                if path == self._metadata_path or not any(each in self._partition_paths for each in self.usable):
                    raise
                _log.error("log directory %s is offline: %s", path, failure)
        return results


@contextmanager
def refusing_start() -> Iterator[None]:
    """Turn metadata that this node cannot run on into StartupError."""
    try:
        yield
    except (
        InconsistentMetadata,
        InvalidBootstrapCheckpoint,
        InvalidQuorumState,
        InvalidVoters,
        UnsupportedFeatureLevel,
    ) as error:
        raise StartupError(str(error)) from error


def _metadata_log_config(config: BrokerConfig) -> LogConfig:
    """The configuration of the metadata log. Only snapshots let its beginning go, never size or age."""
    internal_segment_bytes = config.optional_int("internal.metadata.log.segment.bytes")
    return LogConfig(
        segment_bytes=internal_segment_bytes or config.int("metadata.log.segment.bytes"),
        segment_ms=config.int("metadata.log.segment.ms"),
        max_message_bytes=config.int("internal.metadata.max.batch.size.in.bytes"),
        retention_bytes=-1,
        retention_ms=-1,
    )
