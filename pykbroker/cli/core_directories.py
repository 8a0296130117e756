"""The directories of `start --cores`: made and formatted for each node, and never left out with records in them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.roles import BOTH
from pykbroker.storage.directories.directory_names import NODES_DIRECTORY, parse_partition_directory

if TYPE_CHECKING:
    from pykbroker.config.cores_plan import CoreNode

_MOST_NAMED: Final = 10


def format_nodes(nodes: Sequence[CoreNode]) -> None:
    """Format what is unformatted of all nodes, the first one included. Raises ConfigurationError, StorageError."""
    from pykbroker.protocol.uuids import random_uuid, uuid_to_text
    from pykbroker.server.quorum.formatting import directory_paths, format_unformatted, formatted_cluster_id
    from pykbroker.storage.files.disk import OsDisk

    disk = OsDisk()
    configs = [BrokerConfig(node.settings) for node in nodes]
    paths = [path for config in configs for path in directory_paths(config)]
    cluster_id = formatted_cluster_id(disk, list(dict.fromkeys(paths)))
    if cluster_id is None:
        if configs[0].roles != BOTH:
            raise ConfigurationError(f"{paths[0]} is not formatted: `pykbroker format` says which cluster")
        cluster_id = uuid_to_text(random_uuid(random.SystemRandom()))
    for config in configs:
        format_unformatted(disk, config, cluster_id, rng=random.SystemRandom(), now_ms=time.time_ns() // 1_000_000)


def check_none_left_out(config: BrokerConfig, cores: int) -> None:
    """Raise ConfigurationError where a node that is not started has partitions, which nobody would serve.

    config: the first node's, of `cores` ones.
    """
    started = {str(config.node_id + number) for number in range(1, cores)}
    partitions: dict[str, set[str]] = {}
    for directory in config.log_dirs:
        for node_id, place in _others(directory):
            if node_id not in started:
                partitions.setdefault(node_id, set()).update(_partitions_in(place))
    partitions = {node_id: names for node_id, names in partitions.items() if names}
    if not partitions:
        return
    last = max(int(node_id) for node_id in partitions)
    told = "; ".join(f"node {node_id} has {_some(partitions[node_id])}" for node_id in sorted(partitions, key=int))
    topics = sorted({name.rpartition("-")[0] for names in partitions.values() for name in names})
    stay = ",".join(str(config.node_id + number) for number in range(cores))
    raise ConfigurationError(
        f"{told}, which nobody would serve: start with --cores {last - config.node_id + 1}, and move them first: "
        f"pykbroker reassign start {_some(topics, ' ')} --brokers {stay} --wait"
    )


def _others(directory: str) -> list[tuple[str, Path]]:
    """Return the other nodes' ids with their directories in one of the first one's."""
    try:
        names = os.listdir(Path(directory, NODES_DIRECTORY))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigurationError(f"Cannot read {directory}/{NODES_DIRECTORY}: {error.strerror}") from None
    return [(name, Path(directory, NODES_DIRECTORY, name)) for name in names if name.isascii() and name.isdecimal()]


def _partitions_in(place: Path) -> list[str]:
    try:
        names = os.listdir(place)
    except NotADirectoryError:
        return []
    except OSError as error:
        raise ConfigurationError(f"Cannot read {place}: {error.strerror}") from None
    return [name for name in names if parse_partition_directory(name) is not None]


def _some(names: Collection[str], separator: str = ", ") -> str:
    shown = sorted(names, key=lambda name: (name.startswith("__"), name))[:_MOST_NAMED]
    more = len(names) - len(shown)
    return separator.join(shown) + (f"{separator}… and {more} more" if more else "")
