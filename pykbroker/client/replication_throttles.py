"""Bounds on the traffic of moves (KIP-73): a rate of each broker, and the replicas of each topic that count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .configs import ResourceType
from .connection import Connection
from .each_node import ask_each
from .errors import ClientError, check
from .metadata import Node

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
BROKER_THROTTLES: Final = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
_TOPIC_THROTTLES: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
_SET: Final = 0
_DELETE: Final = 1
_TOPICS_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Move:
    """The brokers that have a partition, and those that get it."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]


Changes = Mapping[str, str | None]
"""Configs by name; None takes one away."""


async def set_broker_throttles(
    cluster: Cluster, nodes: Collection[Node], rates: Mapping[str, int]
) -> dict[int, ClientError]:
    """Set rates, in bytes per second, and return the brokers that do not take them, with the reason."""
    return await _alter_brokers(cluster, nodes, {name: str(rate) for name, rate in rates.items()})


async def clear_broker_throttles(cluster: Cluster, nodes: Collection[Node]) -> dict[int, ClientError]:
    """Take rates away, and return the brokers that did not do it, with the reason."""
    return await _alter_brokers(cluster, nodes, dict.fromkeys(BROKER_THROTTLES))


async def set_topic_throttles(cluster: Cluster, moves: Mapping[TopicPartition, Move]) -> None:
    """Let moves count: what their sources send, and what their destinations fetch. Raises KafkaError."""
    topics: dict[str, tuple[list[str], list[str]]] = {}
    for of, move in sorted(moves.items()):
        leaders, followers = topics.setdefault(of.topic, ([], []))
        leaders += [f"{of.partition}:{each}" for each in move.sources]
        followers += [f"{of.partition}:{each}" for each in move.destinations if each not in move.sources]
    await _alter_topics(
        cluster,
        {
            topic: {LEADER_REPLICAS: ",".join(leaders), FOLLOWER_REPLICAS: ",".join(followers)}
            for topic, (leaders, followers) in topics.items()
        },
    )


async def clear_topic_throttles(cluster: Cluster, topics: Collection[str]) -> None:
    """Raises KafkaError."""
    await _alter_topics(cluster, {topic: dict.fromkeys(_TOPIC_THROTTLES) for topic in sorted(topics)})


async def topic_throttles(cluster: Cluster, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the configs of topics that let replicas count, of each topic those that are set. Raises KafkaError."""
    names, found = list(topics), dict[str, dict[str, str]]()
    for first in range(0, len(names), _TOPICS_AT_ONCE):
        some = names[first : first + _TOPICS_AT_ONCE]
        request = _question(ResourceType.TOPIC, some, _TOPIC_THROTTLES)
        response = await cluster.request(request, DescribeConfigsResponse, verify=_check_described)
        found.update(_set_ones(response, ConfigSource.DYNAMIC_TOPIC_CONFIG))
    return found


async def broker_throttles(cluster: Cluster, nodes: Collection[Node]) -> dict[int, dict[str, str] | ClientError]:
    """Return the rates that are set for single brokers while they run, or why one does not tell, by broker."""
    by_address = {f"{node.host}:{node.port}": str(node.node_id) for node in nodes}

    async def ask(connection: Connection) -> dict[str, str]:
        name = by_address[connection.peer]
        response = await connection.request(
            _question(ResourceType.BROKER, [name], BROKER_THROTTLES), DescribeConfigsResponse
        )
        _check_described(response)
        return _set_ones(response, ConfigSource.DYNAMIC_BROKER_CONFIG).get(name, {})

    return await ask_each(cluster, nodes, ask)


def _question(kind: ResourceType, names: Collection[str], keys: Collection[str]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
            for name in names
        ]
    )


def _set_ones(response: DescribeConfigsResponse, source: ConfigSource) -> dict[str, dict[str, str]]:
    return {
        result.resource_name: {row.name: row.value or "" for row in result.configs if row.config_source == source}
        for result in response.results
    }


def _check_described(response: DescribeConfigsResponse) -> None:
    for row in response.results:
        check(row.error_code, row.error_message)


async def _alter_topics(cluster: Cluster, changes: Mapping[str, Changes]) -> None:
    names = list(changes)
    for first in range(0, len(names), _TOPICS_AT_ONCE):
        some = names[first : first + _TOPICS_AT_ONCE]
        request = IncrementalAlterConfigsRequest(
            resources=[_resource(ResourceType.TOPIC, name, changes[name]) for name in some]
        )
        await cluster.request(request, IncrementalAlterConfigsResponse, verify=_check_altered)


async def _alter_brokers(cluster: Cluster, nodes: Collection[Node], changes: Changes) -> dict[int, ClientError]:
    """A broker takes its own configs alone, and so each is asked by itself."""
    by_address = {f"{node.host}:{node.port}": node.node_id for node in nodes}

    async def ask(connection: Connection) -> None:
        resource = _resource(ResourceType.BROKER, str(by_address[connection.peer]), changes)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        _check_altered(await connection.request(request, IncrementalAlterConfigsResponse))

    answers = await ask_each(cluster, nodes, ask)
    return {node_id: answer for node_id, answer in answers.items() if isinstance(answer, ClientError)}


def _resource(kind: ResourceType, name: str, changes: Changes) -> IncrementalAlterConfigsRequestAlterConfigsResource:
    return IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(
                name=key, config_operation=_DELETE if value is None else _SET, value=value
            )
            for key, value in changes.items()
        ],
    )


def _check_altered(response: IncrementalAlterConfigsResponse) -> None:
    for row in response.responses:
        check(row.error_code, row.error_message)
