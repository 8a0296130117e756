"""DescribeCluster (key 60): the cluster's id, its nodes, and what a client may do with it (KIP-700).

Served are versions 0 to 2, on both kinds of listeners: a broker's tells of brokers, a controller's of controllers
(KIP-919), and each refuses to tell of the other kind. Version 2 can include fenced brokers (KIP-1073).
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .authorization import NOT_ASKED, authorized_operations_on_cluster, is_allowed_on_cluster
from .broker_endpoint import broker_endpoint
from .metadata import controller_id

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_NOT_KNOWN: Final = -1
_ENDPOINT_TYPES_SINCE: Final = 1
_NAMES: Final = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


@handles_on_all_nodes(
    DescribeClusterRequest,
    needs=names((Operation.DESCRIBE, ResourceType.CLUSTER), (Operation.ALTER, ResourceType.CLUSTER)),
)
async def describe_cluster(
    context: RequestContext[ClusterNode], request: DescribeClusterRequest
) -> DescribeClusterResponse:
    served = _BROKERS if context.listener.kind == "broker" else _CONTROLLERS
    if served == _CONTROLLERS and not is_allowed_on_cluster(context, Operation.ALTER):
        denial = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeClusterResponse(error_code=denial, error_message=denial.description)
    if request.endpoint_type not in _NAMES:
        reason = f"Unsupported endpoint type {request.endpoint_type}"
        return _refused(context, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, reason)
    if request.endpoint_type != served:
        reason = (
            f"The request was sent to an endpoint of type {_NAMES[served]}, but we wanted an endpoint of type "
            f"{_NAMES[request.endpoint_type]}"
        )
        return _refused(context, ErrorCode.MISMATCHED_ENDPOINT_TYPE, reason)
    return DescribeClusterResponse(
        endpoint_type=served,
        cluster_id=context.node.cluster_id,
        controller_id=controller_id(context.node) if served == _BROKERS else _active_controller(context),
        brokers=_brokers(context, request) if served == _BROKERS else _controllers(context),
        cluster_authorized_operations=authorized_operations_on_cluster(context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _refused(context: RequestContext[ClusterNode], error_code: ErrorCode, reason: str) -> DescribeClusterResponse:
    """Version 0 knows no types of endpoints, and no errors about them."""
    if context.header.api_version < _ENDPOINT_TYPES_SINCE:
        error_code = ErrorCode.INVALID_REQUEST
    return DescribeClusterResponse(error_code=error_code, error_message=reason)


def _active_controller(context: RequestContext[ClusterNode]) -> int:
    leader_id = context.node.raft.leader_id
    return _NOT_KNOWN if leader_id is None else leader_id


def _brokers(context: RequestContext[ClusterNode], request: DescribeClusterRequest) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(
            broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
        )
        for _, broker in sorted(context.node.image.brokers.items())
        if (request.include_fenced_brokers or not broker.fenced)
        and (endpoint := broker_endpoint(context, broker)) is not None
    ]


def _controllers(context: RequestContext[ClusterNode]) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
        for _, controller in sorted(context.node.image.controllers.items())
        for endpoint in controller.endpoints
        if endpoint.name == context.listener_name
    ]
