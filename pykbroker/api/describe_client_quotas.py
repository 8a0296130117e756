"""DescribeClientQuotas (key 48): the quotas of entities that a filter finds (KIP-546).

Served are versions 0 and 1, which do not differ in what they say. What a filter finds stands in `quotas.describe`.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntryData,
    EntityData,
    ValueData,
)
from pykbroker.quotas.describe import ClientQuotaFilter
from pykbroker.quotas.entities import ordered
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

_PORTION = 100
_STEPS_PER_ENTITY = 2
_STEPS_PER_FOUND = 6


@handles(DescribeClientQuotasRequest, needs=cluster(Operation.DESCRIBE_CONFIGS))
async def describe_client_quotas(
    context: RequestContext[Broker], request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        wanted = ClientQuotaFilter(request.components, strict=request.strict)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    found: list[DescribeClientQuotasResponseEntryData] = []
    for portion in portions(context.node.image.view().client_quotas.items(), _PORTION):
        before = len(found)
        found += [
            DescribeClientQuotasResponseEntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in ordered(entity)],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in portion
            if wanted.matches(entity)
        ]
        await context.turn.took(_STEPS_PER_ENTITY * len(portion) + _STEPS_PER_FOUND * (len(found) - before))
    return DescribeClientQuotasResponse(error_message="", entries=found)
