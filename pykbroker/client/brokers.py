"""Brokers and controllers as a node tells of them (DescribeCluster, KIP-700), and the end of a registration."""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from pykbroker.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse

from .cluster import Cluster
from .errors import KafkaError, check
from .metadata import Node

_CONTROLLERS = 2
_TELLS_FENCED_SINCE = 2


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker. is_fenced: None where nobody tells (before KIP-1073); brokers that are fenced are then not named."""

    node: Node
    is_fenced: bool | None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """All brokers. controller_id: the active controller; brokers of KRaft name any broker there."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


async def describe_cluster(cluster: Cluster) -> ClusterDescription:
    """Ask any broker for all of them, by id. Raises ClientError."""
    connection = await cluster.any_connection()
    if ApiKey.DESCRIBE_CLUSTER not in connection.versions:
        metadata = await cluster.refresh([])
        nodes = (metadata.nodes[node_id] for node_id in sorted(metadata.nodes))
        brokers = tuple(BrokerDescription(node, None) for node in nodes)
        return ClusterDescription(metadata.cluster_id or "", metadata.controller_id, brokers)
    tells_fenced = connection.version_of(DescribeClusterRequest) >= _TELLS_FENCED_SINCE
    request = DescribeClusterRequest(include_fenced_brokers=tells_fenced)
    response = await cluster.request(request, DescribeClusterResponse, verify=_check_described)
    rows = sorted(response.brokers, key=lambda row: row.broker_id)
    return ClusterDescription(
        response.cluster_id,
        response.controller_id,
        tuple(
            BrokerDescription(
                Node(row.broker_id, row.host, row.port, row.rack), row.is_fenced if tells_fenced else None
            )
            for row in rows
        ),
    )


async def active_controller(cluster: Cluster) -> Node:
    """Return the node that leads the controllers, of a cluster whose bootstrap servers are controllers' listeners.

    Raises ClientError.
    """

    def verify(response: DescribeClusterResponse) -> None:
        _check_described(response)
        if response.controller_id not in {row.broker_id for row in response.brokers}:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "No controller leads the quorum at the moment")

    request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    response = await cluster.request(request, DescribeClusterResponse, verify=verify)
    return next(
        Node(row.broker_id, row.host, row.port, row.rack)
        for row in response.brokers
        if row.broker_id == response.controller_id
    )


async def id_known_to_controllers(cluster: Cluster) -> str:
    """Return the cluster's id, where the bootstrap servers are controllers' listeners. Raises ClientError."""
    request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    return (await cluster.request(request, DescribeClusterResponse, verify=_check_described)).cluster_id


async def unregister_broker(cluster: Cluster, broker_id: int) -> None:
    """Remove the registration of a broker that is down. Raises KafkaError."""
    await cluster.request(
        UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse, verify=_check_unregistered
    )


def _check_described(response: DescribeClusterResponse) -> None:
    check(response.error_code, response.error_message)


def _check_unregistered(response: UnregisterBrokerResponse) -> None:
    check(response.error_code, response.error_message)
