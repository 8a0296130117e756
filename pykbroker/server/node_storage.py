"""What a node keeps on disk: its log directories and, in one of them, the metadata log.

Opening formats what is unformatted. `close` is the end of a clean shutdown; `release` alone leaves everything as a
crash would.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeVar

from pykbroker.config import BrokerConfig
from pykbroker.metadata.controller import Controller
from pykbroker.metadata.features import UnsupportedMetadataVersion, bootstrap_records
from pykbroker.metadata.image import InconsistentMetadata, MetadataImage
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.raft.election_state import InvalidQuorumState
from pykbroker.raft.voters import Voter, VoterSet
from pykbroker.storage.disk import Disk
from pykbroker.storage.errors import DiskFailed
from pykbroker.storage.log_config import LogConfig
from pykbroker.storage.log_dirs import LogDirectory

from .bootstrap_checkpoint import InvalidBootstrapCheckpoint, read_bootstrap_checkpoint
from .clock import Clock
from .controller_driver import ControllerDriver
from .formatting import directory_paths, format_path, formatted_cluster_id, is_unformatted, partition_paths
from .metadata_log import MetadataLog
from .start_refused import StartRefused
from .threads import Threads

_log = logging.getLogger(__name__)

T = TypeVar("T")


class NodeStorage:
    """directories: those of the partitions. broker_epoch: goes into the mark of a clean shutdown."""

    def __init__(
        self,
        cluster_id: str,
        directories: Sequence[LogDirectory],
        opened: Sequence[LogDirectory],
        disk: Disk,
        metadata_log: MetadataLog,
        bootstrap: Sequence[Message],
    ) -> None:
        self.cluster_id = cluster_id
        self.directories = directories
        self.broker_epoch = -1
        self._opened = opened
        self._disk = disk
        self._metadata_log = metadata_log
        self._bootstrap = bootstrap

    @classmethod
    def open(cls, disk: Disk, config: BrokerConfig, *, clock: Clock, rng: Random) -> NodeStorage:
        """Raises StorageError, StartRefused."""
        paths = _Paths(config)
        unformatted = paths.attempt(lambda path: is_unformatted(disk, path))
        cluster_id = formatted_cluster_id(disk, paths.usable) or uuid_to_text(random_uuid(rng))

        opened: list[LogDirectory] = []

        def open_directory(path: str) -> LogDirectory:
            if unformatted[path]:
                format_path(disk, config, path, cluster_id, rng=rng, now_ms=clock.now_ms())
            directory = LogDirectory.open(disk, path, rng=rng, node_id=config.node_id, cluster_id=cluster_id)
            opened.append(directory)
            return directory

        try:
            paths.attempt(open_directory)
            metadata_log = MetadataLog.open(
                disk,
                opened[0].metadata_log_path,
                _metadata_log_config(config),
                clean_shutdown=opened[0].was_clean_shutdown,
                now_ms=clock.now_ms(),
            )
            with refusing_start():
                bootstrap = read_bootstrap_checkpoint(disk, opened[0].path) or bootstrap_records()
        except BaseException:
            for directory in opened:
                directory.release()
            raise
        # A metadata directory of its own is not in log.dirs and takes no partitions.
        of_partitions = [each for each in opened if each.path in partition_paths(config)]
        return cls(cluster_id, of_partitions, opened, disk, metadata_log, bootstrap)

    @property
    def previous_broker_epoch(self) -> int:
        """Of the last run, where all directories were closed cleanly; -1 elsewhere."""
        epochs = {directory.previous_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def controller_driver(
        self, config: BrokerConfig, *, clock: Clock, threads: Threads, rng: Random
    ) -> ControllerDriver:
        """The controller on its metadata log. Raises StartRefused."""
        with refusing_start():
            return ControllerDriver(
                config.node_id,
                _voters(config),
                self._metadata_log,
                Controller(config, node_id=config.node_id, cluster_id=self.cluster_id, rng=rng),
                MetadataImage(),
                clock=clock,
                threads=threads,
                bootstrap=self._bootstrap,
            )

    def close(self) -> None:
        """A clean shutdown: everything is flushed and marked so. It blocks: for a thread."""
        self._metadata_log.close()
        for directory in self._opened:
            directory.close(broker_epoch=self.broker_epoch)

    def release(self) -> None:
        """Give up the locks, and leave the files as they are."""
        for directory in self._opened:
            directory.release()


class _Paths:
    """The directories of a node, less those whose disk fails: the others serve without them (KIP-112)."""

    def __init__(self, config: BrokerConfig) -> None:
        self.usable = directory_paths(config)
        self._metadata_path = self.usable[0]
        self._partition_paths = partition_paths(config)

    def attempt(self, step: Callable[[str], T]) -> dict[str, T]:
        """Take the step for each. Raises DiskFailed where the metadata log's fails, or the last for partitions."""
        results: dict[str, T] = {}
        for path in list(self.usable):
            try:
                results[path] = step(path)
            except DiskFailed as failure:
                self.usable.remove(path)
                if path == self._metadata_path or not any(each in self._partition_paths for each in self.usable):
                    raise
                _log.error("log directory %s is offline: %s", path, failure)
        return results


@contextmanager
def refusing_start() -> Iterator[None]:
    """What the metadata says may be nothing that this node can run on."""
    try:
        yield
    except (
        InconsistentMetadata,
        InvalidBootstrapCheckpoint,
        InvalidQuorumState,
        UnsupportedMetadataVersion,
    ) as error:
        raise StartRefused(str(error)) from error


def _voters(config: BrokerConfig) -> VoterSet:
    """This node alone, whether `controller.quorum.voters` says so or nothing."""
    others = [node_id for node_id in config.quorum_voters if node_id != config.node_id]
    if others:
        raise StartRefused(
            f"controller.quorum.voters names the nodes {', '.join(map(str, others))} beside node {config.node_id}: "
            "quorums of several nodes are not offered yet"
        )
    listener = config.listeners.controller[0]
    host, port = config.quorum_voters.get(config.node_id, (listener.host, listener.port))
    return VoterSet([Voter(config.node_id, host, port)])


def _metadata_log_config(config: BrokerConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=config.int("metadata.log.segment.bytes"),
        segment_ms=config.int("metadata.log.segment.ms"),
        max_message_bytes=config.int("internal.metadata.max.batch.size.in.bytes"),
    )
