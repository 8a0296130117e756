"""The set-up of `pykbroker cluster`: the places of its data, formatted, with a properties file for each node.

The data directory keeps the cluster's id and its controllers, because a voter that is lost or changed is not for a
command line to bring about.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path

import javaproperties

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.cluster_plan import OWN_KEYS, ClusterPlan, node_properties
from pykbroker.config.properties import read_properties
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.server.quorum.formatting import format_unformatted
from pykbroker.storage.files.disk import OsDisk

_CLUSTER_FILE = "cluster.properties"


def ports_from(base_port: int, count: int) -> range:
    """Return the ports of a cluster. Raises ConfigurationError."""
    last_port = base_port + count - 1
    if last_port > 65535:
        raise ConfigurationError(f"--base-port {base_port} is too high: the last port would be {last_port}")
    return range(base_port, base_port + count)


def set_up_cluster(plan: ClusterPlan, directory: Path, configs: Mapping[str, str]) -> dict[int, Path]:
    """Formats what is new, and writes the properties of each node; returns their files.

    Raises ConfigurationError, StorageError, OSError.
    """
    for key in configs:
        if key in OWN_KEYS:
            raise ConfigurationError(f"--config {key}: each node of the cluster gets its own from this command")
    directory = directory.absolute()
    all_properties = {
        node.node_id: node_properties(plan, node, directory / node.name / "data", configs) for node in plan.nodes
    }
    all_configs = {node_id: BrokerConfig(properties) for node_id, properties in all_properties.items()}
    directory.mkdir(parents=True, exist_ok=True)
    cluster_id = _cluster_id(plan, directory)
    files = {}
    for node in plan.nodes:
        files[node.node_id] = directory / node.name / "server.properties"
        files[node.node_id].parent.mkdir(exist_ok=True)
        files[node.node_id].write_text(javaproperties.dumps(all_properties[node.node_id], timestamp=False))
        now_ms = time.time_ns() // 1_000_000
        config = all_configs[node.node_id]
        format_unformatted(OsDisk(), config, cluster_id, rng=random.SystemRandom(), now_ms=now_ms)
    return files


def _cluster_id(plan: ClusterPlan, directory: Path) -> str:
    """That of the directory's cluster, or a new one. Raises ConfigurationError."""
    controllers = ",".join(map(str, plan.voters))
    file = directory / _CLUSTER_FILE
    if not file.exists():
        cluster_id = uuid_to_text(random_uuid(random.SystemRandom()))
        file.write_text(javaproperties.dumps({"cluster.id": cluster_id, "controllers": controllers}, timestamp=False))
        return cluster_id
    kept = read_properties(file)
    if kept.keys() < {"cluster.id", "controllers"}:
        raise ConfigurationError(f"{file} does not tell cluster.id and controllers")
    if kept["controllers"] != controllers:
        raise ConfigurationError(
            f"the cluster in {directory} has the controllers {kept['controllers']}, not {controllers}: "
            "start it with the number of controllers that it was made with"
        )
    return kept["cluster.id"]
