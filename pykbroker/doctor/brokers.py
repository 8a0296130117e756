"""Each broker's own configuration, and its log directories."""

from __future__ import annotations

from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import ResourceType
from pykbroker.client.connection import Connection
from pykbroker.client.errors import ClientError, check, code_of
from pykbroker.client.metadata import Node
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from pykbroker.protocol.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

from .facts import BrokerSettings, Directory, Facts

_GIVEN: Final = frozenset(
    {
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    }
)
_DOCUMENTATION_SINCE: Final = 3


async def look_at_brokers(cluster: Cluster, facts: Facts) -> None:
    """Add the configuration and the directories of each broker that was found."""
    for address in facts.addresses:
        if address.working is None:
            continue
        node = Node(address.node_id, address.host, address.port)
        try:
            connection = await cluster.node_connection(node)
        except ClientError as error:
            facts.unknown.append(f"broker {node.node_id} was not looked at: {error}")
            continue
        try:
            facts.settings.append(await _settings(connection, node.node_id))
        except ClientError as error:
            facts.unknown.append(f"the configuration of broker {node.node_id} was not looked at: {error}")
        try:
            facts.directories += await _directories(connection, node.node_id)
        except ClientError as error:
            facts.unknown.append(f"the log directories of broker {node.node_id} were not looked at: {error}")


async def _settings(connection: Connection, node_id: int) -> BrokerSettings:
    """Raises ClientError."""
    asked = DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=str(node_id), configuration_keys=None
    )
    version = connection.version_of(DescribeConfigsRequest)
    request = DescribeConfigsRequest(resources=[asked], include_documentation=version >= _DOCUMENTATION_SINCE)
    response = await connection.request(request, DescribeConfigsResponse)
    for result in response.results:
        check(result.error_code, result.error_message)
    rows = [row for result in response.results for row in result.configs]
    return BrokerSettings(
        node_id,
        {row.name: row.value for row in rows if row.value is not None and not row.is_sensitive},
        frozenset(row.name for row in rows if row.config_source in _GIVEN),
        version < _DOCUMENTATION_SINCE or _is_apache_kafka([row.documentation or "" for row in rows]),
    )


def _is_apache_kafka(texts: list[str]) -> bool:
    """Tell whether keys are explained in the words of Apache Kafka: pykbroker names itself in some, or has none."""
    return any(texts) and not any("pykbroker" in text for text in texts)


async def _directories(connection: Connection, node_id: int) -> list[Directory]:
    """No topic is asked for, so that the answer is small. Raises ClientError."""
    response = await connection.request(DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
    check(response.error_code)
    return [
        Directory(
            node_id,
            row.log_dir,
            None if row.error_code == ErrorCode.NONE else code_of(row.error_code).name,
            row.total_bytes if row.total_bytes >= 0 else None,
            row.usable_bytes if row.usable_bytes >= 0 else None,
        )
        for row in response.results
    ]
