"""ApiVersions (key 18): what this listener serves, and the cluster's features.

Served are versions 0 to 5: 3 brought the client's software name and version (KIP-511) and features (KIP-584), 4 lets a
feature start at level 0. With 5 a client may say which node of which cluster it means to reach (KIP-1242): where an
address belongs to another one by now, a broker has it start from its bootstrap servers. Controllers do not look, and
neither does a broker before the client has authenticated. An unknown version is answered before a handler is asked, see
`Dispatcher`. Versions are those of the software, whatever metadata.version the cluster has, as in Kafka.
"""

from __future__ import annotations

import re
from typing import Never

from pykbroker.metadata.feature_updates import KRAFT_VERSION
from pykbroker.metadata.features import REGISTERED_FEATURES, SUPPORTED_FEATURES, finalized_features
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from pykbroker.server.network.handlers import Handler, RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.offer import Offer
from pykbroker.server.node.broker import Broker, ClusterNode
from pykbroker.server.node.handlers import TELEMETRY_APIS, handles_on_all_nodes

_SOFTWARE_SINCE = 3
_FEATURES_FROM_LEVEL_0_SINCE = 4
_NODE_SINCE = 5
_NO_NODE = -1
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)

_ADVERTISED_SINCE = {ApiKey.PRODUCE: 0}
"""librdkafka before 2.x takes a broker that does not list Produce 0 for one without Produce; 0 to 2 are refused."""

_OF_QUORUMS = {KRAFT_VERSION: REGISTERED_FEATURES[KRAFT_VERSION]}
"""A node that is to become a voter is asked for its versions first (KIP-853)."""


@handles_on_all_nodes(ApiVersionsRequest, needs=NOTHING)
async def api_versions(context: RequestContext[ClusterNode], request: ApiVersionsRequest) -> ApiVersionsResponse:
    version = context.header.api_version
    if version >= _NODE_SINCE and (request.cluster_id is None) != (request.node_id == _NO_NODE):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if version >= _SOFTWARE_SINCE:
        names = request.client_software_name, request.client_software_version
        if not all(map(_SOFTWARE.fullmatch, names)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.client_software_name, context.connection.client_software_version = names
    if version >= _NODE_SINCE and _means_another_node(context, request):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    image = context.node.image
    offer = context.listener.offer
    supported = SUPPORTED_FEATURES | _OF_QUORUMS if offer is None else offer.features
    response = ApiVersionsResponse(
        api_keys=[
            _advertised(handler, offer)
            for handler in context.listener
            if handler.api_key not in TELEMETRY_APIS or _asks_for_metrics(context.node)
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(supported.items())
            if low > 0 or version >= _FEATURES_FROM_LEVEL_0_SINCE
        ],
    )
    finalized = finalized_features(image)
    if context.node.raft.kraft_version:
        finalized = {**finalized, KRAFT_VERSION: context.node.raft.kraft_version}
    if offer is not None:
        finalized = {name: level for name, level in finalized.items() if name in supported}
    if finalized:
        response.finalized_features_epoch = image.offset
        response.finalized_features = [
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(finalized.items())
        ]
    return response


def _means_another_node(context: RequestContext[ClusterNode], request: ApiVersionsRequest) -> bool:
    """Tell whether the client has reached another node than it says that it means to."""
    if request.cluster_id is None or context.listener.kind != "broker" or context.connection.has_yet_to_authenticate:
        return False
    return (request.cluster_id, request.node_id) != (context.node.cluster_id, context.node.node_id)


def _asks_for_metrics(node: ClusterNode) -> bool:
    """Tell whether some client metrics are subscribed to: without them clients would ask, and log that they did."""
    return isinstance(node, Broker) and node.telemetry is not None and len(node.telemetry.clients.subscriptions) > 0


def _advertised(handler: Handler[Never], offer: Offer | None) -> ApiVersion:
    low = _ADVERTISED_SINCE.get(ApiKey(handler.api_key), handler.min_version)
    if offer is not None:
        low = max(low, offer.versions[handler.api_key].low)
    return ApiVersion(api_key=handler.api_key, min_version=low, max_version=handler.max_version)
