"""Brokers as `pykbroker brokers` shows them: a row for each, and what one tells of itself beyond that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import trio

from pykbroker.client.brokers import BrokerDescription, ClusterDescription
from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, describe_configs
from pykbroker.client.connection import Connection
from pykbroker.client.each_node import ask_each
from pykbroker.client.errors import ClientError
from pykbroker.client.features import Features, features_of
from pykbroker.client.log_dirs import describe_log_dirs
from pykbroker.client.metadata import Node, TopicMetadata
from pykbroker.client.quorum import NO_LEADER, describe_quorum
from pykbroker.client.topics import list_topics
from pykbroker.protocol.api_keys import ApiKey

from .command import one_line
from .entries import Field, Value
from .progress import progress
from .releases import METADATA_VERSION, level_text, release_of

_QUORUM_TIMEOUT_S: Final = 5.0
_LISTENERS: Final = ("advertised.listeners", "listeners")
FIELDS: Final = (
    Field("broker", right=True),
    Field("address"),
    Field("rack"),
    Field("state"),
    Field("controller"),
    Field("version"),
    Field("leaders", right=True),
    Field("replicas", right=True),
    Field("under_replicated", right=True),
    Field("error", ""),
)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Partitions by broker."""

    leaders: Counter[int]
    replicas: Counter[int]
    under_replicated: Counter[int]


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker as the commands show it. error: why it gave no answer."""

    broker: BrokerDescription
    is_controller: bool
    version: str | None
    leaders: int
    replicas: int
    under_replicated: int
    error: ClientError | None

    @property
    def state(self) -> str:
        if self.broker.is_fenced:
            return "fenced"
        return "up" if self.error is None else "unreachable"

    @property
    def values(self) -> list[Value]:
        node = self.broker.node
        return [
            node.node_id,
            str(node),
            node.rack,
            self.state,
            self.is_controller,
            self.version,
            self.leaders,
            self.replicas,
            self.under_replicated,
            None if self.error is None else one_line(self.error),
        ]


async def broker_rows(
    cluster: Cluster, described: ClusterDescription, brokers: Collection[BrokerDescription]
) -> list[BrokerRow]:
    counts = _counted(await list_topics(cluster))
    controller_id = await _controller_id(cluster, described)
    with progress("Asking brokers", len(brokers)) as advance:
        nodes = [each.node for each in brokers]
        answers = await ask_each(cluster, nodes, _ask_features, on_answer=advance)
    rows = []
    for broker in brokers:
        node_id = broker.node.node_id
        answer = answers[node_id]
        rows.append(
            BrokerRow(
                broker,
                node_id == controller_id,
                None if isinstance(answer, ClientError) else _release(answer),
                counts.leaders[node_id],
                counts.replicas[node_id],
                counts.under_replicated[node_id],
                answer if isinstance(answer, ClientError) else None,
            )
        )
    return rows


def _counted(topics: Iterable[TopicMetadata]) -> _Counts:
    counts = _Counts(Counter(), Counter(), Counter())
    for topic in topics:
        for partition in topic.partitions.values():
            counts.leaders[partition.leader_id] += 1
            counts.replicas.update(partition.replica_nodes)
            counts.under_replicated.update(set(partition.replica_nodes).difference(partition.isr_nodes))
    return counts


async def _controller_id(cluster: Cluster, described: ClusterDescription) -> int:
    """Return the node that leads the quorum, -1 where nobody tells; without a quorum the one that brokers name."""
    if ApiKey.DESCRIBE_QUORUM not in (await cluster.any_connection()).versions:
        return described.controller_id
    with trio.move_on_after(_QUORUM_TIMEOUT_S):
        try:
            return (await describe_quorum(cluster)).leader_id
        except ClientError:
            pass
    return NO_LEADER


async def _ask_features(connection: Connection) -> Features:
    return features_of(await connection.ask_versions())


def _release(features: Features) -> str | None:
    return next((release_of(each.max_supported) for each in features.features if each.name == METADATA_VERSION), None)


async def broker_details(cluster: Cluster, nodes: Collection[Node]) -> dict[int, dict[str, Value]]:
    """Return what `describe` says beyond `list`, of the brokers that answer."""

    async def ask(connection: Connection) -> dict[str, Value]:
        features = features_of(await connection.ask_versions())
        directories = await describe_log_dirs(connection, ())
        return {
            "log_dirs": [
                {
                    "path": each.path,
                    "online": each.is_online,
                    "cordoned": each.is_cordoned,
                    "total_bytes": each.total_bytes,
                    "usable_bytes": each.usable_bytes,
                }
                for each in directories
            ],
            "features": {
                each.name: f"{level_text(each.name, each.min_supported)} to {level_text(each.name, each.max_supported)}"
                for each in features.features
            },
        }

    found = await ask_each(cluster, nodes, ask)
    details: dict[int, dict[str, Value]] = {}
    for node_id, answer in found.items():
        told = {"details": one_line(answer)} if isinstance(answer, ClientError) else answer
        details[node_id] = {**await _listeners(cluster, node_id), **told}
    return details


async def _listeners(cluster: Cluster, node_id: int) -> dict[str, Value]:
    """Return the listeners that the broker's configuration advertises; nothing where we may not see it."""
    try:
        configs = await describe_configs(cluster, Resource(ResourceType.BROKER, str(node_id)))
    except ClientError:
        return {}
    values = {each.name: each.value for each in configs}
    listeners = next((text for name in _LISTENERS if (text := values.get(name))), None)
    return {"listeners": None if listeners is None else [each.strip() for each in listeners.split(",")]}
