"""UpdateFeatures (key 57): the cluster's features move to other levels (KIP-584).

Served are versions 0 to 2: 1 can be a dry run (KIP-778), 2 answers for all features at once. What may change stands in
`metadata.feature_updates`.
"""

from __future__ import annotations

from pykbroker.metadata.feature_updates import SAFE_DOWNGRADE, UPGRADE
from pykbroker.protocol.messages.brokers import UpdateFeaturesRequest, UpdateFeaturesResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(UpdateFeaturesRequest, needs=cluster(Operation.ALTER))
async def update_features(
    context: RequestContext[ClusterNode], request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    if context.header.api_version == 0:
        for update in request.feature_updates:
            update.upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    response: UpdateFeaturesResponse = await submit(context, request)
    return response
