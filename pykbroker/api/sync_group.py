"""SyncGroup (key 14): hand in the assignment as the leader, or wait for one's part of it.

Served are versions 0 to 5: 3 brought static members (KIP-345), 5 the protocol's type and name (KIP-559).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.groups import SyncGroupRequest, SyncGroupResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .group_requests import check_group, submit

_NEEDS_PROTOCOL_SINCE = 5


@handles(SyncGroupRequest, needs=names((Operation.READ, ResourceType.GROUP)), most_entries=20_000)
async def sync_group(context: RequestContext[Broker], request: SyncGroupRequest) -> SyncGroupResponse:
    if context.header.api_version >= _NEEDS_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        check_group(context, Operation.READ, request.group_id)
        response: SyncGroupResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        return SyncGroupResponse(error_code=error.code)
    return response
