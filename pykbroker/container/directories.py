"""The data directories of a node in a container: writable by this process, and formatted for the cluster it is told.

A directory that is formatted stays as it is: whoever moves to another image keeps the cluster id of the volume.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from pathlib import Path

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.scram_arguments import InvalidScramArgument, parse_scram_argument
from pykbroker.protocol.schema import Message
from pykbroker.security.sasl.scram_credential import new_nonce
from pykbroker.server.quorum.formatting import directory_paths, format_unformatted, formatted_cluster_id
from pykbroker.server.quorum.initial_controllers import InvalidInitialControllers, parse_initial_controllers
from pykbroker.storage.files.disk import OsDisk

from .node_environment import NodeEnvironment


def check_writable(config: BrokerConfig) -> None:
    """Raises ConfigurationError for a data directory in which this process cannot write."""
    for text in directory_paths(config):
        path = Path(text).absolute()
        for each in (path, path / "meta.properties"):
            existing = _first_existing(each)
            if not os.access(existing, os.W_OK | (os.X_OK if existing.is_dir() else 0)):
                raise ConfigurationError(_not_writable(text, existing))


def _first_existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if os.path.lexists(each))


def _not_writable(directory: str, path: Path) -> str:
    owner = path.stat()
    runs_as = f"{os.geteuid()}:{os.getegid()}"
    if os.geteuid() in (owner.st_uid, 0):
        return f"log.dirs: {directory} cannot be written: {path} allows no writing to {runs_as}"
    return (
        f"log.dirs: {directory} cannot be written: {path} belongs to {owner.st_uid}:{owner.st_gid}, and the node runs "
        f"as {runs_as}; start the container as user {owner.st_uid}:{owner.st_gid}, or give it the volume by chown"
    )


def prepare_directories(config: BrokerConfig, node: NodeEnvironment) -> str | None:
    """Format what is not formatted. Returns a note for the log, if there is one.

    Raises ConfigurationError, StorageError.
    """
    check_writable(config)
    disk = OsDisk()
    there = formatted_cluster_id(disk, directory_paths(config))
    cluster_id = there or node.cluster_id
    if cluster_id is None:
        if not node.scram_users and node.initial_controllers is None:
            return None  # the node gives itself an id
        cluster_id = secrets.token_urlsafe(16)
    rng = random.SystemRandom()
    try:
        format_unformatted(
            disk,
            config,
            cluster_id,
            rng=rng,
            now_ms=time.time_ns() // 1_000_000,
            scram_records=[] if there else _scram_records(node),
            initial_controllers=None
            if node.initial_controllers is None
            else parse_initial_controllers(node.initial_controllers),
        )
    except InvalidInitialControllers as error:
        raise ConfigurationError(f"KAFKA_INITIAL_CONTROLLERS: {error}") from None
    if there is None or node.cluster_id in (None, there):
        return None
    place = directory_paths(config)[0]
    return f"the data in {place} belongs to cluster {there}, and stays there: {node.cluster_id} is ignored"


def _scram_records(node: NodeEnvironment) -> list[Message]:
    try:
        return [parse_scram_argument(each, lambda: new_nonce(secrets.randbits).encode()) for each in node.scram_users]
    except InvalidScramArgument as error:
        raise ConfigurationError(f"KAFKA_CLIENT_USERS, KAFKA_CLIENT_PASSWORDS: {error}") from None
