"""The places of replicas and their sizes, as far as their brokers tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.each_node import ask_each
from pykbroker.client.errors import ClientError
from pykbroker.client.log_dirs import LogDirectory, describe_log_dirs
from pykbroker.protocol.topic_partition import TopicPartition

_MOST_NAMED: Final = 5_000
"""Partitions that a request names; for more of them a broker tells of all that it has."""

Replica = tuple[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Places:
    """Directories by partition and broker, those of the copies that take a replica's place, and sizes.

    silent: the brokers that did not answer, with the reason. offline: those with a directory that is.
    """

    current: dict[Replica, str] = field(default_factory=dict)
    future: dict[Replica, str] = field(default_factory=dict)
    sizes: dict[Replica, int] = field(default_factory=dict)
    silent: dict[int, ClientError] = field(default_factory=dict)
    offline: set[int] = field(default_factory=set)

    def size_bytes(self, of: TopicPartition, brokers: Collection[int]) -> int | None:
        """Return the size of the largest of a partition's replicas; None where no broker told."""
        return max((self.sizes[of, each] for each in brokers if (of, each) in self.sizes), default=None)


async def find_places(cluster: Cluster, replicas: Mapping[TopicPartition, Collection[int]]) -> Places:
    """Ask the brokers of these replicas, of the cluster's metadata."""
    brokers = {each for of in replicas.values() for each in of}
    nodes = [node for node_id, node in sorted(cluster.metadata.nodes.items()) if node_id in brokers]
    named = None if len(replicas) > _MOST_NAMED else list(replicas)

    async def ask(connection: Connection) -> list[LogDirectory]:
        return await describe_log_dirs(connection, named)

    places = Places()
    for node_id, answer in (await ask_each(cluster, nodes, ask)).items():
        if isinstance(answer, ClientError):
            places.silent[node_id] = answer
            continue
        for directory in answer:
            _note(places, node_id, directory, replicas)
    return places


def _note(
    places: Places, node_id: int, directory: LogDirectory, wanted: Mapping[TopicPartition, Collection[int]]
) -> None:
    if not directory.is_online:
        places.offline.add(node_id)
    for each in directory.replicas:
        if each.partition not in wanted:
            continue
        replica = (each.partition, node_id)
        if each.is_future:
            places.future[replica] = directory.path
        else:
            places.current[replica] = directory.path
            places.sizes[replica] = each.size_bytes
