"""Configurations of topics, brokers, groups and subscriptions of client metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

from .errors import NoBrokerReachable, check
from .metadata import Node

if TYPE_CHECKING:
    from .cluster import Cluster


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class Resource:
    """The broker with an empty name stands for the defaults of all brokers."""

    type: ResourceType
    name: str


_DOCUMENTATION_SINCE = 3
_SET = 0
_DELETE = 1
MOST_TOPICS_AT_ONCE = 100
"""In one request for configs: a topic has some forty."""


async def describe_configs(cluster: Cluster, resource: Resource) -> list[DescribeConfigsResourceResult]:
    """Every config of the resource, by name, with its synonyms, and what it means where the broker tells that.

    Raises KafkaError.
    """
    asked = DescribeConfigsResource(resource_type=resource.type, resource_name=resource.name, configuration_keys=None)
    node = await _node_for(cluster, resource)
    connection = await cluster.retrying(
        cluster.any_connection if node is None else partial(cluster.node_connection, node)
    )
    explains = connection.version_of(DescribeConfigsRequest) >= _DOCUMENTATION_SINCE
    response = await cluster.request(
        DescribeConfigsRequest(resources=[asked], include_synonyms=True, include_documentation=explains),
        DescribeConfigsResponse,
        node=node,
        at_most=None if explains else _DOCUMENTATION_SINCE - 1,
        verify=_check_described,
    )
    return _by_name(row for result in response.results for row in result.configs)


async def describe_topic_configs(
    cluster: Cluster, names: Sequence[str]
) -> dict[str, list[DescribeConfigsResourceResult]]:
    """Every config of the topics, by name, without synonyms, asked of many topics together. Raises KafkaError.

    A topic that the answer leaves out has none.
    """
    found: dict[str, list[DescribeConfigsResourceResult]] = {}
    for first in range(0, len(names), MOST_TOPICS_AT_ONCE):
        some = names[first : first + MOST_TOPICS_AT_ONCE]
        asked = [
            DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=None)
            for name in some
        ]
        response = await cluster.request(
            DescribeConfigsRequest(resources=asked), DescribeConfigsResponse, verify=_check_described
        )
        described = {result.resource_name: result.configs for result in response.results}
        found.update({name: _by_name(described.get(name, ())) for name in some})
    return found


async def alter_configs(
    cluster: Cluster, resource: Resource, to_set: Mapping[str, str], to_delete: Iterable[str]
) -> None:
    """Changes these and leaves the others (KIP-339). Raises KafkaError."""
    rows = [
        IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=_SET, value=value)
        for name, value in to_set.items()
    ]
    rows += [
        IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=_DELETE, value=None)
        for name in to_delete
    ]
    altered = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=resource.type, resource_name=resource.name, configs=rows
    )
    await cluster.request(
        IncrementalAlterConfigsRequest(resources=[altered]),
        IncrementalAlterConfigsResponse,
        node=await _node_for(cluster, resource),
        verify=_check_altered,
    )


async def list_client_metrics(cluster: Cluster) -> list[str]:
    """The names of subscriptions of client metrics (KIP-1000). Raises KafkaError, or ClientError of an old cluster."""
    request = ListConfigResourcesRequest(resource_types=[])
    response = await cluster.request(request, ListConfigResourcesResponse, at_most=0, verify=_check_listed)
    return sorted(each.resource_name for each in response.config_resources)


async def _node_for(cluster: Cluster, resource: Resource) -> Node | None:
    """A broker speaks for itself; any node does for all else."""
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return None
    nodes = (await cluster.refresh([])).nodes
    if not resource.name.isdecimal() or int(resource.name) not in nodes:
        known = ", ".join(str(node_id) for node_id in sorted(nodes))
        raise NoBrokerReachable(f"There is no broker {resource.name} (there are: {known})", retriable=False)
    return nodes[int(resource.name)]


def _by_name(rows: Iterable[DescribeConfigsResourceResult]) -> list[DescribeConfigsResourceResult]:
    return sorted(rows, key=lambda row: row.name)


def _check_listed(response: ListConfigResourcesResponse) -> None:
    check(response.error_code)


def _check_described(response: DescribeConfigsResponse) -> None:
    for row in response.results:
        check(row.error_code, row.error_message)


def _check_altered(response: IncrementalAlterConfigsResponse) -> None:
    for row in response.responses:
        check(row.error_code, row.error_message)
