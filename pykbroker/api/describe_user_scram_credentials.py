"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have, and no key (KIP-554).

Served is version 0, from the image of the node that is asked.
"""

from __future__ import annotations

from pykbroker.metadata import scram_credentials
from pykbroker.protocol.messages.scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes


@handles_on_all_nodes(DescribeUserScramCredentialsRequest, needs=cluster(Operation.DESCRIBE))
async def describe_user_scram_credentials(
    context: RequestContext[ClusterNode], request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    image = context.node.image.view()
    return await context.turn.through(scram_credentials.describe_user_scram_credentials(image, request))
