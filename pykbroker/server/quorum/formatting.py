"""Formatting a node writes into its log directories whose they are, and what the metadata log opens with: Kafka's
`Formatter`.

`pykbroker format` does it on request, a node does it to what is unformatted when it starts. A directory that holds
partitions but no `meta.properties` has lost it, and is left alone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from random import Random

from pykbroker.config import BrokerConfig
from pykbroker.metadata.features import bootstrap_records
from pykbroker.protocol.schema import Message
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY, parse_partition_directory
from pykbroker.storage.directories.log_dirs import (
    format_directory,
    make_durable_directory,
)
from pykbroker.storage.directories.meta_properties import read_meta_properties
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import InconsistentDirectory

from .bootstrap_checkpoint import write_bootstrap_checkpoint
from .initial_controllers import InitialController, holds_metadata_log, write_initial_controllers


def directory_paths(config: BrokerConfig) -> list[str]:
    """All of a node's log directories, the one of the metadata log first, each once."""
    return list(dict.fromkeys([posixpath.normpath(config.metadata_log_dir), *partition_paths(config)]))


def partition_paths(config: BrokerConfig) -> list[str]:
    """The log directories that take partitions."""
    return list(dict.fromkeys(map(posixpath.normpath, config.log_dirs)))


def formatted_cluster_id(disk: Disk, paths: Sequence[str]) -> str | None:
    """The cluster that the directories belong to; None where all are unformatted. Raises InconsistentDirectory."""
    owner: tuple[str, str] | None = None
    for path in paths:
        meta = read_meta_properties(disk, path)
        if meta is None:
            continue
        if owner is not None and owner[1] != meta.cluster_id:
            raise InconsistentDirectory(
                f"the log directories belong to different clusters: {owner[0]} has cluster.id {owner[1]}, "
                f"{path} has cluster.id {meta.cluster_id}"
            )
        owner = owner or (path, meta.cluster_id)
    return None if owner is None else owner[1]


def format_unformatted(
    disk: Disk,
    config: BrokerConfig,
    cluster_id: str,
    *,
    rng: Random,
    now_ms: int,
    feature_levels: Mapping[str, int] | None = None,
    scram_records: Sequence[Message] = (),
    initial_controllers: Mapping[int, InitialController] | None = None,
) -> tuple[list[str], list[str]]:
    """Format what is not; returns the directories that were formatted, and those that had been before.

    feature_levels: of features that shall not begin at their greatest level. scram_records: of the users that the
    cluster begins with (KIP-900). initial_controllers: the first voters of a
    dynamic quorum. Raises InconsistentDirectory, FileError.
    """
    paths = directory_paths(config)
    unformatted = [path for path in paths if is_unformatted(disk, path)]
    for path in unformatted:
        format_path(
            disk,
            config,
            path,
            cluster_id,
            rng=rng,
            now_ms=now_ms,
            feature_levels=feature_levels,
            scram_records=scram_records,
            initial_controllers=initial_controllers,
        )
    return unformatted, [path for path in paths if path not in unformatted]


def is_unformatted(disk: Disk, path: str) -> bool:
    """Raises InconsistentDirectory for a directory that is in use, and not to be formatted either; FileError."""
    if read_meta_properties(disk, path) is not None:
        return False
    _refuse_lost_properties(disk, path)
    return True


def format_path(
    disk: Disk,
    config: BrokerConfig,
    path: str,
    cluster_id: str,
    *,
    rng: Random,
    now_ms: int,
    feature_levels: Mapping[str, int] | None = None,
    scram_records: Sequence[Message] = (),
    initial_controllers: Mapping[int, InitialController] | None = None,
) -> None:
    """One directory, which must be unformatted. Raises FileError."""
    directory_id: bytes | None = None
    if path == directory_paths(config)[0]:  # before meta.properties, which says that the directory is complete
        make_durable_directory(disk, path)
        write_bootstrap_checkpoint(disk, path, [*bootstrap_records(feature_levels), *scram_records], now_ms)
        if initial_controllers is not None:
            listener_name = config.listeners.controller_names[0]
            write_initial_controllers(disk, path, initial_controllers, listener_name, now_ms)
            if config.node_id in initial_controllers:
                directory_id = initial_controllers[config.node_id].directory_id
    format_directory(disk, path, cluster_id=cluster_id, node_id=config.node_id, rng=rng, directory_id=directory_id)


def _refuse_lost_properties(disk: Disk, path: str) -> None:
    if not disk.is_directory(path):
        return
    for name in disk.list_directory(path):
        if name == METADATA_LOG_DIRECTORY and not holds_metadata_log(disk, posixpath.join(path, name)):
            continue  # a crash cut off what formatted it
        if name == METADATA_LOG_DIRECTORY or parse_partition_directory(name) is not None:
            raise InconsistentDirectory(f"the log directory {path} holds {name}, but its meta.properties is missing")
